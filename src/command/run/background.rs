//! Commands that hand their work to a server in the background, which a run does not lead through its gateway.

use std::ffi::OsString;
use std::path::Path;

/// Subcommands of Codex 0.169 that do their work themselves.
const WITHOUT_SERVER: &[&str] =
    &["exec", "e", "review", "login", "logout", "mcp", "completion", "sandbox", "apply", "doctor", "help"];

/// What ends Codex's help and version at once.
const SHORT: &[&str] = &["--no-daemon", "--help", "-h", "--version", "-V"];

/// Returns what the user should know of such a command.
///
/// Codex in a terminal talks to a server of the user's, which it starts where there is none and which outlives it: a server
/// that was started outside of the run keeps its own way out, and one of an earlier run leads to a gateway that is gone.
pub(super) fn warning(command: &[OsString]) -> Option<&'static str> {
    let (program, arguments) = command.split_first()?;
    let is_codex = Path::new(program).file_stem().is_some_and(|name| name == "codex");
    let subcommand = arguments.iter().find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    let works_itself = subcommand.is_some_and(|word| WITHOUT_SERVER.iter().any(|known| word == known))
        || arguments.iter().any(|argument| SHORT.iter().any(|flag| argument == flag));
    (is_codex && !works_itself).then_some(
        "Codex may work through a server in the background that this run does not hold: start it as `codex --no-daemon`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(command: &str) -> bool {
        let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        warning(&command).is_some()
    }

    #[test]
    fn codex_in_a_terminal_is_warned_about_and_nothing_else() {
        for command in ["codex", "/usr/bin/codex", "codex resume", "codex -m gpt-5 hello"] {
            assert!(warned(command), "{command}");
        }
        for command in ["codex --no-daemon", "codex exec hello", "codex --version", "codex login", "claude"] {
            assert!(!warned(command), "{command}");
        }
        assert_eq!(warning(&[]), None);
    }
}
