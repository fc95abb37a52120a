//! `postern demo`, from outside.

use std::process::{Command, Output};

use serde_json::Value;

/// The demo with a directory for what is temporary, and nothing else: no home, no network.
fn demo(arguments: &[&str]) -> (Output, tempfile::TempDir) {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    command.args(arguments).env_clear().env("TMPDIR", temporary.path()).current_dir(temporary.path());
    (command.output().unwrap(), temporary)
}

#[test]
fn every_step_is_shown_and_seen_as_expected_and_nothing_is_left_behind() {
    let (output, temporary) = demo(&["demo"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let (last, steps) = text.lines().collect::<Vec<_>>().split_last().map(|(l, s)| (*l, s.to_vec())).unwrap();
    assert!(steps.len() >= 18, "{text}");
    assert_eq!(last, format!("{0}/{0}", steps.len()));
    for step in steps {
        assert!(step.starts_with("ok "), "{step}");
        assert!(step.contains("; expected: ") && step.contains("; seen: "), "{step}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn the_steps_are_data_where_that_is_asked_for() {
    let (output, _temporary) = demo(&["demo", "-o", "json"]);
    let steps: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(steps.len() >= 18);
    for (index, step) in steps.iter().enumerate() {
        assert_eq!(step["step"], index + 1);
        assert_eq!((&step["ok"], &step["seen"]), (&Value::Bool(true), &step["expected"]));
    }
}

#[test]
fn what_models_call_and_are_offered_is_shown() {
    let (output, _temporary) = demo(&["demo"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for shown in [
        "seen: 200, the provider was offered Bash\n",
        "seen: [postern] Tool call blocked by policy | Tool: Bash | Rule: local/demo/only-listings |",
        "then a text by local/demo/stay-in-project",
        "6 of 11 tool calls denied, 1 hosted tool taken out\n",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}
