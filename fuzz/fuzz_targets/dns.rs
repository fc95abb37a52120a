//! Whatever is sent to the resolver, it answers no response, and what it answers is short and reads as what it is.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Message, MessageType};
use libfuzzer_sys::fuzz_target;
use postern::decision::Decision;
use postern::dns::answer::{MOST, Outcome, Source, answer};
use postern::dns::table::Synthetic;
use postern::name::host::DnsName;

/// Answers names by their length and their last letter, so that each outcome is near.
struct Letters;

impl Source for Letters {
    fn judge(&self, name: &DnsName) -> Result<(), Decision> {
        assert_eq!(DnsName::parse(name.as_str()).as_ref(), Ok(name), "policy is asked canonical names");
        if name.as_str().ends_with('x') { Err(Decision::builtin("default-deny", "")) } else { Ok(()) }
    }

    fn addresses(&self, name: &DnsName) -> Option<Synthetic> {
        let used = name.as_str().len() % 2 == 0;
        used.then_some(Synthetic { v4: Ipv4Addr::new(198, 18, 0, 1), v6: Ipv6Addr::LOCALHOST })
    }

    fn is_ipv6_only(&self) -> bool {
        false
    }
}

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(4 << 10)];
    let Some(answer) = answer(bytes, &Letters) else { return };
    assert!(bytes.len() >= 12 && bytes[2] & 0x80 == 0, "an answer to a response");
    assert!(answer.bytes.len() <= MOST);
    assert_eq!(answer.bytes[..2], bytes[..2], "another id");
    let message = Message::from_vec(&answer.bytes).expect("an answer that cannot be read");
    assert_eq!(message.message_type, MessageType::Response);
    assert_eq!(message.answers.len(), usize::from(answer.outcome == Outcome::Address));
    if let Some(query) = message.queries.first() {
        let length = query.name.len() + usize::from(!query.name.is_root()) + 4;
        assert_eq!(answer.bytes[12..12 + length], bytes[12..12 + length], "another question");
    }
});
