//! An event as a row of the page: what lists, filters and charts need, bounded.

use crate::decision::RuleId;
use crate::event::{Event, Usage};

/// The longest text of a row, in bytes. The event whole has the rest.
const MOST_TEXT: usize = 1 << 10;

/// The texts of a row, in the order in which the page expects them.
pub(super) const TEXTS: [&str; 12] = [
    "session", "pod", "start", "exchange", "host", "rule", "reason", "request", "api", "model", "tool",
    "action",
];

/// What the page shows of an event before somebody asks for the whole of it.
pub(super) struct Row {
    /// In milliseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) count: u64,
    pub(super) kind: &'static str,
    pub(super) verdict: &'static str,
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) input_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    /// As [`TEXTS`] names them; empty where there is none.
    pub(super) texts: [Box<str>; TEXTS.len()],
}

impl Row {
    pub(super) fn of(event: &Event) -> Self {
        let destination = event.destination.as_deref();
        let provider = event.provider.as_ref();
        let call = event.tool_call.as_ref();
        let usage: Usage = event.usage.unwrap_or_default();
        // Tokens are of the model that answered, where a route chose it.
        let model = provider.and_then(|of| match &of.route {
            Some(route) => of.response_model.as_deref().or(Some(&*route.model)),
            None => of.model.as_deref().or(of.response_model.as_deref()),
        });
        let failure = destination.and_then(|to| to.reason.as_deref());
        let workload = event.workload.as_deref();
        let texts = [
            event.session.as_deref().unwrap_or_default(),
            &workload.map(|of| format!("{}/{}", of.namespace, of.pod)).unwrap_or_default(),
            &event.start.map(|id| id.to_string()).unwrap_or_default(),
            &event.exchange.map(|id| id.to_string()).unwrap_or_default(),
            &destination.map(|to| format!("{}:{}", to.host, to.port)).unwrap_or_default(),
            event.decision.rule.as_ref().map(RuleId::as_str).unwrap_or_default(),
            event.decision.reason.as_deref().or(failure).unwrap_or_default(),
            &event.http.as_ref().map(|http| format!("{} {}", http.method, http.path)).unwrap_or_default(),
            &provider.map(|of| format!("{} {}", of.name, of.api)).unwrap_or_default(),
            model.unwrap_or_default(),
            call.map(|call| call.name.as_str()).unwrap_or_default(),
            &destination.map(|to| format!("{:?}", to.action)).unwrap_or_default(),
        ];
        Self {
            time: event.time.unix_millis(),
            count: event.count,
            kind: event.kind.as_str(),
            verdict: event.decision.verdict.as_str(),
            status: event.http.as_ref().and_then(|http| http.status).unwrap_or_default(),
            bytes: event.payload.as_ref().map(|payload| payload.bytes).unwrap_or_default(),
            input_tokens: usage.input_tokens.unwrap_or_default(),
            cached_tokens: usage.cache_read_tokens.unwrap_or_default(),
            output_tokens: usage.output_tokens.unwrap_or_default(),
            texts: texts.map(shortened),
        }
    }

    /// What the row holds, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

fn shortened(text: &str) -> Box<str> {
    if text.len() <= MOST_TEXT {
        return text.into();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST_TEXT)]).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_what_lists_need_and_long_texts_are_cut() {
        let event = json!({
            "apiVersion": "postern.dev/event/v1", "id": "01a2008d-747b-7101-8101-010101010101",
            "time": "2026-11-22T00:00:00.123Z", "sequence": 1, "count": 2, "kind": "Response", "direction": "Inbound",
            "session": "é".repeat(10_000), "workload": {"namespace": "agents", "pod": "coder-0"},
            "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true, "reason": "late"},
            "http": {"method": "POST", "path": "/v1/messages", "status": 502, "version": "HTTP/2"},
            "provider": {"name": "anthropic", "api": "messages", "model": "m"},
            "usage": {"inputTokens": 7, "cacheReadTokens": 5, "outputTokens": 3},
            "decision": {"verdict": "Allow"},
        });
        let row = Row::of(&Event::read(event.to_string().as_bytes()).unwrap());
        let text = |name: &str| &*row.texts[TEXTS.iter().position(|of| *of == name).unwrap()];
        assert_eq!(text("session").len(), MOST_TEXT + "…".len());
        assert_eq!(
            (text("pod"), text("host"), text("action")),
            ("agents/coder-0", "api.anthropic.com:443", "Inspect")
        );
        assert_eq!((text("request"), text("reason"), text("model")), ("POST /v1/messages", "late", "m"));
        assert_eq!((text("api"), text("tool"), text("rule")), ("anthropic messages", "", ""));
        assert_eq!((row.status, row.input_tokens, row.cached_tokens, row.output_tokens), (502, 7, 5, 3));
    }

    #[test]
    fn the_model_of_a_routed_request_is_the_one_that_answered() {
        let of = |more: serde_json::Value| {
            let mut provider = json!({"name": "anthropic", "api": "messages", "model": "asked", "route": {"model": "chosen"}});
            provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let event = json!({
                "apiVersion": "postern.dev/event/v1", "id": "01a2008d-747b-7101-8101-010101010101",
                "time": "2026-11-22T00:00:00.123Z", "sequence": 1, "count": 1, "kind": "Response", "direction": "Inbound",
                "provider": provider, "decision": {"verdict": "Allow"},
            });
            let row = Row::of(&Event::read(event.to_string().as_bytes()).unwrap());
            row.texts[TEXTS.iter().position(|of| *of == "model").unwrap()].to_string()
        };
        assert_eq!(of(json!({})), "chosen");
        assert_eq!(of(json!({"responseModel": "served"})), "served");
        assert_eq!(of(json!({"route": null})), "asked");
    }
}
