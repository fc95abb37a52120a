//! What is said of requests to providers, in events and metrics.

use serde_json::json;

use super::inspected;

#[test]
fn the_events_of_a_request_name_the_provider_and_the_api() {
    let test = inspected(&["us-east5-aiplatform.googleapis.com"]);
    let models =
        "us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models";
    test.assert_open(&[&format!("POST {models}/claude:rawPredict")]);
    test.assert_closed(&[&format!("POST {models}/claude:predict")]);

    let asked = json!({"name": "gcp.vertex_ai", "api": "messages", "model": "claude", "stream": false});
    assert_eq!(test.gateway.wait_for("Request", "Allow")["provider"], asked);
    let answered = &test.gateway.wait_for("Response", "Allow")["provider"];
    assert_eq!((&answered["name"], &answered["api"]), (&asked["name"], &asked["api"]));
    let denied = test.gateway.wait_for("Request", "Deny");
    assert_eq!(denied["provider"], json!({"name": "gcp.vertex_ai", "api": "other"}));
}

#[test]
fn requests_are_counted_by_provider_api_and_verdict() {
    let test = inspected(&["api.anthropic.com", "api.example.com"]);
    let count = |labels: &[(&str, &str)]| test.gateway.metric("postern_requests_total", labels);
    assert_eq!(count(&[("provider", "anthropic")]), 0.0);

    test.assert_open(&["POST api.anthropic.com/v1/messages", "POST api.example.com/v1/tasks"]);
    test.assert_closed(&["POST api.anthropic.com/v1/files", "GET api.anthropic.com/v1/sessions/a"]);

    assert_eq!(count(&[("provider", "anthropic"), ("api", "messages"), ("verdict", "Allow")]), 1.0);
    assert_eq!(count(&[("provider", "anthropic"), ("api", "other"), ("verdict", "Deny")]), 2.0);
    assert_eq!(count(&[("provider", "none"), ("api", "none"), ("verdict", "Allow")]), 1.0);
}

#[test]
fn events_of_other_hosts_name_no_provider() {
    let test = inspected(&["api.example.com"]);
    test.assert_open(&["POST api.example.com/v1/tasks"]);
    assert!(test.gateway.wait_for("Request", "Allow").get("provider").is_none());
}

#[test]
fn the_event_of_a_refusal_has_the_status_that_was_sent() {
    for (line, status) in [("POST api.openai.com/v1/files", 400), ("POST api.anthropic.com/v1/files", 403)] {
        let test = inspected(&["api.openai.com", "api.anthropic.com"]);
        assert_eq!(test.ask(line).status, status);
        assert_eq!(test.gateway.wait_for("Request", "Deny")["http"]["status"], status);
    }
}
