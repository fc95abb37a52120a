//! `postern doctor`, from outside.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::setup::{Said, policy};
use crate::support::{Pki, Setup};

/// Runs it with this home and nothing else.
fn doctor(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    command.arg("doctor").args(arguments).env_clear().env("HOME", home);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn findings(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The states of one subject.
fn states(findings: &[Value], subject: &str) -> Vec<String> {
    let of = findings.iter().filter(|finding| finding["subject"] == subject);
    of.map(|finding| finding["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_laptop_is_told_what_nobody_holds_an_agent_to_and_how_to_get_it() {
    let home = tempfile::tempdir().unwrap();
    let (code, text) = doctor(home.path(), &["-o", "json"]);
    assert_eq!(code, Some(0), "what is not enforced is no failure");
    let findings = findings(&text);
    for subject in ["way out", "keys", "policy"] {
        assert_eq!(states(&findings, subject), ["not enforced"], "{text}");
    }
    let open = findings.iter().filter(|finding| finding["state"] != "ok");
    assert!(open.into_iter().all(|finding| finding["remedy"].is_string()), "{text}");
    let (code, text) = doctor(home.path(), &[]);
    assert_eq!(code, Some(0));
    assert!(text.contains("not enforced  way out") && text.contains("to do: "), "{text}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "it changes nothing");
}

#[test]
fn the_users_policy_is_read_and_its_tunnels_are_called_grants() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/postern/policy.yaml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, policy(&["{name: reg, hosts: [r.example], action: Tunnel}"])).unwrap();
    let (_, text) = doctor(home.path(), &["-o", "json"]);
    let found = findings(&text);
    assert_eq!(states(&found, "policy"), ["ok"], "{text}");
    assert_eq!(states(&found, "tunnels"), ["not enforced"], "{text}");
    std::fs::write(&file, "kind: [").unwrap();
    let (code, text) = doctor(home.path(), &["-o", "json"]);
    assert_eq!((code, states(&findings(&text), "policy")), (Some(0), vec!["warn".to_owned()]), "{text}");
}

#[test]
fn settings_are_judged_as_the_gateway_would() {
    let arguments = ["doctor", "--config", "settings.yaml", "-o", "json"];
    let Said { status, stdout, .. } = Setup::new(&Pki::new("Upstreams")).run(&arguments);
    assert!(status.success(), "{stdout}");
    assert_eq!(states(&findings(&stdout), "interception"), ["ok"], "{stdout}");

    let broken =
        Setup::new(&Pki::new("Upstreams")).set("/upstream/roots", vec!["missing.pem"]).policy("kind: [");
    let Said { status, stdout, .. } = broken.run(&arguments);
    assert_eq!(status.code(), Some(1));
    assert_eq!(states(&findings(&stdout), "settings"), ["broken", "broken"], "{stdout}");
}

#[test]
fn edits_that_no_workspace_judges_are_said_to_be_not_enforced() {
    let arguments = ["doctor", "--config", "settings.yaml", "-o", "json"];
    let setup = |edits: &str| {
        Setup::new(&Pki::new("Upstreams")).policy(&(policy(&[]) + &format!("  edits: {edits}\n")))
    };
    for (setup, expected) in [
        (setup("{match: Deny}"), &["not enforced"][..]),
        (setup("{match: Deny}").set("/workspace/socket", "/nonexistent/s"), &["ok"]),
        (setup("{match: Allow}"), &[]),
    ] {
        let Said { stdout, .. } = setup.run(&arguments);
        assert_eq!(states(&findings(&stdout), "edits"), expected, "{stdout}");
    }
}

#[test]
fn limits_that_no_ledger_keeps_are_said_to_begin_anew() {
    let arguments = ["doctor", "--config", "settings.yaml", "-o", "json"];
    let limited = policy(&[]) + "  limits: {tokensPerDay: 5}\n";
    let setup = || Setup::new(&Pki::new("Upstreams")).policy(&limited);
    for (setup, expected) in [
        (setup(), &["not enforced"][..]),
        (setup().set("/ledger/path", "ledger.db"), &["ok"]),
        (setup().policy(&(policy(&[]) + "  limits: {toolInputBytes: 5}\n")), &[]),
    ] {
        let Said { stdout, .. } = setup.run(&arguments);
        assert_eq!(states(&findings(&stdout), "limits"), expected, "{stdout}");
        assert!(!setup.path().join("ledger.db").exists(), "it changes nothing");
    }
}
