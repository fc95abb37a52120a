//! The command line as scripts see it: exit statuses, what stands on which stream, and in which form.

mod ca;
mod dlp;
mod forms;
mod gateway_check;
mod ledger;
mod policy;
mod redirect;
mod sarif;
mod sql;
mod stats;
mod version;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory to run commands in, which is their home too.
struct Place(TempDir);

/// What a command said that has ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs `postern` to its end, with nothing in its environment but a home and these variables.
    fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
        self.start(arguments, environment, Stdio::null())
    }

    fn start(&self, arguments: &[&str], environment: &[(&str, &str)], input: Stdio) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_postern"))
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .envs(environment.iter().copied())
            .stdin(input)
            .output()
            .unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, &[])
    }
}

impl Said {
    /// Standard output as JSON.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_so_on_standard_error() {
    let place = Place::new();
    for arguments in
        [&["nonsense"][..], &["policy"], &["policy", "check"], &["ca", "init", "--nonsense"], &[]]
    {
        let said = place.run(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains("Usage: postern"), "{arguments:?}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
}

#[test]
fn help_and_version_exit_with_0() {
    let place = Place::new();
    for arguments in [&["--help"][..], &["--version"], &["policy", "check", "--help"], &["help", "ca"]] {
        let said = place.run(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(said.stdout.to_lowercase().contains("postern"), "{arguments:?}: {said:?}");
    }
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = place.run(&["completions", shell]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.contains("policy") && said.stdout.contains("completions"), "{shell}");
    }
    assert_eq!(place.run(&["completions", "nonsense"]).code, Some(2));
}
