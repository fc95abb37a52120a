//! Tests of the marks of changes.

use super::*;
use crate::policy::document;

/// The changes from one spec to another, as `mark rule what`.
fn changed(old: &str, new: &str) -> Vec<String> {
    let parsed = |spec: &str| {
        let text = format!(
            "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: p, namespace: n}}, spec: {{{spec}}}}}"
        );
        document::parse("p.yaml", &text).unwrap()
    };
    let shown = |change: PolicyChange| format!("{} {} {}", change.mark.as_str(), change.rule, change.what);
    changes(&parsed(old), &parsed(new)).into_iter().map(shown).collect()
}

#[test]
fn each_change_is_marked_by_what_it_lets_through() {
    let rule = |fields: &str| format!("destinations: [{{name: d, {fields}}}]");
    let inspect = |hosts: &str| rule(&format!("hosts: [{hosts}], action: Inspect"));
    let listed = |path: &str| {
        rule(&format!("hosts: [a.example], action: Inspect, endpoints: [{{methods: [GET], path: {path}}}]"))
    };
    let provider = |host: &str| {
        format!("modelProviders: [{{name: v, endpoint: 'https://{host}/v1', dialect: OpenAIChat}}]")
    };
    let tools =
        |names: &str, action: &str| format!("tools: [{{name: t, tools: [{names}], action: {action}}}]");
    for (old, new, expected) in [
        (inspect("a.example"), inspect("a.example, b.example"), "looser n/p/d hosts: + b.example"),
        (
            inspect("'*.b.example'"),
            inspect("'**.b.example'"),
            "looser n/p/d hosts: - *.b.example, + **.b.example",
        ),
        (inspect("a.example"), inspect("b.example"), "other n/p/d hosts: - a.example, + b.example"),
        (rule("hosts: [a.example], action: Deny"), String::new(), "looser n/p/d gone: Deny a.example"),
        (String::new(), inspect("a.example"), "looser n/p/d new: Inspect a.example"),
        (
            inspect("a.example"),
            rule("hosts: [a.example], action: Tunnel"),
            "looser n/p/d action: Inspect becomes Tunnel",
        ),
        (listed("/a/*/b"), listed("/a/**"), "looser n/p/d endpoints: - GET /a/*/b, + GET /a/**"),
        (listed("/a/**"), listed("/a/*"), "tighter n/p/d endpoints: - GET /a/**, + GET /a/*"),
        (listed("/a"), listed("/b"), "other n/p/d endpoints: - GET /a, + GET /b"),
        (inspect("a.example"), listed("/a"), "tighter n/p/d endpoints are listed"),
        (tools("Bash", "Deny"), tools("Bash, Read", "Deny"), "tighter n/p/t tools: + Read"),
        (tools("Bash", "Allow"), tools("Bash, Read", "Allow"), "looser n/p/t tools: + Read"),
        (tools("Bash", "Deny"), tools("Bash", "Allow"), "looser n/p/t action"),
        (
            inspect("a.example"),
            rule("hosts: [a.example], action: Inspect, reach: Routes"),
            "tighter n/p/d reach: Origin becomes Routes",
        ),
        (
            rule("hosts: [a.example], action: Inspect, reach: Routes"),
            inspect("a.example"),
            "looser n/p/d reach: Routes becomes Origin",
        ),
        (String::new(), provider("b.example"), "looser n/p/v new: requests to https://b.example/v1"),
        (provider("b.example"), String::new(), "tighter n/p/v gone: requests to https://b.example/v1"),
        (
            provider("b.example"),
            provider("c.example"),
            "other n/p/v endpoint: https://b.example/v1 becomes https://c.example/v1",
        ),
        (
            provider("b.example"),
            provider("b.example").replace("}]", ", allowAddresses: [10.0.0.0/8]}]"),
            "looser n/p/v allowAddresses: + 10.0.0.0/8",
        ),
        (String::new(), "toolDefault: Deny".to_owned(), "tighter n/p/toolDefault Allow becomes Deny"),
        (String::new(), "hostedTools: {allow: [x]}".to_owned(), "looser n/p/hostedTools allow: + x"),
        (
            "limits: {tokensPerDay: 5}".to_owned(),
            "limits: {tokensPerDay: 9}".to_owned(),
            "looser n/p/limits tokensPerDay: 5 becomes 9",
        ),
        (
            String::new(),
            "limits: {tokensPerDay: 9}".to_owned(),
            "tighter n/p/limits tokensPerDay: none becomes 9",
        ),
        (String::new(), "audit: {toolInputs: Full}".to_owned(), "other n/p/audit changed"),
        (String::new(), "enforcement: Audit".to_owned(), "looser n/p/enforcement Enforce becomes Audit"),
    ] {
        assert_eq!(changed(&old, &new), [expected], "{old} {new}");
    }
}

#[test]
fn what_stays_is_no_change_and_a_policy_that_goes_is_told_with_its_rules() {
    let spec = "destinations: [{name: d, hosts: [a.example], action: Inspect}], tools: [{name: t, tools: [x], action: Deny}]";
    assert!(changed(spec, spec).is_empty());
    let text = format!(
        "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: p, namespace: n}}, spec: {{{spec}}}}}"
    );
    let documents = document::parse("p.yaml", &text).unwrap();
    let marks: Vec<(Mark, String)> =
        changes(&documents, &[]).into_iter().map(|change| (change.mark, change.rule)).collect();
    let expected = [(Mark::Looser, "n/p/t"), (Mark::Tighter, "n/p/d"), (Mark::Other, "n/p")];
    assert_eq!(marks, expected.map(|(mark, rule)| (mark, rule.to_owned())));
}
