//! `postern policy list`.

use postern::call::Kind;
use postern::provider::kind;
use serde_json::json;

use super::{place, printed};
use crate::command_line::Place;

/// What a coder's pod is told, but for the revision; `NN` is how many tools that run commands are known.
const CODER: &str = include_str!("coder.txt");

#[test]
fn what_applies_to_a_pod_is_listed_for_people() {
    let said = place().run(&["policy", "list", "policy.yaml", "--labels", "app=coder,team=x"]);
    let (first, rest) = printed(&said).split_once('\n').unwrap();
    assert!(first.starts_with("revision sha256:") && first.ends_with(": enforced"), "{first}");
    let known = format!("{} known", kind::count(Kind::Shell));
    assert_eq!(rest, CODER.replace("NN known", &known));
}

#[test]
fn without_its_labels_a_pod_has_the_policies_of_every_pod_alone() {
    let said = place().run(&["policy", "list", "policy.yaml"]);
    let text = printed(&said);
    assert!(text.contains("only Audit policies select the pod"), "{text}");
    for line in [
        "agents/coding-agents  does not select the pod",
        "Destinations (what is not here is tunnelled)",
        "Read  [-/floor/no-read]",
        "hosted tools                        Strip  [default]",
        "answers that cannot be understood  pass",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("Credentials"), "nothing is said of what there is not: {text}");
}

#[test]
fn where_no_policy_selects_the_pod_that_is_all_there_is_to_say() {
    let place = Place::new();
    place.write("p.yaml", &super::CODING_AGENTS.split("---").next().unwrap().replace("agents", "team"));
    let said = place.run(&["policy", "list", "p.yaml", "--labels", "app=other"]);
    let text = printed(&said);
    assert!(text.contains("no policy selects the pod, so everything is denied"), "{text}");
    assert!(text.ends_with("coding-team  does not select the pod\n"), "{text}");
}

#[test]
fn programs_read_the_same() {
    let said = place().run(&["policy", "list", "policy.yaml", "--labels", "app=coder", "-o", "json"]);
    printed(&said);
    let listed = said.json();
    assert_eq!(listed["enforcement"], "Enforce");
    assert_eq!(listed["notSelected"], json!(["agents/other"]));
    assert_eq!(
        listed["tools"][1],
        json!({
            "rule": "agents/coding-agents/no-force-remove",
            "enforcement": "Enforce",
            "action": "Deny",
            "kind": "Shell",
            "tools": ["mcp__shell__*"],
            "when": r#"any of (command Matches 'rm\s+-rf\s+/'; command Contains "sudo")"#,
            "reason": "Dangerous shell command",
            "mcp": true,
        })
    );
    assert_eq!(
        listed["hostedTools"],
        json!({"action": "Strip", "rule": "agents/coding-agents/hostedTools", "allow": [["web_search_*"]]})
    );
    assert_eq!(
        listed["credentials"][0],
        json!({
            "name": "anthropic",
            "rule": "agents/coding-agents/credentials/anthropic",
            "hosts": ["api.anthropic.com"],
            "ports": [443],
            "require": true,
        })
    );
    assert_eq!(
        listed["limits"][0],
        json!({"name": "tokensPerDay", "most": 5_000_000, "rule": "agents/coding-agents/limits"})
    );
    let yaml = place().run(&["policy", "list", "policy.yaml", "--labels", "app=coder", "-o", "yaml"]);
    assert!(printed(&yaml).contains("toolDefault:\n  action: Allow\n"), "{yaml:?}");
}

#[test]
fn mistakes_are_told_in_place_of_a_list() {
    let place = Place::new();
    place.write("bad.yaml", &super::CODING_AGENTS.replace("requestsPerMinute: 120", "requestsPerMinute: 0"));
    let said = place.run(&["policy", "list", "bad.yaml"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("spec.limits.requestsPerMinute: 0 allows nothing"), "{said:?}");
}

#[test]
fn a_label_without_a_value_is_wrong_usage() {
    for labels in ["app", "=coder"] {
        let said = place().run(&["policy", "list", "policy.yaml", "--labels", labels]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("label"), "{said:?}");
    }
}

#[test]
fn where_tool_rules_do_not_hold_is_said() {
    let place = Place::new();
    let rules = "spec:\n  destinations:\n    - {name: none, hosts: [a.example.com], action: Inspect, provider: None}\n    \
                 - {name: open, hosts: [b.example.com, api.anthropic.com], action: Inspect, endpoints: [{path: /**}]}\n    \
                 - {name: reads, hosts: [c.example.com], action: Inspect, endpoints: [{methods: [GET], path: /**}]}\n    \
                 - {name: passes, hosts: [d.example.com], action: Tunnel}\n";
    let head = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p, namespace: n}\n";
    place.write("p.yaml", &format!("{head}{rules}"));
    let said = place.run(&["policy", "list", "p.yaml"]);
    let (_, section) = printed(&said).split_once("Where tool rules do not hold\n").unwrap();
    let section = section.split("\n\n").next().unwrap();
    let lines: Vec<Vec<&str>> = section.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines.iter().map(|words| (words[0], *words.last().unwrap())).collect::<Vec<_>>(),
        [("a.example.com", "[n/p/none]"), ("b.example.com", "[n/p/open]"), ("d.example.com", "[n/p/passes]")],
        "{section}"
    );
}
