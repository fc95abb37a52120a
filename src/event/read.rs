//! An event as it is read back from a line that anybody may have written.

use serde::Deserialize;

/// The fields of an event by which it is found and shown. Fields that it does not have are empty, and whatever else
/// stands in the line is passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Read {
    api_version: String,
    pub id: String,
    pub time: String,
    pub last: Option<String>,
    pub count: Option<u64>,
    pub kind: String,
    pub session: Option<String>,
    pub destination: Option<ReadDestination>,
    pub http: Option<ReadHttp>,
    pub provider: Option<ReadProvider>,
    pub tool_call: Option<ReadToolCall>,
    pub decision: ReadDecision,
    pub connection: Option<String>,
    pub exchange: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReadDestination {
    pub host: String,
    pub port: u16,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReadHttp {
    pub method: String,
    pub path: String,
    pub status: Option<u16>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadProvider {
    pub model: Option<String>,
    pub response_model: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReadToolCall {
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReadDecision {
    pub verdict: String,
    pub rule: Option<String>,
    pub reason: Option<String>,
}

impl Read {
    /// Reads a line; none where it is no event of a version that is known.
    pub fn line(line: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(line).ok()?;
        (read.api_version == super::API_VERSION && !read.id.is_empty()).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Event, Id, Kind, Timestamp};

    #[test]
    fn an_event_reads_back() {
        let id = Id::new(Timestamp::from_unix_millis(1_795_305_600_123), [7; 10]);
        let event = Event::new(id, Kind::ToolCall, Decision::of(Verdict::WouldDeny));
        let read = Read::line(&serde_json::to_vec(&event).unwrap()).unwrap();
        assert_eq!((read.id, read.kind.as_str(), read.count), (id.to_string(), "ToolCall", Some(1)));
        assert_eq!((read.decision.verdict.as_str(), read.time), ("WouldDeny", event.time.to_string()));
    }

    #[test]
    fn what_is_no_event_is_none() {
        for line in [
            "",
            "{",
            "[]",
            "{}",
            "null",
            r#"{"apiVersion":"postern.dev/event/v2","id":"x"}"#,
            r#"{"apiVersion":"postern.dev/event/v1"}"#,
            r#"{"apiVersion":"postern.dev/event/v1","id":7}"#,
        ] {
            assert_eq!(Read::line(line.as_bytes()), None, "{line}");
        }
    }
}
