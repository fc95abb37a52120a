//! `postern run --workspace`: a companion that lives as long as the run.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use super::User;
use crate::support::journal::poll;

/// The processes that serve this user's workspace.
fn companions(user: &User) -> Vec<u32> {
    let root = user.path("work").display().to_string();
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_one = |id: &u32| {
        let line = std::fs::read(PathBuf::from(format!("/proc/{id}/cmdline"))).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.get(1) == Some(&&b"workspace"[..]) && words.contains(&root.as_bytes())
    };
    processes.filter_map(|name| name.parse().ok()).filter(is_one).collect()
}

#[test]
fn the_companion_of_a_run_answers_while_it_lasts_and_goes_with_it() {
    let user = User::new();
    user.write("work/a.rs", "fn a() {}\n");
    let root = user.path("work").display().to_string();
    let run = user.start_with(None, &["--workspace", &root]);
    let [companion] = companions(&user)[..] else { panic!("{:?}", companions(&user)) };
    let environment = std::fs::read(format!("/proc/{companion}/environ")).unwrap();
    assert!(environment.is_empty(), "it gets nothing of the environment");
    let text = poll("the map", || {
        let answer = run.agent().get("http://postern.internal/workspace/map");
        (answer.status == 200).then(|| answer.text())
    });
    assert!(text.contains("a.rs\n  1: fn a() {}\n"), "{text}");
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(companions(&user).is_empty(), "it has ended");
}

#[test]
fn a_companion_does_not_outlive_a_run_that_is_killed() {
    let user = User::new();
    let root = user.path("work").display().to_string();
    let run = user.start_with(None, &["--workspace", &root]);
    assert_eq!(companions(&user).len(), 1);
    kill_process(Pid::from_child(&run.child), Signal::KILL).unwrap();
    assert_eq!(run.end_of_killed(), Some(9));
    poll("the companion's end", || companions(&user).is_empty().then_some(()));
}

#[test]
fn a_workspace_that_cannot_be_read_is_said_before_the_command_starts() {
    let user = User::new();
    let said = user.run(&["run", "--workspace", "/nonexistent", "--", "echo", "started"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("cannot open the workspace: No such file"), "{}", said.stderr);
    assert!(!said.stdout.contains("started"));
}
