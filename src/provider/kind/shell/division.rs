//! A command's text, divided into simple commands.

/// The simple commands of a text, in the order in which they stand there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) commands: Vec<DividedCommand>,
    /// Whether the text has parts that cannot be told: unknown syntax, computed programs, a bound that was reached.
    pub(super) is_opaque: bool,
}

/// A simple command without its assignments and wrappers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DividedCommand {
    /// The program and its operands. Empty where only redirections stand.
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
    /// Where its relative paths begin.
    pub(super) directory: WorkingDirectory,
    /// Whether it stands in a pipeline with others, or its output is taken by an expansion.
    pub(super) is_piped: bool,
}

/// A word, unquoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What it stands for; where it is computed, its text as it is written.
    pub(super) text: String,
    pub(super) form: WordForm,
}

/// Whether the text of a word is what the program is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordForm {
    Literal,
    /// It has unquoted characters of a glob, or begins with an unquoted `~`.
    Pattern,
    /// An expansion stands in it.
    Computed,
}

/// `< file`, `>> file`, `<<< text`; copies of descriptors are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirection {
    pub(super) kind: RedirectionKind,
    /// The file; the text of a here-document or here-string.
    pub(super) target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectionKind {
    /// `<`
    Read,
    /// `>`, `>|`, `>>`, `&>`, `>&` with a file.
    Write,
    /// `<>`
    ReadWrite,
    /// `<<`, `<<-`, `<<<`
    Text,
}

/// Where relative paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::provider::kind) enum WorkingDirectory {
    /// Where the policy says nothing of it, and the call neither.
    Unsaid,
    /// An absolute directory, or one below the unsaid one.
    At(String),
    /// It was changed to something computed.
    Computed,
}

/// Divides the arguments of one command.
pub(super) fn divide_arguments(_arguments: &[&str], _directory: &WorkingDirectory) -> Division {
    Division::default()
}

/// Divides a text as bash would. `directory` is where it starts.
pub(super) fn divide(_text: &str, _directory: &WorkingDirectory) -> Division {
    Division::default()
}
