//! The files and URLs that a simple command names, by a table of programs.

mod arguments;
#[cfg(test)]
mod corpus_tests;
mod directory;
mod effects;
mod emulation;
#[cfg(test)]
mod runner_tests;
mod script;
mod table;
#[cfg(test)]
mod tests;
mod url;

use std::borrow::Cow;

use super::division::{DividedCommand, RedirectionKind, Word, WordForm};
use crate::call::{Facts, SimpleCommand};
use arguments::{Arguments, Piece};
use effects::Effects;
use table::{Role, Trait};

/// A simple command as rules see it, with what it does beside running: one fact for each kind.
pub(super) struct ProgramReading {
    pub(super) command: SimpleCommand,
    pub(super) facts: Vec<Facts<'static>>,
    /// Whether it runs code that is not read: `eval`, `python -c`.
    pub(super) is_opaque: bool,
}

/// Reads a simple command.
pub(super) fn read(command: &DividedCommand) -> ProgramReading {
    let mut effects = Effects::default();
    let name = command.words.first().and_then(program_name);
    effects.is_opaque |= !command.words.is_empty() && name.is_none();
    let program = name.and_then(table::program).unwrap_or(&table::UNKNOWN);
    let behind = command.words.get(1..).unwrap_or_default();
    let arguments = arguments::take_apart(program, behind, &command.directory);
    if name.is_some() {
        add_words(&mut effects, &arguments);
    }
    add_redirections(&mut effects, command);
    if matches!(name, Some("apply_patch" | "applypatch")) {
        add_patch(&mut effects, command);
    }
    let lower = lower(name.unwrap_or_default());
    let emulates = emulation::emulated(&lower, command, &arguments, &effects);
    let changes_directory = changes_directory(&lower, command, &arguments);
    let text = joined(&command.words);
    let is_opaque = effects.is_opaque;
    ProgramReading {
        command: SimpleCommand {
            text,
            program: name.map(|name| match program.name {
                known if known == name => Cow::Borrowed(known),
                _ => Cow::Owned(name.to_owned()),
            }),
            options: arguments.options,
            changes_directory,
            emulates,
            ..SimpleCommand::default()
        },
        facts: effects.facts(),
        is_opaque,
    }
}

/// Words with one space between.
fn joined(words: &[Word]) -> String {
    let mut text = String::with_capacity(words.iter().map(|word| word.text.len() + 1).sum());
    for (number, word) in words.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { " " });
        text.push_str(&word.text);
    }
    text
}

fn lower(name: &str) -> Cow<'_, str> {
    let has_upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
    if has_upper { Cow::Owned(name.to_ascii_lowercase()) } else { Cow::Borrowed(name) }
}

/// The program's name without its directory; none where an expansion decides which it is.
fn program_name(word: &Word) -> Option<&str> {
    let is_told = match word.form {
        WordForm::Literal => true,
        WordForm::Pattern => !word.text.contains(['*', '?', '[']),
        WordForm::Computed => false,
    };
    Some(directory::last(&word.text)).filter(|name| is_told && !name.is_empty())
}

/// Adds what the operands and the values of options mean.
fn add_words(effects: &mut Effects, arguments: &Arguments<'_>) {
    let program = arguments.program();
    let shape = arguments.variant.unwrap_or(program);
    effects.is_opaque |= arguments.is_opaque || shape.has(Trait::Opaque);
    effects.is_opaque |= shape.has(Trait::RunsInput) && runs_input(arguments);
    let is_first = |role: &Role| matches!(role, Role::First | Role::FirstFile);
    let skipped = usize::from(arguments.values.iter().any(|(role, _)| is_first(role)));
    let target = arguments.values.iter().find(|(role, _)| *role == Role::Into).map(|(_, piece)| *piece);
    for (role, piece) in &arguments.values {
        let role = if *role == Role::First { shape.operands.first() } else { *role };
        effects.add(role, *piece, arguments);
        add_file_url(effects, *piece, arguments);
    }
    let before =
        arguments.dashes.filter(|_| shape.behind_dashes.is_some()).unwrap_or(arguments.operands.len());
    let roles =
        Roles { shape, before, count: arguments.operands.len(), skipped, has_target: target.is_some() };
    for (piece, role) in roles.of(arguments) {
        effects.add(role, value_of(shape, piece), arguments);
        add_file_url(effects, *piece, arguments);
    }
    add_places(effects, arguments, &roles, target);
}

/// What the operands of a command mean.
struct Roles<'p> {
    shape: &'p table::Program,
    /// How many of them have the roles that those before `--` have.
    before: usize,
    count: usize,
    /// How many are given by options.
    skipped: usize,
    has_target: bool,
}

impl Roles<'_> {
    /// Each operand with its role.
    fn of<'o, 'a>(
        &self,
        arguments: &'o Arguments<'a>,
    ) -> impl DoubleEndedIterator<Item = (&'o Piece<'a>, Role)> {
        let operands = arguments.operands.iter().enumerate();
        operands.map(|(number, piece)| (piece, self.role(number, piece)))
    }

    fn role(&self, number: usize, piece: &Piece<'_>) -> Role {
        let Self { shape, before, count, skipped, has_target } = *self;
        named_role(shape, piece.text).unwrap_or_else(|| match &shape.behind_dashes {
            Some(operands) if number >= before => {
                operands.role(number - before, count - before, 0, has_target)
            }
            Some(_) | None => shape.operands.role(number, before, skipped, has_target),
        })
    }
}

/// Whether an interpreter has no script, or one that comes from somewhere else.
fn runs_input(arguments: &Arguments<'_>) -> bool {
    arguments.operands.first().is_none_or(|script| {
        script.form == WordForm::Computed || script.text == "-" || directory::is_device(script.text)
    })
}

/// The role of `if=file`.
fn named_role(shape: &table::Program, text: &str) -> Option<Role> {
    if shape.operands.named.is_empty() {
        return None;
    }
    let (name, _) = text.split_once('=')?;
    shape.operands.named.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

/// `file` of `if=file`.
fn value_of<'a>(shape: &table::Program, piece: &Piece<'a>) -> Piece<'a> {
    let value = named_role(shape, piece.text).and_then(|_| piece.text.split_once('='));
    Piece { text: value.map_or(piece.text, |(_, value)| value), ..*piece }
}

/// `file://` and `fileb://` in front of a path, as the CLI of AWS takes it in any value.
fn add_file_url(effects: &mut Effects, piece: Piece<'_>, arguments: &Arguments<'_>) {
    let path = piece.text.strip_prefix("file://").or_else(|| piece.text.strip_prefix("fileb://"));
    if let Some(text) = path
        && arguments.has_anywhere(Trait::FileUrls)
    {
        effects.add(Role::Read, Piece { text, ..piece }, arguments);
    }
}

/// Adds what no word names by itself: files in a target directory, saved URLs, and the working directory.
fn add_places(
    effects: &mut Effects,
    arguments: &Arguments<'_>,
    roles: &Roles<'_>,
    target: Option<Piece<'_>>,
) {
    let (here, shape) = (arguments.here(), roles.shape);
    effects.moves |= shape.has(Trait::Moves);
    let operands = || roles.of(arguments);
    let is_source = |role: Role| {
        matches!(role, Role::Read | Role::Both | Role::RemoteRead | Role::Input | Role::NamedRead)
    };
    let is_put = |(piece, role): &(&Piece<'_>, Role)| {
        is_source(*role)
            && piece.form != WordForm::Computed
            && !(shape.has(Trait::Contents) && piece.text.ends_with('/'))
    };
    // Where nothing is put anywhere, they are not asked for.
    let sources: Vec<&str> = match shape.has_target() {
        true => operands().filter(is_put).map(|(piece, _)| piece.text).collect(),
        false => Vec::new(),
    };
    let last = operands()
        .next_back()
        .filter(|(_, role)| matches!(role, Role::Write | Role::RemoteWrite | Role::Output));
    let is_remote = operands().next_back().is_some_and(|(_, role)| role == Role::RemoteWrite);
    let written = target.or_else(|| last.map(|(piece, _)| *piece).filter(|_| !sources.is_empty()));
    if let Some(piece) = written
        && piece.form != WordForm::Computed
        && shape.has_target()
        && (target.is_some() || sources.len() > 1 || looks_like_directory(piece.text))
        && let Some(directory) = directory::located(arguments.base(piece), piece.text)
        && url::of_url(piece.text).is_none()
        && (!is_remote || url::of_remote(piece.text).is_none())
    {
        effects.put(&directory, &sources);
    }
    if shape.has(Trait::Saves) && effects.writes.is_empty() || (shape.has(Trait::Saves) && target.is_some()) {
        let place = match target {
            Some(piece) => directory::located(arguments.base(piece), piece.text),
            None => directory::located(here, "."),
        };
        save(effects, place.as_deref());
    }
    let names_file = operands().any(|(_, role)| matches!(role, Role::Read | Role::Both | Role::Script));
    let found_here = shape.has(Trait::ReadsHere) && !names_file;
    if found_here {
        effects.path(here_piece(), here, true, shape.writes_operands());
    }
    if shape.has(Trait::WritesHere) && target.is_none() {
        effects.path(here_piece(), here, false, true);
    }
    if let Some(word) = arguments.executed {
        add_executed(effects, arguments, roles, word);
    }
}

fn here_piece() -> Piece<'static> {
    Piece { text: ".", form: WordForm::Literal, base: 0 }
}

/// Adds what a URL is saved as.
fn save(effects: &mut Effects, place: Option<&str>) {
    let Some(place) = place else {
        effects.is_opaque = true;
        return;
    };
    let names: Vec<String> = effects.urls.iter().map(|url| url::saved_name(url).to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    effects.put(place, &names);
}

/// A program that changes files, run by `find` for what it finds: it may be any file below.
fn add_executed(effects: &mut Effects, arguments: &Arguments<'_>, roles: &Roles<'_>, word: &Word) {
    let program = program_name(word).and_then(table::program);
    if program.is_some_and(table::Program::writes_operands) {
        for (piece, _) in roles.of(arguments).filter(|(_, role)| *role == Role::Read) {
            effects.add(Role::Write, *piece, arguments);
        }
    }
}

/// Whether a target is a directory, as far as its name tells: no extension, or a slash at its end.
fn looks_like_directory(text: &str) -> bool {
    let name = directory::last(text);
    text.ends_with('/') || matches!(name, "" | "." | "..") || !name.trim_start_matches('.').contains('.')
}

/// Adds the files behind `<` and `>`.
fn add_redirections(effects: &mut Effects, command: &DividedCommand) {
    for redirection in &command.redirections {
        let (reads, writes) = match redirection.kind {
            RedirectionKind::Read => (true, false),
            RedirectionKind::Write => (false, true),
            RedirectionKind::ReadWrite => (true, true),
            RedirectionKind::Text => continue,
        };
        let target = &redirection.target;
        let piece = Piece { text: &target.text, form: target.form, base: 0 };
        effects.path(piece, &command.directory, reads, writes);
    }
}

/// Adds the files that the program of agents changes: its patch is a word or its input.
fn add_patch(effects: &mut Effects, command: &DividedCommand) {
    let given = command.redirections.iter().rfind(|redirection| redirection.kind == RedirectionKind::Text);
    let patch = command.words.get(1).or(given.map(|redirection| &redirection.target));
    effects.is_opaque |= patch.is_none_or(|patch| patch.form == WordForm::Computed);
    if let Some(patch) = patch {
        effects.patch(&patch.text, &command.directory);
    }
}

/// Whether a command changes to a directory that it names, and does nothing else.
fn changes_directory(program: &str, command: &DividedCommand, arguments: &Arguments<'_>) -> bool {
    let is_told = |piece: &Piece<'_>| {
        piece.form != WordForm::Computed
            && !piece.text.is_empty()
            && !piece.text.starts_with(['-', '+'])
            && (piece.form == WordForm::Literal || !piece.text.contains(['*', '?', '[']))
    };
    matches!(program, "cd" | "pushd" | "chdir")
        && arguments.operands.len() == 1
        && arguments.operands.iter().all(is_told)
        && arguments.options.iter().all(|option| matches!(&**option, "L" | "P" | "e"))
        && command.redirections.iter().all(|redirection| directory::is_device(&redirection.target.text))
}
