//! The trace that an agent says its request belongs to.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::unhex;
use crate::id::Text;

/// A `traceparent` header (W3C Trace Context, section 3.2). Events show the trace's id alone, as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: [u8; 16],
    /// The agent's span, the parent of the exchange's.
    pub span: [u8; 8],
    /// Whether the agent records the trace.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads the header; none where it is malformed, as the recommendation asks.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version] = unhex(parts.next()?.as_bytes())?;
        let trace: [u8; 16] = unhex(parts.next()?.as_bytes())?;
        let span: [u8; 8] = unhex(parts.next()?.as_bytes())?;
        let [flags] = unhex(parts.next()?.as_bytes())?;
        // Later versions may add parts; 255 is none.
        let known = version != 0xff && (version != 0 || parts.next().is_none());
        let named = trace != [0; 16] && span != [0; 8];
        (known && named).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(self.trace)))
    }
}

/// Reads the trace's id back; an event has no more of the header.
impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let of = |trace| Self { trace, span: [0; 8], sampled: false };
        deserializer.deserialize_str(Text(|text: &str| unhex(text.as_bytes()).map(of).ok_or("32 hex digits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_traceparent_names_a_trace_a_span_and_whether_it_is_recorded() {
        let parent = TraceParent::parse(&format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!(serde_json::to_value(parent).unwrap(), TRACE);
        assert_eq!(parent.span, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.sampled);
        assert!(!TraceParent::parse(&format!("00-{TRACE}-00f067aa0ba902b7-00")).unwrap().sampled);
    }

    #[test]
    fn a_later_version_may_say_more() {
        assert!(TraceParent::parse(&format!("01-{TRACE}-00f067aa0ba902b7-01-more")).is_some());
    }

    #[test]
    fn what_is_malformed_names_nothing() {
        for bad in [
            String::new(),
            TRACE.to_owned(),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-00f067aa0ba902b-01"),
            format!("00-{TRACE}-é0f067aa0ba902b-01"),
        ] {
            assert_eq!(TraceParent::parse(&bad), None, "{bad}");
        }
    }
}
