//! What is answered to one DNS question: everything is decided here, and nothing is asked of anybody else.

use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Header, Message, MessageType, Metadata, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

use super::table::Synthetic;
use crate::policy::destination::Ruling;
use crate::policy::name::DnsName;

/// The most bytes that an answer can have: what every client takes over UDP (RFC 1035 section 4.2.1), so that none is
/// ever cut short.
pub const MOST: usize = 512;

/// How long clients keep an address, in seconds (design section 3).
const TTL: u32 = 60;
/// How long they keep that there is none (RFC 2308 section 5): short, since policy may change its mind.
const NEGATIVE_TTL: u32 = 5;
/// What is said to be taken over UDP (RFC 6891 section 6.2.5).
const PAYLOAD: u16 = 1_232;
/// Names with a meaning of their own, with all below them: this host (RFC 6761 section 6.3), and addresses told by
/// number. The hosts file knows the first, and nothing is known of the others.
const UNKNOWN: [&str; 3] = ["localhost", "in-addr.arpa", "ip6.arpa"];

/// What an answer is made from.
pub trait Source {
    /// Whether policy lets a name be answered.
    ///
    /// # Errors
    /// The denial, where it does not.
    fn judge(&self, name: &DnsName) -> Result<(), Ruling>;

    /// The addresses that stand for a name; `None` where all are in use.
    fn addresses(&self, name: &DnsName) -> Option<Synthetic>;

    /// Whether connections can be made over IPv6 alone.
    fn is_ipv6_only(&self) -> bool;
}

/// What is sent, and what that was.
#[derive(Debug)]
pub struct Answer {
    pub bytes: Vec<u8>,
    pub outcome: Outcome,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Address,
    /// The name is answered, and has nothing of the type that was asked for.
    NoData,
    /// Policy denies the name.
    Denied(DnsName, Ruling),
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
    let draft = Draft::new(&header.metadata);
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
struct Draft {
    message: Message,
}

impl Draft {
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
            let mut own = Edns::new();
            own.set_max_payload(PAYLOAD).set_dnssec_ok(edns.flags().dnssec_ok);
            self.message.set_edns(own);
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
        if let Err(ruling) = source.judge(&canonical) {
            return self.without(ResponseCode::NXDomain, Outcome::Denied(canonical, ruling));
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

    /// That there is nothing, and for how long (RFC 2308 section 3).
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
