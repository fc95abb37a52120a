//! A Shell call as rules see it: the simple commands of its text (plain data).

use super::Kind;

/// What the texts of a Shell call run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellFacts {
    /// In the order in which they stand in the text.
    pub commands: Vec<SimpleCommand>,
    /// Whether a part of the text cannot be told: `opaque` in rules.
    pub is_opaque: bool,
}

/// One simple command, without assignments, redirections and wrappers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, unquoted and joined by one space.
    pub text: String,
    /// The first word without its directory; none where it is computed.
    pub program: Option<String>,
    /// The names of its options: `-rf` is `r` and `f`, `--force=x` is `force`.
    pub options: Vec<String>,
    /// Whether it changes to a directory that the text names, and does nothing else.
    pub changes_directory: bool,
    /// The kind of the file tool whose work it does, and nothing else: `cat FILE` is Read.
    pub emulates: Option<Kind>,
}
