//! Which texts of a call a shell of POSIX reads, and in which directory it starts.

use serde_json::Value;

use super::super::{infer, patch};
use super::division::WorkingDirectory;
use crate::call::name::{cut, plain};
use crate::fold::fold;

/// A command, as an input has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::provider::kind) enum CommandSource<'a> {
    /// A text that a shell reads.
    Text(&'a str),
    /// The arguments of one command, of which no shell reads the signs.
    Arguments(Vec<&'a str>),
    /// A text, or a list of them, in another language than a shell's.
    Other,
}

impl<'a> CommandSource<'a> {
    /// The texts in it that a shell may read.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> {
        let (text, words) = match self {
            Self::Text(text) => (Some(*text), &[][..]),
            Self::Arguments(words) => (None, words.as_slice()),
            Self::Other => (None, &[][..]),
        };
        text.into_iter().chain(words.iter().copied())
    }
}

/// What reads the commands of a tool, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider::kind) enum Language {
    Shell,
    /// What is typed into a program that runs, which may be a shell.
    Typed,
    /// PowerShell, Python, JavaScript, …
    Other,
}

/// Words in the names of tools whose commands no shell of POSIX reads.
const OTHERS: &[&str] = &[
    "powershell",
    "pwsh",
    "python",
    "ipython",
    "repl",
    "code",
    "executecode",
    "notebook",
    "cell",
    "javascript",
    "js",
    "node",
    "applescript",
    "automation",
    "computer",
];

/// Words in the names of tools that say that a shell reads them all the same: `bash_code_execution`.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "shell"];

/// The language of a tool's commands, by the tool's name.
pub(in crate::provider::kind) fn language(name: &str, is_typed: bool) -> Language {
    let folded = fold(name);
    let plain = plain(cut(&folded));
    let is_among = |words: &[&str]| plain.split('_').any(|word| words.contains(&word));
    match (is_among(SHELLS), is_among(OTHERS) || plain == "cmd", is_typed) {
        (false, true, _) => Language::Other,
        (_, _, true) => Language::Typed,
        (true, _, false) | (false, false, false) => Language::Shell,
    }
}

/// Parameters of the directory that a command starts in, in the form in which parameters are compared.
const DIRECTORIES: &[&str] = &["workdir", "cwd", "workingdirectory", "directory", "dirpath", "dir"];

/// The objects of an input in which such a parameter may stand.
const BESIDE: &[&str] = &["action", "task"];

/// Where a call's commands start: in the directory of its input, which may stand below that of the policy.
pub(in crate::provider::kind) fn start(json: &Value, policy: Option<&str>) -> WorkingDirectory {
    let within = std::iter::once(json).chain(BESIDE.iter().filter_map(|key| json.get(key)));
    let entries = within.filter_map(Value::as_object).flatten();
    let written = entries.filter(|(key, _)| DIRECTORIES.contains(&infer::form(key).as_str()));
    let mut directories = written.map(|(_, value)| value).filter(|value| !value.is_null());
    let first = directories.next();
    if directories.any(|other| Some(other) != first) {
        return WorkingDirectory::Computed;
    }
    match (first, policy) {
        (Some(Value::String(text)), _) if text.starts_with(['~', '$']) => WorkingDirectory::Computed,
        (Some(Value::String(text)), policy) if !text.is_empty() => {
            WorkingDirectory::At(patch::below(policy, text.clone()).into())
        }
        (None | Some(Value::String(_)), Some(policy)) => WorkingDirectory::At(policy.into()),
        (None | Some(Value::String(_)), None) => WorkingDirectory::Unsaid,
        (Some(_), _) => WorkingDirectory::Computed,
    }
}

/// All texts in a value, but for the names of parameters.
pub(in crate::provider::kind) fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(entries) => entries.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Parameters beside what is typed, in the form in which parameters are compared: which program it is typed into, and how.
const BESIDE_TYPED: &[&str] =
    &["sessionid", "id", "pid", "shellid", "terminalid", "processid", "action", "description"];

/// Whether a call that types nothing that is known has a parameter that could be typed.
pub(in crate::provider::kind) fn says_more(json: &Value) -> bool {
    let is_said = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    };
    match json {
        Value::Object(entries) => entries
            .iter()
            .any(|(key, value)| is_said(value) && !BESIDE_TYPED.contains(&infer::form(key).as_str())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => is_said(json),
    }
}
