//! The trace that an agent says its request belongs to.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        let [version] = octets(parts.next()?)?;
        let trace: [u8; 16] = octets(parts.next()?)?;
        let span: [u8; 8] = octets(parts.next()?)?;
        let [flags] = octets(parts.next()?)?;
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
        let trace = octets(&String::deserialize(deserializer)?);
        let trace = trace.ok_or_else(|| D::Error::custom("expected 32 hex digits"))?;
        Ok(Self { trace, span: [0; 8], sampled: false })
    }
}

/// Lower-case hex of exactly `N` octets.
fn octets<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hex.len() != 2 * N || !hex.as_bytes().iter().all(lower) {
        return None;
    }
    let mut octets = [0; N];
    for (number, octet) in octets.iter_mut().enumerate() {
        *octet = u8::from_str_radix(hex.get(2 * number..2 * number + 2)?, 16).ok()?;
    }
    Some(octets)
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
