//! `postern policy check`.

use serde_json::json;

use crate::command_line::Place;

const GOOD: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  podSelector: {matchLabels: {app: coder}}
  destinations:
    - {name: anthropic, hosts: [api.anthropic.com], action: Inspect}
    - {name: packages, hosts: [packages.example.com], action: Tunnel}
";

const CLUSTER: &str = "\
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {name: floor}
spec:
  destinations:
    - {name: metadata, hosts: [metadata.example.com], action: Deny}
";

#[test]
fn good_policies_are_counted_with_their_revision() {
    let place = Place::new();
    place.write("policies/a.yaml", &format!("{GOOD}---\n{CLUSTER}"));
    place.write("more.yaml", &GOOD.replace("coders", "others"));
    let said = place.run(&["policy", "check", "policies", "more.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.stdout.starts_with("3 policies, 5 rules, revision sha256:"), "{said:?}");
}

#[test]
fn the_first_policy_of_the_documents_is_checked_as_they_say() {
    let page = include_str!("../../../docs/operating.md").replace("\n   ", "\n");
    let (_, rest) = page.split_once("The policy, as `policy.yaml`:\n\n```yaml\n").unwrap();
    let (policy, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("$ postern policy check policy.yaml\n").unwrap();
    let (expected, _) = rest.split_once("$ ").unwrap();
    let place = Place::new();
    place.write("policy.yaml", policy);
    assert_eq!(place.run(&["policy", "check", "policy.yaml"]).stdout, expected);
}

#[test]
fn what_rules_about_directories_do_not_judge_is_said() {
    let place = Place::new();
    let stay = "  tools:\n    - {name: stay, kind: Write, action: Deny, \
                when: {not: {param: paths, operator: Within, values: [/w]}}}\n";
    let more = "    - {name: more, kind: Read, action: Deny, \
                when: {any: [{param: paths, operator: NotWithin, values: [/w]}]}}\n";
    place.write("a.yaml", &format!("{GOOD}{stay}{more}"));
    let said = place.run(&["policy", "check", "a.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let note = said.stdout.lines().nth(1).unwrap_or_default();
    assert!(
        note.starts_with("note: stay and 1 more: Within and NotWithin judge absolute paths; a relative"),
        "{said:?}"
    );
    place.write("b.yaml", GOOD);
    place.write("c.yaml", &format!("{GOOD}{stay}  shell: {{directory: /w}}\n"));
    for silent in ["b.yaml", "c.yaml"] {
        let said = place.run(&["policy", "check", silent]);
        assert!(said.code == Some(0) && !said.stdout.contains("note:"), "{said:?}");
    }
}

#[test]
fn edits_that_are_denied_are_said_to_need_a_workspace() {
    let place = Place::new();
    for (edits, is_told) in [("{match: Deny}", true), ("{overwrite: Deny}", true), ("{match: Allow}", false)]
    {
        place.write("a.yaml", &format!("{GOOD}  edits: {edits}\n"));
        let said = place.run(&["policy", "check", "--strict", "a.yaml"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let note = said.stdout.contains("note: agents/coders: spec.edits is judged by gateways that have");
        assert_eq!(note, is_told, "{said:?}");
    }
}

#[test]
fn a_host_that_sounds_like_a_provider_and_says_nothing_is_warned_of() {
    let place = Place::new();
    let hosts = |more: &str| {
        let rule =
            format!("{{name: models, hosts: [llm.corp.example, www.example.ai], action: Inspect{more}}}");
        GOOD.replace("{name: anthropic, hosts: [api.anthropic.com], action: Inspect}", &rule)
    };
    place.write("silent.yaml", &hosts(""));
    let said = place.run(&["policy", "check", "silent.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains(": spec.destinations[0].hosts[0]: models inspects llm.corp.example"),
        "{said:?}"
    );
    assert_eq!(said.stdout.matches("warning").count(), 1, "{said:?}");
    place.write("says.yaml", &hosts(", provider: None"));
    let said = place.run(&["policy", "check", "says.yaml"]);
    assert!(said.code == Some(0) && !said.stdout.contains("warning"), "{said:?}");
}

#[test]
fn good_policies_are_an_empty_list_of_problems() {
    let place = Place::new();
    place.write("a.yaml", GOOD);
    let said = place.run(&["policy", "check", "a.yaml", "-o", "json"]);
    assert_eq!((said.code, said.json()), (Some(0), json!([])), "{said:?}");
}

#[test]
fn everything_that_is_wrong_is_said_with_file_line_and_column() {
    let place = Place::new();
    let bad =
        GOOD.replace("action: Inspect", "action: Inspct").replace("hosts: [packages", "hots: [packages");
    place.write("policies/bad.yaml", &bad);
    place.write("policies/worse.yaml", "kind: [\n");
    let said = place.run(&["policy", "check", "policies", "missing.yaml"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    for place in [
        "policies/bad.yaml:7:",
        "policies/bad.yaml:8:",
        "policies/worse.yaml:",
        "missing.yaml: cannot be read",
    ] {
        assert!(said.stderr.contains(place), "{place} in {said:?}");
    }
}

#[test]
fn problems_are_a_list_for_programs() {
    let place = Place::new();
    place.write("bad.yaml", &GOOD.replace("action: Tunnel", "action: Tunel"));
    let said = place.run(&["-o", "json", "policy", "check", "bad.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""), "{said:?}");
    let problem = &said.json()[0];
    assert_eq!((&problem["file"], &problem["line"]), (&json!("bad.yaml"), &json!(8)), "{said:?}");
    assert_eq!(problem["path"], "spec.destinations[1].action", "{said:?}");
    let yaml = place.run(&["-o", "yaml", "policy", "check", "bad.yaml"]);
    assert_eq!(yaml.code, Some(1), "{yaml:?}");
    assert!(yaml.stdout.contains("file: bad.yaml\n"), "{yaml:?}");
}

#[test]
fn a_source_without_any_document_is_a_problem() {
    let place = Place::new();
    place.write("empty.yaml", "# nothing\n");
    std::fs::create_dir(place.path().join("bare")).unwrap();
    for path in ["empty.yaml", "bare"] {
        let said = place.run(&["policy", "check", path]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains(path), "{said:?}");
    }
}

#[test]
fn what_is_hardly_meant_is_warned_of_with_its_place_and_fails_where_that_is_asked_for() {
    let place = Place::new();
    let slip = GOOD.replace("packages.example.com", "api.opanai.com");
    place.write("slip.yaml", &slip);
    let said = place.run(&["policy", "check", "slip.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let warning = said.stdout.lines().last().unwrap();
    assert!(warning.starts_with("warning: slip.yaml:8:"), "{warning}");
    assert!(
        warning.contains(": spec.destinations[1].hosts[0]: \"api.opanai.com\" differs by one"),
        "{warning}"
    );
    assert_eq!(place.run(&["policy", "check", "--strict", "slip.yaml"]).code, Some(1));

    let said = place.run(&["policy", "check", "slip.yaml", "-o", "json"]);
    let row = &said.json()[0];
    assert_eq!((said.code, &row["severity"], &row["line"]), (Some(0), &json!("warning"), &json!(8)), "{row}");
    assert_eq!(row["path"], "spec.destinations[1].hosts[0]");
    place.write("wrong.yaml", &GOOD.replace("api.anthropic.com", "https://api.anthropic.com"));
    let said = place.run(&["policy", "check", "wrong.yaml", "-o", "json"]);
    let row = &said.json()[0];
    assert_eq!((said.code, &row["severity"]), (Some(1), &json!("error")), "{row}");
    let message = row["message"].as_str().unwrap();
    assert!(message.ends_with("has a scheme beside the host; write api.anthropic.com alone"), "{message}");

    place.write("good.yaml", GOOD);
    assert_eq!(place.run(&["policy", "check", "--strict", "good.yaml"]).code, Some(0));
}
