//! Whether a simple command only does the work of a tool that reads or writes a file.

use super::super::division::{DividedCommand, RedirectionKind, WordForm};
use super::arguments::{Arguments, Piece};
use super::directory::is_device;
use super::effects::Effects;
use super::script;
use crate::call::Kind;

/// Programs that print a file, with the options that change only how.
const PRINTING: &[(&str, &[&str])] = &[
    (
        "cat",
        &[
            "A",
            "b",
            "e",
            "E",
            "n",
            "s",
            "t",
            "T",
            "u",
            "v",
            "number",
            "number-nonblank",
            "show-all",
            "show-ends",
            "show-tabs",
            "squeeze-blank",
        ],
    ),
    ("tac", &["b", "r", "s", "before", "regex", "separator"]),
    ("nl", &["b", "a", "w", "s", "n", "v", "body-numbering"]),
    ("head", &["n", "c", "q", "v", "lines", "bytes", "quiet", "verbose"]),
    ("tail", &["n", "c", "q", "v", "lines", "bytes", "quiet", "verbose"]),
    ("less", &["N", "R", "F", "X", "S", "n", "r"]),
    ("more", &[]),
    (
        "bat",
        &["n", "p", "r", "A", "plain", "number", "paging", "style", "line-range", "color", "decorations"],
    ),
    (
        "batcat",
        &["n", "p", "r", "A", "plain", "number", "paging", "style", "line-range", "color", "decorations"],
    ),
    ("sed", &["n", "e", "E", "r", "quiet", "silent", "expression"]),
    ("awk", &["F", "v"]),
    ("gawk", &["F", "v"]),
    ("mawk", &["F", "v"]),
];

/// The kind of the file tool whose work a command does, and nothing else.
pub(super) fn emulated(
    program: &str,
    command: &DividedCommand,
    arguments: &Arguments<'_>,
    effects: &Effects,
) -> Option<Kind> {
    if command.is_piped || effects.is_opaque || !effects.urls.is_empty() {
        return None;
    }
    // What the kernel makes up when it is asked is no file of a file tool.
    let is_made_up = |path: &String| path.starts_with("/proc/") || path.starts_with("/sys/");
    if effects.reads.iter().chain(&effects.writes).any(is_made_up) {
        return None;
    }
    let written = written(command);
    match program {
        // `> file`, `: > file`
        "" | ":" | "true" => (written && effects.reads.is_empty()).then_some(Kind::Write),
        "tee" => {
            let is_plain = arguments.options.iter().all(|option| matches!(&**option, "a" | "append" | "i"));
            (is_plain && !effects.writes.is_empty() && effects.reads.is_empty()).then_some(Kind::Write)
        }
        "echo" | "printf" => (written && effects.reads.is_empty()).then_some(Kind::Write),
        "cat" if written => {
            let has_text = command.redirections.iter().any(|one| one.kind == RedirectionKind::Text);
            let is_empty = |operand: &Piece<'_>| operand.text == "/dev/null";
            let operands = &arguments.operands;
            let is_emptied = !operands.is_empty() && operands.iter().all(is_empty);
            let is_copied = has_text && operands.iter().all(|operand| operand.text == "-");
            (is_copied || (is_emptied && !has_text && effects.reads.is_empty())).then_some(Kind::Write)
        }
        _ => prints(program, command, arguments, effects).then_some(Kind::Read),
    }
}

/// Whether its output goes to a file.
fn written(command: &DividedCommand) -> bool {
    let is_file = |text: &str| !is_device(text);
    command.redirections.iter().any(|redirection| match redirection.kind {
        RedirectionKind::Write | RedirectionKind::ReadWrite => is_file(&redirection.target.text),
        RedirectionKind::Read | RedirectionKind::Text => false,
    })
}

/// Whether it prints files, as a whole or some lines by their numbers.
fn prints(program: &str, command: &DividedCommand, arguments: &Arguments<'_>, effects: &Effects) -> bool {
    let Some((_, options)) = PRINTING.iter().find(|(name, _)| *name == program) else { return false };
    let is_count =
        |option: &str| matches!(program, "head" | "tail") && option.bytes().all(|b| b.is_ascii_digit());
    let is_plain = arguments.options.iter().all(|option| options.contains(&&**option) || is_count(option));
    let is_to_file = command.redirections.iter().any(|one| {
        matches!(one.kind, RedirectionKind::Text)
            || (matches!(one.kind, RedirectionKind::Write | RedirectionKind::ReadWrite)
                && one.target.text != "/dev/null")
    });
    let by_lines = match program {
        "sed" => {
            let is_quiet =
                arguments.options.iter().any(|option| matches!(&**option, "n" | "quiet" | "silent"));
            scripts(arguments).is_some_and(|all| {
                all.iter()
                    .all(|text| if is_quiet { script::sed_prints(text) } else { script::sed_stops(text) })
            })
        }
        "awk" | "gawk" | "mawk" => {
            scripts(arguments).is_some_and(|all| all.iter().all(|text| script::awk_prints(text)))
        }
        _ => true,
    };
    is_plain && !is_to_file && by_lines && !effects.reads.is_empty() && effects.writes.is_empty()
}

/// The scripts of `sed` and `awk`, from options or the first operand.
fn scripts<'a>(arguments: &Arguments<'a>) -> Option<Vec<&'a str>> {
    use super::table::Role;
    let given: Vec<&str> = arguments
        .values
        .iter()
        .filter(|(role, _)| *role == Role::First)
        .map(|(_, piece)| piece.text)
        .collect();
    if !given.is_empty() {
        return Some(given);
    }
    let first = arguments.operands.first()?;
    (first.form != WordForm::Computed).then(|| vec![first.text])
}
