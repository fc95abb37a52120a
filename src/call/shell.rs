//! A Shell call as rules see it: the simple commands of its text (plain data).

use std::borrow::Cow;
use std::sync::Arc;

use super::Kind;

/// What is to be read of Shell calls; policy says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellTerms {
    /// Whether commands are divided at all. Where no rule could meet what they do, nobody pays for it.
    pub reads: bool,
    /// Where relative paths of commands begin: `shell.directory`.
    pub directory: Option<Arc<str>>,
    /// Whether commands that do the work of a file tool are asked for: `shell.files: Native`.
    pub prefers_file_tools: bool,
}

/// What the texts of a Shell call run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellFacts {
    /// In the order in which they stand in the text.
    pub commands: Vec<SimpleCommand>,
    /// Whether a part of the text cannot be told: `opaque` in rules.
    pub is_opaque: bool,
    /// Whether variables are set, which may change what a command does: `LD_PRELOAD=./x.so npm test`.
    pub has_assignments: bool,
}

/// One simple command, without assignments, redirections and wrappers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, unquoted and joined by one space.
    pub text: String,
    /// The first word without its directory; none where it is computed.
    pub program: Option<Cow<'static, str>>,
    /// The first word as it is written, where it names a file outside of the directories of the system: `./npm`.
    pub path: Option<Box<str>>,
    /// The names of its options: `-rf` is `r` and `f`, `--force=x` is `force`.
    pub options: Vec<Cow<'static, str>>,
    /// Whether a word is computed, so that it could be further options.
    pub has_computed_words: bool,
    /// Whether redirections of its own read or write files, which stand in the text of the call alone.
    pub redirects: bool,
    /// Whether it changes to a directory that the text names, and does nothing else.
    pub changes_directory: bool,
    /// The kind of the file tool whose work it does, and nothing else: `cat FILE` is Read.
    pub emulates: Option<Kind>,
    /// The tool of that kind that the request offers, where policy asks for it.
    pub file_tool: Option<String>,
}
