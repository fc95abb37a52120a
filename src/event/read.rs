//! Reads events back from lines that anybody may have written.

use super::{API_VERSION, Event};

impl Event {
    /// Reads a line; none where it is no event of a version that is known.
    ///
    /// Fields of later versions are passed over, and their words are read as `Unknown`.
    pub fn read(line: &[u8]) -> Option<Self> {
        // A text whose bytes were checked once is read faster than bytes, each string of which is checked by itself.
        Self::read_text(std::str::from_utf8(line).ok()?)
    }

    /// The same of a line that is known to be text.
    pub fn read_text(line: &str) -> Option<Self> {
        let event: Self = serde_json::from_str(line).ok()?;
        (event.api_version == API_VERSION).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decision::Verdict;
    use crate::event::{Action, Direction, Kind};

    /// An event in which every field is filled.
    fn whole() -> Value {
        let id = "01a2008d-747b-7101-8101-010101010101";
        let extent = json!({"sha256": "00ff", "bytes": 7});
        json!({
            "apiVersion": API_VERSION, "id": id, "time": "2026-11-22T00:00:00.123Z", "sequence": 9,
            "start": id, "count": 2,
            "last": "2026-11-22T00:00:01.000Z", "kind": "ToolCall", "direction": "Inbound", "session": "s-1",
            "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "credential": "anthropic",
            "workload": {"namespace": "agents", "pod": "coder-0", "serviceAccount": "coder", "node": "n"},
            "destination": {
                "host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true, "reason": "why",
            },
            "http": {"method": "PURGE", "path": "/v1/messages", "status": 200, "version": "HTTP/2"},
            "provider": {
                "name": "anthropic", "api": "messages", "model": "m", "models": ["m", "n"], "responseModel": "m-1",
                "requestId": "msg_1", "stream": true, "normalization": "Parsed",
                "tools": [{"name": "Bash", "sha256": "00ff"}],
            },
            "payload": {"bytes": 12, "sha256": "00ff", "encoding": "gzip", "bodyRetained": false},
            "usage": {
                "inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4,
                "reasoningTokens": 5,
            },
            "toolCall": {
                "id": "toolu_1", "name": "Bash", "namespace": "mcp", "custom": true, "kindsBy": "Catalogue",
                "inputSha256": "00ff", "inputBytes": 2, "input": "{}", "hosted": true, "incomplete": true,
                "inside": true, "computed": true,
            },
            "decision": {"verdict": "WouldDeny", "rule": "a/b/c", "reason": "why", "enforcement": "Audit"},
            "connection": id, "exchange": id,
            "transforms": [{"name": "request", "before": extent, "after": extent, "detail": "tools"}],
            "dlp": [{
                "detector": "github-token", "kind": "Secrets", "confidence": "High", "checksum": true, "role": "User",
                "tool": "Bash", "location": "body/messages/0/content", "at": 3, "length": 40, "decoded": ["base64"],
                "action": "Redact", "sha256": "00ff",
            }],
            "chain": "00ff".repeat(16),
        })
    }

    #[test]
    fn an_event_reads_back_and_prints_the_same_line() {
        let line = whole().to_string();
        let event = Event::read(line.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let mut least = whole();
        let required = ["apiVersion", "id", "time", "sequence", "count", "kind", "direction", "decision"];
        least.as_object_mut().unwrap().retain(|field, _| required.contains(&field.as_str()));
        least["decision"] = json!({"verdict": "Deny"});
        let event = Event::read(least.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), least);
    }

    #[test]
    fn words_and_fields_of_a_later_version_make_no_line_unreadable() {
        let mut line = whole();
        line["later"] = json!({"field": [1]});
        line["destination"]["later"] = json!(1);
        for word in [
            "/kind",
            "/direction",
            "/destination/action",
            "/decision/verdict",
            "/decision/enforcement",
            "/http/version",
            "/provider/normalization",
            "/toolCall/kindsBy",
            "/transforms/0/name",
        ] {
            *line.pointer_mut(word).unwrap() = json!("Later");
        }
        let event = Event::read(line.to_string().as_bytes()).unwrap();
        assert_eq!((event.kind, event.direction), (Kind::Unknown, Direction::Unknown));
        assert_eq!(event.destination.unwrap().action, Action::Unknown);
        assert_eq!((event.decision.verdict, event.decision.enforcement), (Verdict::Unknown, None));
        assert_eq!(event.transforms[0].name, "Later");
    }

    #[test]
    fn what_is_no_event_is_none() {
        let mut later = whole();
        later["apiVersion"] = json!("postern.dev/event/v2");
        let mut nameless = whole();
        nameless["id"] = json!("x");
        for line in ["", "{", "[]", "{}", "null", &later.to_string(), &nameless.to_string()] {
            assert!(Event::read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
