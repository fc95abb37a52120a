//! `postern policy init`.

use serde_json::Value;

use super::printed;
use crate::command_line::{Place, Said};

/// The agents, each with the variables that its policy takes keys from.
const AGENTS: [(&str, &[&str]); 6] = [
    ("any", &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]),
    ("claude", &["ANTHROPIC_API_KEY"]),
    ("codex", &["OPENAI_API_KEY"]),
    ("gemini", &["GEMINI_API_KEY"]),
    ("opencode", &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]),
    ("copilot", &["COPILOT_GITHUB_TOKEN"]),
];

fn init(place: &Place, arguments: &[&str]) -> Said {
    place.run(&[&["policy", "init", "--agent"], arguments].concat())
}

fn document(place: &Place, arguments: &[&str]) -> Value {
    let said = init(place, &[arguments, &["-o", "json"]].concat());
    serde_json::from_str(printed(&said)).unwrap()
}

#[test]
fn every_ready_policy_has_nothing_to_check() {
    let place = Place::new();
    for (agent, _) in AGENTS {
        for more in [&[agent][..], &[agent, "--kubernetes"]] {
            let policy = init(&place, more);
            place.write("policy.yaml", printed(&policy));
            let checked = place.run(&["policy", "check", "policy.yaml"]);
            let lines: Vec<&str> = printed(&checked).lines().collect();
            assert!(lines.len() == 1 && lines[0].starts_with("1 policy, "), "{more:?}: {lines:?}");
        }
    }
}

#[test]
fn a_ready_policy_takes_the_key_from_the_variable_that_its_agent_reads() {
    let place = Place::new();
    for (agent, variables) in AGENTS {
        let policy = document(&place, &[agent]);
        let credentials = policy["spec"]["credentials"].as_array().unwrap();
        let named: Vec<&str> = credentials.iter().map(|each| each["fromEnv"].as_str().unwrap()).collect();
        assert_eq!(named, variables, "{agent}");
        assert!(credentials.iter().all(|each| each["require"] == true), "{agent}: {credentials:?}");
    }
}

#[test]
fn for_kubernetes_each_key_is_in_a_secret_and_nothing_else_differs() {
    let place = Place::new();
    for (agent, _) in AGENTS {
        let (mut here, there) = (document(&place, &[agent]), document(&place, &[agent, "--kubernetes"]));
        for credential in here["spec"]["credentials"].as_array_mut().unwrap() {
            let name = credential["name"].clone();
            let fields = credential.as_object_mut().unwrap();
            fields.remove("fromEnv").unwrap();
            let source = serde_json::json!({"name": name, "key": "api-key"});
            fields.insert("secretKeyRef".to_owned(), source);
        }
        assert_eq!(here, there, "{agent}");
    }
}

#[test]
fn the_readmes_policy_is_the_one_for_any_agent() {
    let said = Place::new().run(&["policy", "init"]);
    let readme = include_str!("../../../README.md");
    assert!(
        readme.contains(&format!("```yaml\n{}```\n", printed(&said))),
        "README.md has another first policy"
    );
}

#[test]
fn an_agent_that_nobody_has_a_policy_for_is_wrong_usage_and_the_others_are_named() {
    let said = init(&Place::new(), &["nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    for (agent, _) in AGENTS {
        assert!(said.stderr.contains(agent), "{said:?}");
    }
}
