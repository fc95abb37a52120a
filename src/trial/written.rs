//! Writes the test of an event: what was decided is to be decided again.

use serde_json::{Map, Value, json};

use crate::digest::sha256_hex;
use crate::event::{Event, Kind, ToolCall};
use crate::policy::document::API_VERSION;

/// A `PolicyTest` with the case of an event. A call whose whole input is kept stands in it; of what else was decided the
/// case names the event, and the ledger or the lines at `from`.
///
/// # Errors
/// The event is of no decision that a test can ask for, or it is to be named and nobody knows where it is.
pub fn test_of(event: &Event, from: Option<&str>) -> Result<Value, &'static str> {
    if !matches!(event.kind, Kind::Connection | Kind::Request | Kind::Response | Kind::ToolCall) {
        return Err("no test can ask for it: it is about no connection, request, answer or tool call");
    }
    let mut case = Map::from_iter([("name".to_owned(), json!(format!("as decided in {}", event.id)))]);
    match event.tool_call.as_ref().and_then(whole_call) {
        Some(call) => {
            case.insert("toolCall".to_owned(), call);
        }
        None => {
            let from = from.ok_or(
                "the case has to name the file of the event, and standard input is none: keep the lines in \
                 a file, and name it with --ledger",
            )?;
            case.insert("event".to_owned(), json!(event.id));
            case.insert("from".to_owned(), json!(from));
        }
    }
    let mut expected = Map::from_iter([("verdict".to_owned(), json!(event.decision.verdict))]);
    if let Some(rule) = &event.decision.rule {
        expected.insert("rule".to_owned(), json!(rule.as_str()));
    }
    case.insert("expect".to_owned(), Value::Object(expected));
    Ok(json!({
        "apiVersion": API_VERSION, "kind": "PolicyTest", "policy": ["policy.yaml"], "now": event.time, "cases": [case],
    }))
}

/// The call, where a test of its own can have all that decides.
fn whole_call(call: &ToolCall) -> Option<Value> {
    let text = call.input.as_deref()?;
    let is_whole = call.input_sha256.as_deref() == Some(sha256_hex(text.as_bytes()).as_str());
    let is_inferred = call.kinds_by.as_deref() == Some("Inferred");
    if !is_whole || is_inferred || call.incomplete || call.computed || call.namespace.is_some() {
        return None;
    }
    let object = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let input = match object {
        Some(_) if call.custom => return None,
        // What a mapping cannot say, such as a key that stands twice, is kept as it was written.
        Some(object) if without_space(&object.to_string()) == without_space(text) => object,
        None if !call.custom => return None,
        _ => json!(text),
    };
    Some(json!({"name": call.name, "input": input}))
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}
