//! Recorded requests to Anthropic: what policy allows passes as it came, and of what it takes out nothing is left.

use std::fs;

use serde_json::Value;

use super::testing::{FETCHING, Rules, sent};
use crate::call::HostedAction;
use crate::provider::answer::testing::recorded;

fn recordings() -> Vec<(String, String)> {
    let folders = ["anthropic/live", "agentgateway/requests/messages", "tool-choice-matrix"];
    let paths = folders.into_iter().flat_map(recorded);
    let is_request = |name: &str| {
        let is_ours = !name.contains("tool-choice-matrix") || name.contains("/anthropic-");
        is_ours && (name.ends_with(".request.json") || name.contains("/requests/messages/"))
    };
    let named = paths.map(|path| (path.display().to_string(), path)).filter(|(name, _)| is_request(name));
    named.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn what_policy_allows_passes_as_it_came() {
    let everything = Rules { action: HostedAction::Keep, ..FETCHING };
    for (name, body) in recordings() {
        assert_eq!(sent(&body, everything), (body, vec![]), "{name}");
    }
}

#[test]
fn nothing_is_left_of_what_is_taken_out_and_all_else_is() {
    for (name, body) in recordings() {
        let (edited, changes) = sent(&body, FETCHING);
        let before: Value = serde_json::from_str(&body).unwrap();
        let after: Value = serde_json::from_str(&edited).unwrap();
        let tools = |body: &Value| body["tools"].as_array().cloned().unwrap_or_default();
        let mine: Vec<Value> = tools(&before).into_iter().filter(|tool| tool["type"].is_null()).collect();
        let names =
            |tools: &[Value]| -> Vec<Value> { tools.iter().map(|tool| tool["name"].clone()).collect() };
        assert_eq!(names(&tools(&after)), names(&mine), "{name}");
        assert!(after["mcp_servers"].is_null() && after["container"].is_null(), "{name}");
        for kept in ["model", "max_tokens", "system", "stream", "thinking"] {
            assert_eq!(after[kept], before[kept], "{name}");
        }
        assert_eq!(changes.is_empty(), edited == body, "{name}");
        assert_eq!(sent(&edited, FETCHING).0, edited, "{name}");
    }
}
