//! Gathers what the commands of a call run and do.

use super::OF_THE_SYSTEM;
use super::division::{self, DividedCommand, Division, RedirectionKind, WordForm, WorkingDirectory};
use super::history;
use super::program::{self, ProgramReading};
use super::source::{CommandSource, Language};
use crate::call::{Facts, ShellFacts, SimpleCommand};

/// The most simple commands of one call.
const MOST_COMMANDS: usize = 256;

/// What the commands of a call run, and what they do beside.
#[derive(Debug, Default)]
pub(in crate::provider::kind) struct CommandReading {
    pub(in crate::provider::kind) shell: ShellFacts,
    /// Each with the number of its simple command.
    pub(in crate::provider::kind) derived: Vec<Facts<'static>>,
    /// How many files and URLs they name.
    named: usize,
}

/// Reads commands that start in this directory.
pub(in crate::provider::kind) fn read(
    sources: &[CommandSource<'_>],
    language: Language,
    start: &WorkingDirectory,
) -> CommandReading {
    let mut reading = CommandReading::default();
    for source in sources {
        reading.shell.is_opaque |= source.texts().any(renames_pwd);
        match (source, language) {
            (CommandSource::Other, _) | (_, Language::Other) => reading.shell.is_opaque = true,
            (CommandSource::Text(text), Language::Shell) => {
                reading.add(division::divide(text, start));
            }
            (CommandSource::Text(text), Language::Typed) => reading.typed(text, start),
            (CommandSource::Arguments(words), Language::Shell) => {
                reading.add(division::divide_arguments(words, start));
            }
            // Keys, pieces, or lines: how a client joins them is not known.
            (CommandSource::Arguments(words), Language::Typed) => {
                reading.typed(&words.concat(), start);
                reading.typed(&(words.join("\n") + "\n"), start);
                reading.shell.is_opaque = true;
            }
        }
    }
    reading
}

/// Whether a text may make a function of the command that says where the shell is, in whatever quotes.
fn renames_pwd(text: &str) -> bool {
    const NAME: &str = "pwd";
    // Only where something asks it.
    if !text.contains(NAME) {
        return false;
    }
    let bare: String = text.chars().filter(|sign| !matches!(sign, '\'' | '"' | '\\')).collect();
    bare.match_indices(NAME).any(|(at, _)| {
        let before = bare.get(..at).unwrap_or_default();
        let behind = bare.get(at + NAME.len()..).unwrap_or_default();
        let is_blank = |sign: char| matches!(sign, ' ' | '\t');
        behind.trim_start_matches(is_blank).starts_with('(')
            || (before.ends_with(is_blank) && before.trim_end_matches(is_blank).ends_with("function"))
    })
}

impl CommandReading {
    /// Takes what is typed into a program that runs: it ends a line by a carriage return, and control characters edit it.
    /// A line that does not end goes on in a later call.
    fn typed(&mut self, text: &str, start: &WorkingDirectory) {
        // Interrupt and end of input end a line, too.
        let lines = text.replace(['\r', '\u{3}', '\u{4}'], "\n");
        // A tab completes a word, but for the blanks in front of the first one.
        let completes = |line: &str| line.trim_start().contains('\t');
        let is_edited = lines.contains(|c: char| c.is_control() && c != '\n' && c != '\t')
            || lines.lines().any(completes)
            || history::is_recalled(&lines);
        let is_open = !lines.is_empty() && !lines.ends_with('\n');
        self.add(division::divide(&lines, start));
        self.shell.is_opaque |= is_edited || is_open;
    }

    fn add(&mut self, division: Division) {
        self.shell.is_opaque |= division.is_opaque;
        self.shell.has_assignments |= division.has_assignments;
        self.shell.commands.reserve(division.commands.len().min(MOST_COMMANDS));
        for divided in division.commands {
            let redirects = divided.redirections.iter().any(is_of_file);
            // A group whose output goes nowhere: what it runs stands by itself.
            if divided.words.is_empty() && !redirects {
                continue;
            }
            if self.shell.commands.len() == MOST_COMMANDS {
                self.shell.is_opaque = true;
                return;
            }
            let number = self.shell.commands.len();
            let ProgramReading { command, facts, is_opaque } = program::read(&divided);
            self.shell.is_opaque |= is_opaque;
            self.derive(facts, number);
            let command = completed(command, &divided, self.shell.commands.last());
            self.shell.commands.push(SimpleCommand { redirects, ..command });
        }
    }

    fn derive(&mut self, facts: Vec<Facts<'static>>, number: usize) {
        for facts in facts {
            self.named += facts.paths.len() + facts.urls.len();
            if self.named > program::MOST_NAMED {
                self.shell.is_opaque = true;
                return;
            }
            self.derived.push(Facts { derived_from: Some(number), ..facts });
        }
    }
}

/// A command with what its words say whatever its program is.
fn completed(
    command: SimpleCommand,
    divided: &DividedCommand,
    before: Option<&SimpleCommand>,
) -> SimpleCommand {
    let has_computed_words = divided.words.iter().any(|word| word.form == WordForm::Computed);
    // A file tool does not read as another user.
    let is_elevated = before.is_some_and(|before| {
        matches!(before.program.as_deref(), Some("sudo" | "doas" | "su" | "runuser" | "pkexec"))
            && before.text.ends_with(&command.text)
    });
    let emulates = command.emulates.filter(|_| !is_elevated);
    let path = divided.words.first().filter(|_| command.program.is_some()).and_then(|word| path(&word.text));
    SimpleCommand { has_computed_words, emulates, path, ..command }
}

/// A program that is named by a path of its own.
fn path(word: &str) -> Option<Box<str>> {
    let directory = word.get(..word.bytes().rposition(|byte| byte == b'/')?)?;
    (!OF_THE_SYSTEM.contains(&directory)).then(|| word.into())
}

/// Whether a redirection reads or writes more than a device that holds nothing.
fn is_of_file(redirection: &division::Redirection) -> bool {
    match redirection.kind {
        RedirectionKind::Read | RedirectionKind::Write | RedirectionKind::ReadWrite => {
            !program::is_device(&redirection.target.text)
        }
        RedirectionKind::Text => false,
    }
}
