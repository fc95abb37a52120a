//! `postern gateway` with settings that are wrong, and `--check`.

use serde_json::json;

use super::{Place, Said};

const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  destinations:
    - {name: anthropic, hosts: [api.anthropic.com], action: Inspect}
";

/// A place with a policy, a CA and these settings.
fn place(settings: &str) -> Place {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("settings.yaml", settings);
    assert_eq!(place.run(&["ca", "init", "--directory", "."]).code, Some(0));
    place
}

fn check(place: &Place, more: &[&str]) -> Said {
    let arguments = [&["gateway", "--config", "settings.yaml", "--check"], more].concat();
    place.run_with(&arguments, &[("POSTERN_INTERCEPT", "1")])
}

#[test]
fn what_is_in_order_says_so_and_exits_with_0() {
    let place = place("policy: {path: policy.yaml}\n");
    let said = check(&place, &[]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.stdout.starts_with("in order: policy sha256:"), "{said:?}");
    let said = check(&place, &["-o", "json"]);
    assert_eq!((said.code, said.json()), (Some(0), json!([])), "{said:?}");
}

#[test]
fn wrong_settings_keep_the_gateway_from_starting_and_are_all_said() {
    let place = place(
        "policy: {path: policy.yaml}\nlimits:\n  headerCount: many\ntimeout: {}\nledger: {path: x, maxAge: soon}\n",
    );
    let started = place.run_with(&["gateway", "--config", "settings.yaml"], &[("POSTERN_INTERCEPT", "1")]);
    for said in [started, check(&place, &[])] {
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        let lines: Vec<_> = said.stderr.lines().collect();
        assert_eq!(lines.len(), 3, "{said:?}");
        assert!(
            lines[0].starts_with("settings.yaml:3:16: limits.headerCount: expected a whole number"),
            "{said:?}"
        );
        assert!(
            lines[1].starts_with("settings.yaml:4:1: timeout: unknown key; expected one of: "),
            "{said:?}"
        );
        assert!(lines[2].contains("ledger.maxAge: expected a duration"), "{said:?}");
    }
}

#[test]
fn broken_yaml_says_line_and_column() {
    let place = place("policy: {path: policy.yaml\nlimits: {}\n");
    let said = check(&place, &["-o", "json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let problem = &said.json()[0];
    assert_eq!(problem["file"], "settings.yaml", "{said:?}");
    assert!(problem["line"].is_number() && problem["column"].is_number(), "{said:?}");
}

#[test]
fn a_policy_and_a_ca_that_are_wrong_are_said_together() {
    let place = place("policy: {path: policy.yaml}\n");
    place.write("policy.yaml", &POLICY.replace("Inspect", "Inspct"));
    place.write("ca-key.pem", "no key");
    let said = check(&place, &[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("policy.yaml:6:"), "{said:?}");
    assert!(said.stderr.contains("settings.yaml: interception: "), "{said:?}");
}

#[test]
fn interception_without_consent_refuses_to_start() {
    let place = place("policy: {path: policy.yaml}\n");
    let said = place.run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("POSTERN_INTERCEPT"), "{said:?}");
}

#[test]
fn a_missing_settings_file_is_named_and_a_missing_flag_is_wrong_usage() {
    let place = Place::new();
    let missing = place.run(&["gateway", "--config", "nowhere.yaml"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.starts_with("nowhere.yaml: cannot be read: "), "{missing:?}");
    assert_eq!(place.run(&["gateway"]).code, Some(2));
}
