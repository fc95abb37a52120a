//! Rules in CEL decide about requests by their facts.

use super::{INSPECT_API, inspected_with};
use crate::support::setup::policy;

fn rules(rules: &str) -> String {
    policy(&[INSPECT_API]).replace("podSelector", &format!("rules:\n{rules}  podSelector"))
}

#[test]
fn a_request_for_which_a_rule_holds_is_refused_with_its_reason_and_others_pass() {
    let text = rules(
        "    - {name: posts, when: 'event.http.method == \"POST\" && hostIn(event.destination.host, \"*.example.com\")', \
         action: Deny, reason: No posts here}\n    \
         - {name: seen, when: 'event.http.path == \"/echo\" && event.payload.bytes == 0', action: Audit}\n",
    );
    let test = inspected_with(|setup| setup.policy(&text));

    let denied = test.gateway.agent().request("POST", "https://api.example.com/echo", &[], b"hello");
    denied.assert_refused(403, "agents/test/posts");
    assert!(denied.text().contains("No posts here"), "{}", denied.text());
    assert!(test.upstream.requests().is_empty());

    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    let recorded = test
        .gateway
        .wait_for_event("the record of the rule", |event| event["decision"]["rule"] == "agents/test/seen");
    assert_eq!((&recorded["kind"], &recorded["decision"]["verdict"]), (&"Policy".into(), &"Audit".into()));
}

/// J5: no pattern and no expression costs more than its bound.
#[test]
fn a_rule_that_cannot_be_evaluated_refuses() {
    let text = rules("    - {name: odd, when: '1 / (event.destination.port - 443) == 1', action: Deny}\n");
    let test = inspected_with(|setup| setup.policy(&text));

    for _ in 0..3 {
        test.gateway
            .agent()
            .get("https://api.example.com/echo")
            .assert_refused(403, "postern/builtin/evaluation-error");
    }
    assert!(test.upstream.requests().is_empty());
    let log = test.gateway.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("cannot be evaluated")).collect();
    assert_eq!(told.len(), 1, "once a minute: {log}");
    assert!(told[0].contains("agents/test/odd"), "{log}");
}

#[test]
fn what_only_audit_policies_deny_goes_on_and_is_recorded() {
    let text = rules("    - {name: gets, when: 'event.http.method == \"GET\"', action: Deny}\n")
        .replace("podSelector", "enforcement: Audit\n  podSelector");
    let test = inspected_with(|setup| setup.policy(&text));

    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    test.gateway.wait_for_event("what the rule would do", |event| {
        event["decision"]["rule"] == "agents/test/gets" && event["decision"]["verdict"] == "WouldDeny"
    });
}

#[test]
fn a_long_path_hides_nothing_from_a_rule() {
    let text = rules("    - {name: ends, when: 'event.http.path.endsWith(\"/secret\")', action: Deny}\n");
    let test = inspected_with(|setup| setup.policy(&text));
    let deep = |length: usize| format!("https://api.example.com/{}/%73ecret", "a".repeat(length));

    test.gateway.agent().get(&deep(3)).assert_refused(403, "agents/test/ends");
    test.gateway.agent().get(&deep(8_000)).assert_refused(403, "agents/test/ends");
    test.gateway.agent().get(&deep(20_000)).assert_refused(403, "postern/builtin/evaluation-error");
    assert!(test.upstream.requests().is_empty());
}
