//! An event on one line of a terminal.

use crate::decision::RuleId;
use crate::event::Event;
use crate::terminal;

/// The longest reason, path or name that is shown, in characters.
const SHOWN: usize = 120;

/// Writes time, verdict, subject, the rule with its reason, and the id.
pub(super) fn row(event: &Event) -> String {
    let count = if event.count > 1 { format!("  ×{}", event.count) } else { String::new() };
    // Where nothing was decided by a reason, the connection may have one: the upstream could not be used.
    let failure = event.destination.as_ref().and_then(|to| to.reason.as_deref());
    let rule = event.decision.rule.as_ref().map(RuleId::as_str);
    let rule = match (rule, event.decision.reason.as_deref().or(failure)) {
        (Some(rule), Some(reason)) => format!("  {}: {}", short(rule), short(reason)),
        (Some(text), None) | (None, Some(text)) => format!("  {}", short(text)),
        (None, None) => String::new(),
    };
    let row = format!(
        "{} {:<9} {:<10} {}{count}{rule}  {}",
        event.time,
        event.decision.verdict.as_str(),
        event.kind.as_str(),
        about(event),
        event.id
    );
    terminal::plain(&row).into_owned()
}

/// The tool, or the request, where it went, and which model of a route answered.
fn about(event: &Event) -> String {
    let call = event.tool_call.as_ref().map(|call| short(&call.name));
    let request = event.http.as_ref().map(|http| {
        let status = http.status.map(|status| format!(" {status}")).unwrap_or_default();
        format!("{} {}{status}", short(&http.method), short(&http.path))
    });
    let to = event.destination.as_ref().map(|to| format!("{}:{}", short(&to.host), to.port));
    let route = event.provider.as_ref().and_then(|provider| provider.route.as_ref());
    let by = route.map(|route| format!(" by {}", short(&route.label))).unwrap_or_default();
    match (call.or(request), to) {
        (Some(subject), Some(to)) => format!("{subject} at {to}{by}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => "-".to_owned(),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(event: &serde_json::Value) -> String {
        row(&Event::read(event.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn a_line_says_what_happened_and_by_which_rule() {
        let mut event = json!({
            "apiVersion": "postern.dev/event/v1",
            "id": "01a2008d-747b-7101-8101-010101010101",
            "time": "2026-11-22T00:00:00.123Z",
            "sequence": 1,
            "count": 1,
            "kind": "ToolCall",
            "direction": "Inbound",
            "destination": {"host": "api.anthropic.com", "port": 443},
            "toolCall": {"name": "Bash"},
            "decision": {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"},
        });
        insta::assert_snapshot!(shown(&event), @"2026-11-22T00:00:00.123Z Deny      ToolCall   Bash at api.anthropic.com:443  agents/coders/no-rm: Not here  01a2008d-747b-7101-8101-010101010101");
        let mut failed = event.clone();
        failed["kind"] = json!("Response");
        failed["toolCall"] = json!(null);
        failed["http"] = json!({"method": "POST", "path": "/v1/messages", "status": 502});
        failed["destination"]["reason"] = json!("the host was not found");
        failed["decision"] = json!({"verdict": "Allow", "rule": "agents/coders/api"});
        insta::assert_snapshot!(shown(&failed), @"2026-11-22T00:00:00.123Z Allow     Response   POST /v1/messages 502 at api.anthropic.com:443  agents/coders/api: the host was not found  01a2008d-747b-7101-8101-010101010101");
        failed["http"]["status"] = json!(200);
        failed["destination"]["reason"] = json!(null);
        failed["provider"] = json!({"name": "anthropic", "api": "messages", "route": {"rule": "agents/coders/small", "label": "coder"}});
        insta::assert_snapshot!(shown(&failed), @"2026-11-22T00:00:00.123Z Allow     Response   POST /v1/messages 200 at api.anthropic.com:443 by coder  agents/coders/api  01a2008d-747b-7101-8101-010101010101");
        event["toolCall"] = json!({"name": "\u{1b}[2JBash\nx"});
        event["count"] = json!(3);
        event["decision"] = json!({"verdict": "Allow"});
        insta::assert_snapshot!(shown(&event), @r"2026-11-22T00:00:00.123Z Allow     ToolCall   \u{1b}[2JBash\nx at api.anthropic.com:443  ×3  01a2008d-747b-7101-8101-010101010101");
    }
}
