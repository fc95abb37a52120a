//! Decides the answer to one DNS question; no other resolver is asked.

use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Header, Message, MessageType, Metadata, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

use super::table::Synthetic;
use crate::decision::Decision;
use crate::name::host::DnsName;

/// The most bytes that an answer can have: what every client takes over UDP (RFC 1035 section 4.2.1), so that none is
/// ever cut short.
pub const MOST: usize = 512;

/// How long clients keep an address, in seconds (design section 3).
const TTL: u32 = 60;
/// How long they keep that there is none (RFC 2308 section 5): short, since policy may change its mind.
const NEGATIVE_TTL: u32 = 5;
/// The UDP payload that is offered to clients (RFC 6891 section 6.2.5).
const PAYLOAD: u16 = 1_232;
/// Names with a meaning of their own, with all below them: this host (RFC 6761 section 6.3), and addresses told by
/// number. The hosts file knows the first, and nothing is known of the others.
const UNKNOWN: [&str; 3] = ["localhost", "in-addr.arpa", "ip6.arpa"];

/// What answers are made from: policy, and the table of addresses.
pub trait Source {
    /// Whether policy lets a name be answered.
    ///
    /// # Errors
    /// The denial, where it does not.
    fn judge(&self, name: &DnsName) -> Result<(), Decision>;

    /// The addresses that stand for a name; `None` where all are in use.
    fn addresses(&self, name: &DnsName) -> Option<Synthetic>;

    /// Whether connections can be made over IPv6 alone.
    fn is_ipv6_only(&self) -> bool;
}

/// The bytes of an answer, and its outcome.
#[derive(Debug)]
pub struct Answer {
    pub bytes: Vec<u8>,
    pub outcome: Outcome,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Address,
    /// The name is answered, and has nothing of the type that was asked for.
    NoData,
    /// Policy denies the name.
    Denied(DnsName, Decision),
    /// The name is none that a rule could name.
    NoName,
    /// Every address is in use.
    Full,
    /// An operation, class or version that is not served.
    NotServed,
    Malformed,
}

/// Answers the bytes of one question. `None`: nothing may be said, since it is no question or has no whole header.
pub fn answer(bytes: &[u8], source: &impl Source) -> Option<Answer> {
    let mut decoder = BinDecoder::new(bytes);
    let header = Header::read(&mut decoder).ok()?;
    if header.message_type == MessageType::Response {
        return None;
    }
    let draft = ResponseDraft::new(&header.metadata);
    // Read first, and everything else only for one question: the parser makes room for as many as the header says.
    let counts = header.counts;
    let finished = match (header.op_code, counts.queries, counts.answers, counts.authorities) {
        (OpCode::Query, 1, 0, 0) => match asked(&mut decoder, counts.additionals) {
            Some((query, edns)) => draft.reply(query, edns, source),
            None => draft.finish(ResponseCode::FormErr, Outcome::Malformed),
        },
        (OpCode::Query, ..) => draft.finish(ResponseCode::FormErr, Outcome::Malformed),
        _ => draft.finish(ResponseCode::NotImp, Outcome::NotServed),
    };
    finished.ok()
}

/// The question behind the header, and the client's OPT record.
fn asked(decoder: &mut BinDecoder<'_>, additionals: u16) -> Option<(Query, Option<Edns>)> {
    let begin = decoder.index();
    let query = Query::read(decoder).ok()?;
    // The answer repeats the question, and a pointer in it would point at something else there.
    let root = usize::from(!query.name.is_root());
    if decoder.index() - begin != query.name.len() + root + 4 {
        return None;
    }
    let (_, edns, _) = Message::read_records(decoder, additionals.into(), true, OpCode::Query).ok()?;
    Some((query, edns))
}

/// An answer in the making.
struct ResponseDraft {
    message: Message,
}

impl ResponseDraft {
    fn new(asked: &Metadata) -> Self {
        let mut message = Message::response(asked.id, asked.op_code);
        message.metadata = Metadata::response_from_request(asked);
        message.metadata.recursion_available = true;
        Self { message }
    }

    fn reply(mut self, query: Query, edns: Option<Edns>, source: &impl Source) -> Result<Answer, ProtoError> {
        let (name, class, kind) = (query.name.clone(), query.query_class, query.query_type);
        self.message.add_query(query);
        if let Some(edns) = &edns {
            let mut options = Edns::new();
            options.set_max_payload(PAYLOAD).set_dnssec_ok(edns.flags().dnssec_ok);
            self.message.set_edns(options);
        }
        if edns.is_some_and(|edns| edns.version() != 0) {
            return self.finish(ResponseCode::BADVERS, Outcome::NotServed);
        }
        if class != DNSClass::IN {
            return self.finish(ResponseCode::Refused, Outcome::NotServed);
        }
        if name.is_root() {
            return self.without(ResponseCode::NoError, Outcome::NoData);
        }
        let Some(canonical) = canonical(&name).filter(|name| !is_unknown(name)) else {
            return self.without(ResponseCode::NXDomain, Outcome::NoName);
        };
        if let Err(decision) = source.judge(&canonical) {
            return self.without(ResponseCode::NXDomain, Outcome::Denied(canonical, decision));
        }
        let wanted = if source.is_ipv6_only() { RecordType::AAAA } else { RecordType::A };
        if kind != wanted {
            return self.without(ResponseCode::NoError, Outcome::NoData);
        }
        let Some(addresses) = source.addresses(&canonical) else {
            return self.finish(ResponseCode::ServFail, Outcome::Full);
        };
        let v6 = kind == RecordType::AAAA;
        let data = if v6 { RData::AAAA(AAAA(addresses.v6)) } else { RData::A(A(addresses.v4)) };
        self.message.add_answer(Record::from_rdata(name, TTL, data));
        self.finish(ResponseCode::NoError, Outcome::Address)
    }

    /// Adds the SOA record that says for how long nothing is there (RFC 2308 section 3).
    fn without(mut self, code: ResponseCode, outcome: Outcome) -> Result<Answer, ProtoError> {
        let origin = Name::root().append_label("postern")?;
        let soa = SOA::new(origin.clone(), origin, 1, 3_600, 600, 86_400, NEGATIVE_TTL);
        self.message.add_authority(Record::from_rdata(Name::root(), NEGATIVE_TTL, RData::SOA(soa)));
        self.finish(code, outcome)
    }

    fn finish(mut self, code: ResponseCode, outcome: Outcome) -> Result<Answer, ProtoError> {
        self.message.metadata.response_code = code;
        Ok(Answer { bytes: self.message.to_vec()?, outcome })
    }
}

/// The name as policy knows names; `None` for one that no rule can name.
fn canonical(name: &Name) -> Option<DnsName> {
    let mut text = String::with_capacity(name.len());
    for label in name {
        // A dot inside of a label would be taken for one between two.
        let label = std::str::from_utf8(label).ok().filter(|label| !label.contains('.'))?;
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(label);
    }
    DnsName::parse(&text).ok()
}

fn is_unknown(name: &DnsName) -> bool {
    let above = |suffix: &&str| {
        name.as_str().strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    UNKNOWN.iter().any(above)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use hickory_proto::op::ResponseCode as Code;
    use proptest::prelude::*;

    use super::*;

    const V4: std::net::Ipv4Addr = std::net::Ipv4Addr::new(198, 18, 0, 1);
    const V6: std::net::Ipv6Addr = std::net::Ipv6Addr::new(0xfd70, 0x6f73, 0x7465, 0x726e, 0, 0, 0, 1);

    /// Knows names below `example`, and records what it is asked.
    #[derive(Default)]
    struct Example {
        full: bool,
        ipv6_only: bool,
        judged: RefCell<Vec<String>>,
    }

    impl Source for Example {
        fn judge(&self, name: &DnsName) -> Result<(), Decision> {
            self.judged.borrow_mut().push(name.to_string());
            let answered = name.as_str().ends_with(".example");
            if answered { Ok(()) } else { Err(Decision::builtin("default-deny", "No rule names this host")) }
        }

        fn addresses(&self, _: &DnsName) -> Option<Synthetic> {
            (!self.full).then_some(Synthetic { v4: V4, v6: V6 })
        }

        fn is_ipv6_only(&self) -> bool {
            self.ipv6_only
        }
    }

    fn question(name: &str, kind: RecordType) -> Message {
        let mut message = Message::new(0x1234, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        message
    }

    fn ask(message: &Message, source: &Example) -> (Message, Outcome) {
        let asked = message.to_vec().unwrap();
        let answer = answer(&asked, source).unwrap();
        assert!(answer.bytes.len() <= MOST, "{} bytes", answer.bytes.len());
        let read = Message::from_vec(&answer.bytes).unwrap();
        assert_eq!((read.id, read.message_type), (message.id, MessageType::Response));
        (read, answer.outcome)
    }

    fn says(name: &str, kind: RecordType) -> (Code, Outcome) {
        let (message, outcome) = ask(&question(name, kind), &Example::default());
        assert_eq!(message.queries, question(name, kind).queries);
        (message.response_code, outcome)
    }

    #[test]
    fn an_answered_name_has_one_address_for_a_minute() {
        let (message, outcome) = ask(&question("api.example.", RecordType::A), &Example::default());
        assert_eq!(outcome, Outcome::Address);
        assert_eq!(message.response_code, Code::NoError);
        assert!(message.recursion_desired && message.recursion_available);
        assert!(!message.authoritative && !message.truncation && !message.authentic_data);
        let [record] = &message.answers[..] else { panic!("{message}") };
        assert_eq!((record.ttl, &record.data), (60, &RData::A(A(V4))));
        assert_eq!(record.name, message.queries[0].name);
        assert!(message.authorities.is_empty() && message.additionals.is_empty() && message.edns.is_none());
    }

    #[test]
    fn an_answered_name_has_nothing_of_any_other_type() {
        use RecordType::{
            AAAA, ANY, AXFR, CNAME, HTTPS, MX, NS, NULL, PTR, SOA as Soa, SRV, SVCB, TXT, Unknown,
        };
        for kind in [AAAA, ANY, AXFR, CNAME, HTTPS, MX, NS, NULL, PTR, Soa, SRV, SVCB, TXT, Unknown(65_400)] {
            let (message, outcome) = ask(&question("api.example.", kind), &Example::default());
            assert_eq!((message.response_code, outcome), (Code::NoError, Outcome::NoData), "{kind}");
            assert!(message.answers.is_empty());
            let [soa] = &message.authorities[..] else { panic!("{kind}: {message}") };
            let RData::SOA(data) = &soa.data else { panic!("{soa}") };
            assert_eq!((soa.ttl, data.minimum), (5, 5), "nobody remembers it for long");
            assert!(soa.name.zone_of(&message.queries[0].name));
        }
    }

    #[test]
    fn where_there_is_ipv6_alone_aaaa_has_the_address() {
        let source = Example { ipv6_only: true, ..Example::default() };
        let (message, _) = ask(&question("api.example.", RecordType::AAAA), &source);
        assert_eq!(message.answers[0].data, RData::AAAA(AAAA(V6)));
        let (_, outcome) = ask(&question("api.example.", RecordType::A), &source);
        assert_eq!(outcome, Outcome::NoData);
    }

    #[test]
    fn a_name_that_policy_denies_does_not_exist() {
        for kind in [RecordType::A, RecordType::AAAA, RecordType::TXT] {
            let (message, outcome) = ask(&question("api.other.", kind), &Example::default());
            assert_eq!(message.response_code, Code::NXDomain);
            assert_eq!(message.authorities.len(), 1);
            let Outcome::Denied(name, decision) = outcome else { panic!("{outcome:?}") };
            assert_eq!((name.as_str(), decision.rule_id()), ("api.other", "postern/builtin/default-deny"));
        }
    }

    #[test]
    fn what_no_rule_can_name_does_not_exist_and_policy_is_not_asked() {
        let source = Example::default();
        for name in [
            "_dmarc.mail.example.",
            "_443._https.api.example.",
            "xn--a.example.",
            "192.0.2.1.",
            "localhost.",
            "LOCALHOST.",
            "db.localhost.",
            "1.0.18.198.in-addr.arpa.",
            "1.0.0.0.e.6.2.7.ip6.arpa.",
        ] {
            let (message, outcome) = ask(&question(name, RecordType::A), &source);
            assert_eq!((message.response_code, outcome), (Code::NXDomain, Outcome::NoName), "{name}");
        }
        for label in [b"a.b".as_slice(), b"-a", b"a\0b", b"\xff\xfe", b"a b"] {
            let mut message = question(".", RecordType::A);
            message.queries[0].set_name(Name::from_labels([label, b"example"]).unwrap());
            assert_eq!(ask(&message, &source).1, Outcome::NoName, "{label:x?}");
        }
        assert!(source.judged.borrow().is_empty());
        assert!(matches!(says("notlocalhost.", RecordType::A), (Code::NXDomain, Outcome::Denied(..))));
        assert_eq!(says(".", RecordType::NS), (Code::NoError, Outcome::NoData), "the root exists");
    }

    #[test]
    fn the_question_is_repeated_byte_for_byte_and_judged_in_lower_case() {
        let source = Example::default();
        let asked = question("aPi.ExAmPle.", RecordType::A).to_vec().unwrap();
        let answer = answer(&asked, &source).unwrap();
        assert_eq!(answer.bytes[12..asked.len()], asked[12..]);
        assert_eq!(*source.judged.borrow(), ["api.example"]);
    }

    #[test]
    fn edns_is_answered_with_edns_and_the_longest_answer_still_fits_without() {
        let label = "a".repeat(60);
        let name = format!("{label}.{label}.{label}.{}.example.", "a".repeat(62));
        for kind in [RecordType::A, RecordType::TXT] {
            let mut message = question(&name, kind);
            let mut edns = Edns::new();
            edns.set_max_payload(4_096).set_dnssec_ok(true);
            message.set_edns(edns);
            let (read, _) = ask(&message, &Example::default());
            let edns = read.edns.unwrap();
            assert_eq!((edns.max_payload(), edns.version(), edns.flags().dnssec_ok), (1_232, 0, true));
        }
    }

    #[test]
    fn another_version_of_edns_is_refused() {
        let mut message = question("api.example.", RecordType::A);
        let mut edns = Edns::new();
        edns.set_version(1);
        message.set_edns(edns);
        let (read, outcome) = ask(&message, &Example::default());
        assert_eq!((u16::from(read.response_code), outcome), (16, Outcome::NotServed));
        assert_eq!(read.edns.unwrap().version(), 0);
    }

    #[test]
    fn a_full_table_fails_and_lies_to_nobody() {
        let source = Example { full: true, ..Example::default() };
        let (message, outcome) = ask(&question("api.example.", RecordType::A), &source);
        assert_eq!((message.response_code, outcome), (Code::ServFail, Outcome::Full));
        assert!(message.answers.is_empty() && message.authorities.is_empty());
        let (_, outcome) = ask(&question("api.example.", RecordType::TXT), &source);
        assert_eq!(outcome, Outcome::NoData);
    }

    #[test]
    fn other_classes_and_operations_are_not_served() {
        for class in [DNSClass::CH, DNSClass::ANY, DNSClass::Unknown(7)] {
            let mut message = question("version.example.", RecordType::TXT);
            message.queries[0].set_query_class(class);
            let (read, outcome) = ask(&message, &Example::default());
            assert_eq!((read.response_code, outcome), (Code::Refused, Outcome::NotServed), "{class}");
        }
        for operation in [OpCode::Status, OpCode::Notify, OpCode::Update, OpCode::Unknown(15)] {
            let mut message = question("api.example.", RecordType::A);
            message.metadata.op_code = operation;
            let (read, outcome) = ask(&message, &Example::default());
            assert_eq!((read.response_code, outcome), (Code::NotImp, Outcome::NotServed), "{operation}");
        }
    }

    #[test]
    fn a_response_and_half_a_header_get_no_answer() {
        let whole = question("api.example.", RecordType::A).to_vec().unwrap();
        for length in 0..12 {
            assert!(answer(&whole[..length], &Example::default()).is_none());
        }
        let mut response = whole;
        response[2] |= 0x80;
        assert!(answer(&response, &Example::default()).is_none());
    }

    /// A header that counts these questions and records, and what follows it.
    fn raw(counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 1, 0];
        counts.iter().for_each(|count| bytes.extend_from_slice(&count.to_be_bytes()));
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn what_cannot_be_read_is_malformed() {
        const QUESTION: &[u8] = b"\x03api\x07example\x00\x00\x01\x00\x01";
        const OPT: &[u8] = b"\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00";
        let with = |rest: &[u8]| [QUESTION, rest].concat();
        for bytes in [
            raw([0, 0, 0, 0], b""),
            raw([2, 0, 0, 0], &with(QUESTION)),
            raw([u16::MAX, 0, 0, 0], QUESTION),
            raw([1, 0, 0, 0], &QUESTION[..QUESTION.len() - 1]),
            raw([1, 0, 0, 0], b"\x03api\xc0\x02\x00\x01\x00\x01"),
            raw([1, 0, 0, 0], b"\x40api\x00\x00\x01\x00\x01"),
            raw([1, 1, 0, 0], &with(OPT)),
            raw([1, 0, 1, 0], &with(OPT)),
            raw([1, 0, 0, 1], QUESTION),
            raw([1, 0, 0, u16::MAX], &with(OPT)),
            raw([1, 0, 0, 2], &with(&[OPT, OPT].concat())),
        ] {
            let answer = answer(&bytes, &Example::default()).unwrap();
            assert_eq!(answer.outcome, Outcome::Malformed, "{bytes:x?}");
            assert_eq!(answer.bytes.len(), 12, "the header alone");
            assert_eq!((answer.bytes[0], answer.bytes[3] & 15), (0x12, 1));
        }
        let sound = answer(&raw([1, 0, 0, 1], &with(OPT)), &Example::default()).unwrap();
        assert_eq!(sound.outcome, Outcome::Address);
    }

    /// Arbitrary bytes, and a sound question with EDNS in which some bytes are others.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let mut sound = question("api.example.", RecordType::A);
        sound.set_edns(Edns::new());
        let sound = sound.to_vec().unwrap();
        let places = prop::collection::vec((0..sound.len(), any::<u8>()), 0..4);
        let mutated = places.prop_map(move |places| {
            let mut bytes = sound.clone();
            places.into_iter().for_each(|(at, byte)| bytes[at] = byte);
            bytes
        });
        prop_oneof![prop::collection::vec(any::<u8>(), 0..96), mutated]
    }

    proptest! {
        #[test]
        fn whatever_comes_an_answer_is_short_and_repeats_what_was_asked(asked in bytes()) {
            if let Some(answer) = answer(&asked, &Example::default()) {
                prop_assert!(answer.bytes.len() <= MOST);
                prop_assert_eq!(&answer.bytes[..2], &asked[..2]);
                let read = Message::from_vec(&answer.bytes).unwrap();
                prop_assert_eq!(read.message_type, MessageType::Response);
                if let Some(query) = read.queries.first() {
                    let length = query.name.len() + usize::from(!query.name.is_root()) + 4;
                    prop_assert_eq!(&answer.bytes[12..12 + length], &asked[12..12 + length]);
                }
            }
        }
    }
}
