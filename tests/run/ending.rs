//! How a run ends: with its command's exit status, whatever happens to either.

use std::io::{BufRead, BufReader};
use std::process::Command;

use super::{User, finish};

#[test]
fn the_exit_status_is_the_commands() {
    let user = User::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        let said = user.run(&["run", "--", "sh", "-c", script]);
        assert_eq!((said.code, said.signal), (Some(code), None), "{script}: {said:?}");
        assert_eq!(said.stdout, "", "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_started_is_127() {
    let user = User::new();
    user.write("work/plain", "no program");
    for command in ["no-such-command", "./plain", "/nonexistent/x"] {
        let said = user.run(&["run", "--", command]);
        assert_eq!(said.code, Some(127), "{said:?}");
        assert!(said.stderr.contains(&format!("{command} cannot be started: ")), "{said:?}");
    }
}

#[test]
fn what_is_wrong_before_the_command_is_1() {
    let user = User::new();
    let broken = user.write("broken.yaml", "kind: EgressPolicy\n");
    for policy in ["/nonexistent/policy.yaml", broken.to_str().unwrap()] {
        let said = user.run(&["run", "--policy", policy, "--", "touch", "started"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains(policy), "{said:?}");
    }
    assert!(!user.path("work/started").exists());
    assert_eq!(user.run(&["run"]).code, Some(2));
}

#[test]
fn the_standard_streams_are_the_commands() {
    let user = User::new();
    let mut child = user.command(&["run", "--", "sh", "-c", "cat; echo aside >&2"]).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through\n").unwrap();
    let said = finish(child);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "through\n"));
    let others: Vec<_> = said.stderr.lines().filter(|line| !line.starts_with("postern: ")).collect();
    assert_eq!(others, ["aside"]);
}

#[test]
fn sigterm_reaches_the_command_and_sigint_is_the_terminals_affair() {
    let user = User::new();
    let script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = user.command(&["run", "--", "sh", "-c", script]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    for signal in ["INT", "TERM"] {
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
    assert_eq!(finish(child).code, Some(42));
}
