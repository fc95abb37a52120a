//! The files and URLs that a simple command names, by a table of programs.

mod arguments;
#[cfg(test)]
mod attack_tests;
mod awk;
#[cfg(test)]
mod boundary_tests;
mod computed;
#[cfg(test)]
mod corpus_tests;
mod directory;
mod effects;
mod emulation;
mod form;
#[cfg(test)]
mod runner_tests;
mod script;
mod setting;
mod table;
#[cfg(test)]
mod tests;
mod url;

use std::borrow::Cow;

use super::division::{DividedCommand, RedirectionKind, Word, WordForm, WorkingDirectory};
use crate::call::{Facts, SimpleCommand};
use arguments::{Arguments, Piece};
pub(super) use directory::is_device;
use effects::{Effects, PlacedPath};
use setting::SettingEffect;
use table::{Role, Trait};

pub(super) use effects::MOST_NAMED;

/// A simple command as rules see it, with what it does beside running: a fact for each kind and directory.
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
    let arguments = arguments::take_apart(program, behind);
    if name.is_some() {
        add_words(&mut effects, &arguments, command);
    }
    add_redirections(&mut effects, command);
    if matches!(name, Some("apply_patch" | "applypatch")) {
        add_patch(&mut effects, command);
    }
    if arguments.has(Trait::Patches) {
        add_diff(&mut effects, command, &arguments);
    }
    let lower = lower(name.unwrap_or_default());
    let emulates = emulation::emulated(&lower, command, &arguments, &effects);
    let changes_directory = changes_directory(command, &arguments);
    let text = joined(&command.words);
    let facts = effects.facts(command);
    ProgramReading {
        command: SimpleCommand {
            text,
            program: name.map(|name| match program.name {
                known if known == name => Cow::Borrowed(known),
                _ => Cow::Owned(name.to_owned()),
            }),
            options: arguments.options,
            changes_directory,
            // Of a file that is not told nobody knows which tool could do it.
            emulates: emulates.filter(|_| !effects.is_opaque),
            ..SimpleCommand::default()
        },
        facts,
        is_opaque: effects.is_opaque,
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
fn add_words(effects: &mut Effects, arguments: &Arguments<'_>, command: &DividedCommand) {
    let program = arguments.program();
    let shape = arguments.variant.unwrap_or(program);
    effects.is_opaque |= arguments.is_opaque || shape.has(Trait::Opaque);
    effects.is_opaque |= shape.has(Trait::RunsInput) && runs_input(arguments);
    effects.is_opaque |= shape.has(Trait::Appends) && !arguments.operands.first().is_none_or(counts);
    if shape.has(Trait::Settings) {
        add_setting(effects, arguments);
    }
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
    if shape.has(Trait::TakesInput) {
        let mut given =
            arguments.values.iter().map(|(role, _)| *role).chain(roles.of(arguments).map(|(_, role)| role));
        let is_given = given.any(|role| matches!(role, Role::Sql | Role::Code | Role::Program));
        let is_sql = arguments.program().runs_sql();
        effects.is_opaque |= !is_given && !is_told_input(command, is_sql);
    }
    effects.is_opaque |= arguments.has(Trait::Includes) && includes(arguments, command);
    add_found(effects, arguments, command);
    add_places(effects, arguments, &roles, target);
}

/// Whether the text that a compiler takes from its input names more files.
fn includes(arguments: &Arguments<'_>, command: &DividedCommand) -> bool {
    const NAMING: &[&str] = &["include", "incbin", "embed", "import"];
    let names_files = |text: &str| NAMING.iter().any(|word| text.contains(word));
    let is_input = |piece: &Piece<'_>| piece.text == "-" || is_device(piece.text);
    arguments.operands.iter().any(is_input)
        && command
            .redirections
            .iter()
            .any(|one| one.kind == RedirectionKind::Text && names_files(&one.target.text))
}

/// Adds what `find` deletes by a path or a hidden name, unless the test leaves out what it names.
fn add_found(effects: &mut Effects, arguments: &Arguments<'_>, command: &DividedCommand) {
    let is_searching = arguments.program().has(Trait::Front);
    let runs = || arguments.executed.and_then(program_name).and_then(table::program);
    let changes = arguments.variant.is_some_and(table::Program::writes_operands)
        || runs().is_some_and(table::Program::writes_operands);
    let negates = |word: &Word| matches!(word.text.as_str(), "!" | "-not");
    let has = |text: &str| command.words.iter().any(|word| word.text == text);
    if !is_searching || !changes || has("-prune") || (has("(") && command.words.iter().any(negates)) {
        return;
    }
    for window in command.words.windows(3) {
        let [before, test, value] = window else { continue };
        let is_path = matches!(test.text.as_str(), "-path" | "-ipath" | "-wholename" | "-iwholename");
        let is_name = matches!(test.text.as_str(), "-name" | "-iname") && value.text.starts_with('.');
        if !negates(before) && (is_path || is_name) {
            let form = if value.form == WordForm::Literal { WordForm::Pattern } else { value.form };
            let piece = Piece { text: &value.text, form, base: 0 };
            effects.path(piece, &WorkingDirectory::Unsaid, false, true);
        }
    }
}

/// Whether a program does nothing with files that it is given but count and name them, as far as is known.
fn counts(program: &Piece<'_>) -> bool {
    program.form == WordForm::Literal
        && table::program(directory::last(program.text)).is_none_or(|program| program.has(Trait::Counts))
}

/// Adds the file of settings that `git config` writes, where that makes git run a program.
fn add_setting(effects: &mut Effects, arguments: &Arguments<'_>) {
    let texts: Vec<&str> = arguments.operands.iter().map(|operand| operand.text).collect();
    let Some((key, value)) = setting::written(&texts, &arguments.options) else { return };
    let is_computed = |text: &str| {
        arguments.operands.iter().any(|operand| operand.text == text && operand.form == WordForm::Computed)
    };
    let value = value.filter(|value| !is_computed(value)).unwrap_or("$");
    let effect = if is_computed(key) { SettingEffect::Redirects } else { setting::of(key, value) };
    effects.is_opaque |= effect != SettingEffect::None;
    if let Some(text) = setting::file(&arguments.options).filter(|_| effect == SettingEffect::Runs) {
        effects.path(Piece { text, ..here_piece() }, arguments.here(), false, true);
    }
}

/// Whether what a program takes from its input is a file, or a text that only asks.
fn is_told_input(command: &DividedCommand, is_sql: bool) -> bool {
    command.redirections.iter().rfind(|one| one.kind != RedirectionKind::Write).is_some_and(|one| {
        match one.kind {
            RedirectionKind::Text => {
                is_sql && one.target.form == WordForm::Literal && !script::sql_runs(&one.target.text)
            }
            RedirectionKind::Read | RedirectionKind::ReadWrite => !is_device(&one.target.text),
            RedirectionKind::Write => false,
        }
    })
}

/// Verbs of git that write the files of its working tree.
const WRITING_TREE: &[&str] = &[
    "am",
    "apply",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "stash",
    "switch",
];

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
        script.form == WordForm::Computed || script.text == "-" || is_device(script.text)
    })
}

/// The role of `if=file`.
fn named_role(shape: &table::Program, text: &str) -> Option<Role> {
    if shape.operands.named.is_empty() {
        return None;
    }
    let (name, _) = text.trim_start_matches('"').split_once('=')?;
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
    // Another directory than that of the repository.
    let is_elsewhere = arguments.options.iter().any(|option| option == "work-tree");
    if is_elsewhere && WRITING_TREE.contains(&arguments.program().name) {
        effects.path(here_piece(), here, false, true);
    }
    let operands = || roles.of(arguments);
    let is_source = |role: Role| {
        matches!(role, Role::Read | Role::Both | Role::RemoteRead | Role::Input | Role::NamedRead)
    };
    let is_put = |(piece, role): &(&Piece<'_>, Role)| {
        is_source(*role) && !(shape.has(Trait::Contents) && piece.text.ends_with('/'))
    };
    let named = |(piece, _): (&Piece<'_>, Role)| match piece.form {
        WordForm::Computed => computed::name(piece.text),
        WordForm::Literal | WordForm::Pattern => Some(piece.text.to_owned()),
    };
    // Where nothing is put anywhere, they are not asked for.
    let sources: Vec<String> = match shape.has_target() {
        true => operands().filter(is_put).filter_map(named).collect(),
        false => Vec::new(),
    };
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let last = operands()
        .next_back()
        .filter(|(_, role)| matches!(role, Role::Write | Role::RemoteWrite | Role::Output));
    let is_remote = operands().next_back().is_some_and(|(_, role)| role == Role::RemoteWrite);
    let written = target.or_else(|| last.map(|(piece, _)| *piece).filter(|_| !sources.is_empty()));
    if let Some(piece) = written
        && shape.has_target()
        && let Some(directory) = directory_of(effects, arguments, piece)
        && (target.is_some() || sources.len() > 1 || looks_like_directory(&directory.text))
        && url::of_url(piece.text).is_none()
        && (!is_remote || url::of_remote(piece.text).is_none())
    {
        effects.put(&directory, &sources);
    }
    if shape.has(Trait::Saves) && effects.writes.is_empty() || (shape.has(Trait::Saves) && target.is_some()) {
        let place = match target {
            Some(piece) => directory_of(effects, arguments, piece),
            None => Some(effects.place(here, ".".to_owned())),
        };
        save(effects, place.as_ref());
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

/// A directory that files are put into, as far as a word tells it.
fn directory_of(effects: &mut Effects, arguments: &Arguments<'_>, piece: Piece<'_>) -> Option<PlacedPath> {
    match piece.form {
        WordForm::Computed => effects.told(piece, arguments.base(piece)),
        WordForm::Literal | WordForm::Pattern => {
            Some(effects.place(arguments.base(piece), piece.text.to_owned()))
        }
    }
}

fn here_piece() -> Piece<'static> {
    Piece { text: ".", form: WordForm::Literal, base: 0 }
}

/// Adds what a URL is saved as.
fn save(effects: &mut Effects, place: Option<&PlacedPath>) {
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
        if !effects.connection(piece) {
            effects.path(piece, &WorkingDirectory::Unsaid, reads, writes);
        }
    }
}

/// Adds the files that the program of agents changes: its patch is a word or its input.
fn add_patch(effects: &mut Effects, command: &DividedCommand) {
    let given = command.redirections.iter().rfind(|redirection| redirection.kind == RedirectionKind::Text);
    let patch = command.words.get(1).or(given.map(|redirection| &redirection.target));
    effects.is_opaque |= patch.is_none_or(|patch| patch.form == WordForm::Computed);
    if let Some(patch) = patch {
        effects.patch(&patch.text);
    }
}

/// Adds the files that a diff changes, where the program takes it from its input. How many components are left out
/// in front of a name, options say: any number may be.
fn add_diff(effects: &mut Effects, command: &DividedCommand, arguments: &Arguments<'_>) {
    let is_input = |piece: &Piece<'_>| piece.text == "-" || is_device(piece.text);
    let is_patch = matches!(arguments.program().name, "patch" | "gpatch");
    let is_file = match is_patch {
        true => {
            arguments.values.iter().any(|(role, piece)| *role == Role::Read && !is_input(piece))
                || arguments.operands.get(1).is_some_and(|piece| !is_input(piece))
        }
        // Each operand is a patch of its own.
        false => !arguments.operands.is_empty() && !arguments.operands.iter().any(is_input),
    };
    // What a patch brings into a directory is not told by the words.
    let target = arguments.values.iter().find(|(role, _)| *role == Role::Into).map(|(_, piece)| *piece);
    effects.moves |= target.is_some();
    if is_file {
        return;
    }
    let given = command.redirections.iter().rfind(|one| one.kind != RedirectionKind::Write);
    match given.map(|given| (given.kind, &given.target)) {
        Some((RedirectionKind::Text, text)) => match target {
            Some(target) => {
                let base = directory::moved(arguments.here(), target.text, target.form);
                effects.diff(&text.text, &base);
            }
            None => effects.diff(&text.text, arguments.here()),
        },
        Some((RedirectionKind::Read, file)) if file.form != WordForm::Computed && !is_device(&file.text) => {}
        Some(_) | None => effects.is_opaque = true,
    }
}

/// Whether a command changes to a directory that it names, and does nothing else.
fn changes_directory(command: &DividedCommand, arguments: &Arguments<'_>) -> bool {
    let is_told = |piece: &Piece<'_>| {
        piece.form != WordForm::Computed
            && !piece.text.is_empty()
            && !piece.text.starts_with(['-', '+'])
            && (piece.form == WordForm::Literal || !piece.text.contains(['*', '?', '[']))
    };
    // `./cd` and `CD` are programs.
    let program = command.words.first().map(|word| word.text.as_str());
    matches!(program, Some("cd" | "pushd"))
        && arguments.operands.len() == 1
        && arguments.operands.iter().all(is_told)
        && arguments.options.iter().all(|option| matches!(&**option, "L" | "P" | "e"))
        && command.redirections.iter().all(|redirection| is_device(&redirection.target.text))
}
