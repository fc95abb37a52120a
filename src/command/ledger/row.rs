//! An event on one line of a terminal.

use crate::event::Read;
use crate::terminal;

/// The longest reason, path or name that is shown, in characters.
const SHOWN: usize = 120;

/// Time, verdict, what it was about, the rule with its reason, and the id.
pub(super) fn row(event: &Read) -> String {
    let count = event.count.filter(|count| *count > 1).map(|count| format!("  ×{count}")).unwrap_or_default();
    // Where nothing was decided by a reason, the connection may have one: the upstream could not be used.
    let failure = event.destination.as_ref().and_then(|to| to.reason.as_ref());
    let rule = match (&event.decision.rule, event.decision.reason.as_ref().or(failure)) {
        (Some(rule), Some(reason)) => format!("  {}: {}", short(rule), short(reason)),
        (Some(text), None) | (None, Some(text)) => format!("  {}", short(text)),
        (None, None) => String::new(),
    };
    let row = format!(
        "{} {:<9} {:<10} {}{count}{rule}  {}",
        short(&event.time),
        short(&event.decision.verdict),
        short(&event.kind),
        about(event),
        short(&event.id)
    );
    terminal::plain(&row).into_owned()
}

/// The tool, or the request, and where it went.
fn about(event: &Read) -> String {
    let call = event.tool_call.as_ref().map(|call| short(&call.name));
    let request = event.http.as_ref().map(|http| {
        let status = http.status.map(|status| format!(" {status}")).unwrap_or_default();
        format!("{} {}{status}", short(&http.method), short(&http.path))
    });
    let to = event.destination.as_ref().map(|to| format!("{}:{}", short(&to.host), to.port));
    match (call.or(request), to) {
        (Some(what), Some(to)) => format!("{what} at {to}"),
        (Some(one), None) | (None, Some(one)) => one,
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
        row(&Read::line(event.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn a_line_says_what_happened_and_by_which_rule() {
        let mut event = json!({
            "apiVersion": "postern.dev/event/v1",
            "id": "01a2008d-747b-7101-8101-010101010101",
            "time": "2026-11-22T00:00:00.123Z",
            "kind": "ToolCall",
            "count": 1,
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
        event["toolCall"] = json!({"name": "\u{1b}[2JBash\nx"});
        event["count"] = json!(3);
        event["decision"] = json!({"verdict": "Allow"});
        insta::assert_snapshot!(shown(&event), @r"2026-11-22T00:00:00.123Z Allow     ToolCall   \u{1b}[2JBash\nx at api.anthropic.com:443  ×3  01a2008d-747b-7101-8101-010101010101");
    }
}
