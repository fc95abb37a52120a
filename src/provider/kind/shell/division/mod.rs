//! A command's text, divided into simple commands.
//!
//! One pass over the text, by recursive descent: `grammar` asks `word` for words, and both push what they find to
//! one `state`, which counts what was read and ends the reading where a bound is reached. `wrapper` takes off what
//! only runs another command.

mod brace;
mod condition;
mod expansion;
mod grammar;
mod here;
mod place;
mod quote;
mod reader;
mod simple;
mod state;
#[cfg(test)]
mod tests;
mod variable;
mod word;
mod wrapper;

use std::sync::Arc;

use state::State;

/// The simple commands of a text, in the order in which they stand there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Division {
    pub commands: Vec<DividedCommand>,
    /// Whether the text has parts that cannot be told: unknown syntax, computed programs, a bound that was reached.
    pub is_opaque: bool,
    /// Whether variables are set, for one command or for those behind it.
    pub has_assignments: bool,
}

/// A simple command without its assignments and wrappers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DividedCommand {
    /// The program and its operands. Empty where only redirections stand.
    pub words: Vec<Word>,
    pub redirections: Vec<Redirection>,
    /// Where its relative paths begin: at least one, and others for where a change of the directory failed, or did not run.
    pub directories: Arc<[WorkingDirectory]>,
    /// Whether it stands in a pipeline with others, or its output is taken by an expansion.
    pub is_piped: bool,
}

/// A word, unquoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What it stands for; where it is computed, its text as it is written.
    pub text: String,
    pub form: WordForm,
}

/// Whether the text of a word is what the program is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordForm {
    Literal,
    /// It has unquoted characters of a glob, or begins with an unquoted `~`.
    Pattern,
    /// An expansion stands in it.
    Computed,
}

/// `< file`, `>> file`, `<<< text`; copies of descriptors are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectionKind,
    /// The file; the text of a here-document or here-string.
    pub target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
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
pub enum WorkingDirectory {
    /// Where the policy says nothing of it, and the call neither.
    Unsaid,
    /// An absolute directory, or one below the unsaid one.
    At(Arc<str>),
    /// It was changed to something computed.
    Computed,
}

/// Divides a text as bash would. `directory` is where it starts.
pub fn divide(text: &str, directory: &WorkingDirectory) -> Division {
    let mut state = State::new(directory);
    state.read(text);
    state.finish()
}

/// Divides a command whose words came one by one, so that no shell reads their signs. A text that one of them runs is
/// divided all the same.
pub fn divide_arguments(arguments: &[&str], directory: &WorkingDirectory) -> Division {
    let mut state = State::new(directory);
    state.read_words(arguments);
    state.finish()
}
