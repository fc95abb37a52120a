//! Gathers what the commands of a call run and do.

use super::division::{self, DividedCommand, Division, WordForm, WorkingDirectory};
use super::program::{self, ProgramReading};
use super::source::{CommandSource, Language};
use crate::call::{Facts, Kind, ShellFacts, SimpleCommand};

/// The most simple commands of one call.
const MOST_COMMANDS: usize = 256;

/// What the commands of a call run, and what they do beside.
#[derive(Debug, Default)]
pub(in crate::provider::kind) struct CommandReading {
    pub(in crate::provider::kind) shell: ShellFacts,
    /// Each with the number of its simple command.
    pub(in crate::provider::kind) derived: Vec<Facts<'static>>,
}

/// Reads commands that start in this directory.
pub(in crate::provider::kind) fn read(
    sources: &[CommandSource<'_>],
    language: Language,
    start: &WorkingDirectory,
) -> CommandReading {
    let mut reading = CommandReading::default();
    for source in sources {
        match (source, language) {
            (CommandSource::Other, _) | (_, Language::Other) => reading.shell.is_opaque = true,
            (CommandSource::Text(text), Language::Shell) => {
                reading.add(division::divide(text, start));
            }
            (CommandSource::Text(text), Language::Typed) => reading.typed(text, start),
            (CommandSource::Arguments(words), Language::Shell | Language::Typed) => {
                reading.add(division::divide_arguments(words, start));
            }
        }
    }
    reading
}

impl CommandReading {
    /// Takes what is typed into a program that runs: it ends a line by a carriage return, and control characters edit it.
    /// A line that does not end goes on in a later call.
    fn typed(&mut self, text: &str, start: &WorkingDirectory) {
        // Interrupt and end of input end a line, too.
        let lines = text.replace(['\r', '\u{3}', '\u{4}'], "\n");
        let is_edited = lines.contains(|c: char| c.is_control() && c != '\n' && c != '\t');
        let is_open = !lines.is_empty() && !lines.ends_with('\n');
        self.add(division::divide(&lines, start));
        self.shell.is_opaque |= is_edited || is_open;
    }

    fn add(&mut self, division: Division) {
        self.shell.is_opaque |= division.is_opaque;
        self.shell.has_assignments |= division.has_assignments;
        self.shell.commands.reserve(division.commands.len().min(MOST_COMMANDS));
        for divided in division.commands {
            if self.shell.commands.len() == MOST_COMMANDS {
                self.shell.is_opaque = true;
                return;
            }
            let number = self.shell.commands.len();
            let ProgramReading { command, facts, is_opaque } = program::read(&divided);
            self.shell.is_opaque |= is_opaque;
            // What names nothing is no fact: a Write without paths would be one that cannot be read.
            let telling = facts.into_iter().filter(|facts| match facts.kind {
                Kind::Read | Kind::Write => !facts.paths.is_empty(),
                Kind::Fetch => !facts.urls.is_empty(),
                Kind::Shell => false,
            });
            self.derived.extend(telling.map(|facts| Facts { derived_from: Some(number), ..facts }));
            self.shell.commands.push(completed(command, &divided));
        }
    }
}

/// A command with what its words say whatever its program is.
fn completed(command: SimpleCommand, divided: &DividedCommand) -> SimpleCommand {
    let has_computed_words = divided.words.iter().any(|word| word.form == WordForm::Computed);
    SimpleCommand { has_computed_words, ..command }
}
