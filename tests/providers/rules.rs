//! What rules make of a provider's endpoints: they open others, narrow them, and say what speaks elsewhere.

use super::{Providers, inspected, providers, under, with};
use crate::support::setup::policy;

const ANTHROPIC: &str = "api.anthropic.com";

fn anthropic(destinations: &[&str]) -> Providers {
    providers(&[ANTHROPIC], destinations)
}

#[test]
fn the_endpoints_of_a_rule_take_the_place_of_the_list() {
    let test = anthropic(&["{name: llm, hosts: [api.anthropic.com], action: Inspect, \
                            endpoints: [{methods: [POST], path: /v1/files}, {methods: [GET], path: /v1/messages/batches/**}]}"]);
    test.assert_open(&[
        "POST api.anthropic.com/v1/files",
        "GET api.anthropic.com/v1/messages/batches/b/results",
    ]);
    test.assert_closed(&["POST api.anthropic.com/v1/messages", "GET api.anthropic.com/v1/models"]);
}

#[test]
fn an_equal_rule_without_endpoints_adds_the_list_and_no_more() {
    let test = anthropic(&[
        "{name: files, hosts: [api.anthropic.com], action: Inspect, endpoints: [{path: /v1/files}]}",
        "{name: llm, hosts: [api.anthropic.com], action: Inspect}",
    ]);
    test.assert_open(&["POST api.anthropic.com/v1/files", "POST api.anthropic.com/v1/messages"]);
    test.assert_closed(&["POST api.anthropic.com/v1/messages/batches"]);
}

#[test]
fn the_clusters_list_stays_whatever_a_namespace_opens() {
    let cluster = "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: floor}\n\
                   spec: {destinations: [{name: all, hosts: ['**'], action: Inspect}]}\n---\n";
    let own = policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect, endpoints: [{path: /**}]}"]);
    let test = under(&[ANTHROPIC], &format!("{cluster}{own}"));

    test.assert_open(&["POST api.anthropic.com/v1/messages"]);
    test.assert_closed(&["POST api.anthropic.com/v1/files"]);
    assert!(test.ask("POST api.anthropic.com/v1/files").text().contains("-/floor/all"));
}

#[test]
fn a_rule_says_what_speaks_at_another_host() {
    let host = "llm.example.com";
    let test = providers(
        &[host],
        &["{name: llm, hosts: [llm.example.com], ports: [8443], action: Inspect, provider: OpenAIChat}"],
    );
    test.assert_open(&["POST llm.example.com:8443/v1/chat/completions", "GET llm.example.com:8443/models"]);
    test.assert_closed(&[
        "POST llm.example.com:8443/v1/responses",
        "POST llm.example.com:8443/v1/files",
        "POST llm.example.com:8443/",
    ]);
    let event = test.gateway.wait_for("Request", "Allow");
    let asked = serde_json::json!({"name": "custom", "api": "chat_completions", "stream": false});
    assert_eq!(event["provider"], asked);
}

#[test]
fn a_rule_that_names_a_dialect_of_a_known_host_leaves_that_alone() {
    let test = providers(
        &["api.openai.com"],
        &["{name: llm, hosts: [api.openai.com], action: Inspect, provider: OpenAIResponses}"],
    );
    test.assert_open(&["POST api.openai.com/v1/responses", "GET api.openai.com/v1/models"]);
    test.assert_closed(&["POST api.openai.com/v1/chat/completions", "POST api.openai.com/v1/files"]);
}

#[test]
fn under_audit_what_is_closed_goes_through_and_is_said() {
    let audit = policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect}"])
        .replace("podSelector", "enforcement: Audit\n  podSelector");
    let test = under(&[ANTHROPIC], &audit);

    test.assert_open(&["POST api.anthropic.com/v1/messages", "POST api.anthropic.com/v1/files"]);

    let event = test.gateway.wait_for("Request", "WouldDeny");
    assert_eq!(
        (&event["http"]["path"], &event["decision"]["rule"]),
        (&"/v1/files".into(), &"postern/builtin/endpoint".into())
    );
}

#[test]
fn a_reverse_listener_has_the_same_endpoints_also_under_a_tunnel_rule() {
    for action in ["Inspect", "Tunnel"] {
        let rule = format!("{{name: llm, hosts: [api.anthropic.com], action: {action}}}");
        let test = with(&[ANTHROPIC], &policy(&[&rule]), |setup| setup.reverse("https://api.anthropic.com"));
        let mut connection = test.gateway.reverse();

        connection.send("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(connection.read_answer().status, 200, "{action}");
        connection.send("POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        connection.read_answer().assert_refused_by_provider("postern/builtin/endpoint");
    }
}

#[test]
fn a_reload_changes_what_is_open_on_an_open_connection() {
    let test = inspected(&[ANTHROPIC]);
    let mut connection = test.gateway.agent().tls(ANTHROPIC);
    let files = "POST /v1/files HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 0\r\n\r\n";

    connection.send(files);
    connection.read_answer().assert_refused_by_provider("postern/builtin/endpoint");
    let opened =
        policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect, endpoints: [{path: /v1/files}]}"]);
    test.gateway.reload_policy(&opened, "success");
    connection.send(files);

    assert_eq!(connection.read_answer().status, 200);
}

#[test]
fn a_provider_that_is_denied_by_its_name_is_so_in_its_own_words() {
    for (host, path, status) in
        [("api.openai.com", "/v1/responses", 400), ("api.anthropic.com", "/v1/messages", 403)]
    {
        let test = providers(&[host], &[&format!("{{name: closed, hosts: [{host}], action: Deny}}")]);
        let answer = test.ask(&format!("POST {host}{path}"));
        assert_eq!(answer.status, status);
        answer.assert_refused_by_provider("agents/test/closed");
        assert!(test.upstream.requests().is_empty());
    }
}
