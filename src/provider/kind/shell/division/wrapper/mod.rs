//! The command that is left without the programs that only run it.

mod options;
mod table;

use std::borrow::Cow;

use super::place::Place;
use super::state::{RawRedirection, Record, State, Step};
use super::{Redirection, RedirectionKind, Word, WordForm};
use options::Options;
use table::{Runs, Wrapper, find};

/// How many wrappers are taken off.
const MOST_WRAPPERS: usize = 4;

/// Commands whose text no reader here reads.
const UNREAD: &[&str] =
    &["pwsh", "powershell", "cmd", "fish", "nu", "csh", "tcsh", "elvish", "xonsh", "parallel", "coproc"];

/// Commands of the shell that are read here for what they change.
const BUILTINS: &[&str] =
    &["cd", "chdir", "pushd", "popd", "source", ".", "alias", "trap", "hash", "enable", "find"];

/// Whether commands of this name are more to this reader than a program.
pub(super) fn is_read(name: &str) -> bool {
    UNREAD.contains(&name) || BUILTINS.contains(&name) || find(name).is_some()
}

/// The name of a program without its directory.
fn base(program: &str) -> Cow<'_, str> {
    let name = program.rsplit('/').next().unwrap_or_default();
    let has_upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
    let name = if has_upper { Cow::Owned(name.to_ascii_lowercase()) } else { Cow::Borrowed(name) };
    match name.strip_suffix(".exe") {
        Some(stem) => Cow::Owned(stem.to_owned()),
        None => name,
    }
}

/// Records a command without its wrappers, and what it does to the commands behind it.
pub(super) fn run(record: Record, state: &mut State) -> Step<()> {
    let outer = state.wrappers;
    let ran = Unwrapping { record, is_here: true }.run(state);
    state.wrappers = outer;
    ran
}

/// A command while its wrappers are taken off.
struct Unwrapping {
    record: Record,
    /// The shell itself runs it, so that it may change the directory.
    is_here: bool,
}

impl Unwrapping {
    fn run(mut self, state: &mut State) -> Step<()> {
        loop {
            let Some(program) = self.record.words.first() else {
                return if self.record.redirections.is_empty() { Ok(()) } else { state.record(self.record) };
            };
            if !is_program(program) {
                state.is_opaque = true;
                return state.record(self.record);
            }
            let name = base(&program.text);
            let Some(wrapper) = find(&name) else {
                let known = UNREAD.iter().chain(BUILTINS).find(|known| **known == name);
                return self.plain(known.copied().unwrap_or_default(), state);
            };
            if state.wrappers >= MOST_WRAPPERS {
                state.is_opaque = true;
                return state.record(self.record);
            }
            state.wrappers += 1;
            let Some(inner) = self.take_off(wrapper, state)? else { return Ok(()) };
            self = inner;
        }
    }

    /// What stands behind a wrapper and its options; none where that is recorded.
    fn take_off(mut self, wrapper: &Wrapper, state: &mut State) -> Step<Option<Self>> {
        let options = Options::read(wrapper, &self.record.words);
        state.is_opaque |= options.is_opaque;
        if options.stays {
            return state.record(self.record).map(|()| None);
        }
        let file =
            |kind| move |target: &Word| RawRedirection::To(Redirection { kind, target: target.clone() });
        self.record.redirections.extend(options.written.iter().map(file(RedirectionKind::Write)));
        self.record.redirections.extend(options.read.iter().map(file(RedirectionKind::Read)));
        if let Some(directory) = &options.directory {
            self.record.place = self.record.place.moved(directory, self.record.order);
        }
        if options.is_home {
            self.record.place = Place::computed();
        }
        if let Some(text) = options.text {
            return self.text(&text, false, state).map(|()| None);
        }
        let rest = self.record.words.get(options.rest..).unwrap_or_default();
        match wrapper.runs {
            Runs::Shell => return self.shell(&options, state).map(|()| None),
            Runs::Pieces if !options.is_exact => {
                return self.pieces(options.rest, wrapper, state).map(|()| None);
            }
            Runs::Elevated | Runs::Elsewhere | Runs::Options
                if rest.is_empty() || wrapper.runs == Runs::Options =>
            {
                // A shell that reads what is typed.
                state.is_opaque = true;
                return state.record(self.record).map(|()| None);
            }
            _ if rest.is_empty() => return state.record(self.record).map(|()| None),
            Runs::Elsewhere => {
                state.is_opaque = true;
                self.record.place = Place::computed();
            }
            Runs::Input => self.with_input(&options),
            Runs::Command | Runs::Here | Runs::Assigned | Runs::Elevated | Runs::Options | Runs::Pieces => {}
        }
        let options_of = self.record.words.get(1..options.rest).unwrap_or_default();
        state.has_assignments |= matches!(wrapper.runs, Runs::Assigned | Runs::Elevated)
            && options_of.iter().any(|word| word.text.contains('=') && !word.text.starts_with('-'));
        // These change more than how long a command runs: a rule may be about them.
        if matches!(wrapper.runs, Runs::Elevated | Runs::Elsewhere | Runs::Input | Runs::Options) {
            if let Err(stop) = state.count_words(self.record.words.len()) {
                return state.record(self.record).and(Err(stop));
            }
            let (words, place) = (self.record.words.clone(), self.record.place.clone());
            let Record { is_piped, order, .. } = self.record;
            state.record(Record { words, redirections: Vec::new(), place, is_piped, order })?;
        }
        self.record.words.drain(..options.rest);
        self.is_here &= wrapper.runs == Runs::Here;
        Ok(Some(self))
    }

    /// Operands that come from the input.
    fn with_input(&mut self, options: &Options) {
        match &options.replaced {
            Some(replaced) => compute(self.record.words.iter_mut().skip(options.rest), &replaced.text),
            None => self.record.words.push(Word { text: "{}".to_owned(), form: WordForm::Computed }),
        }
    }

    /// `sh -c TEXT`, `sh FILE`, `sh <<END`
    fn shell(self, options: &Options, state: &mut State) -> Step<()> {
        let operand = self.record.words.get(options.rest).cloned();
        match operand {
            Some(text) if options.first_is_text => return self.text(&text, false, state),
            None if options.first_is_text => state.is_opaque = true,
            Some(file) if !options.reads_input && !is_input(&file) => {
                state.is_opaque |= file.form != WordForm::Literal;
            }
            Some(_) | None => return self.shell_of_input(state),
        }
        state.record(self.record)
    }

    /// A shell that reads its commands from its input.
    fn shell_of_input(self, state: &mut State) -> Step<()> {
        let text = self.record.redirections.iter().rev().find_map(|redirection| match redirection {
            RawRedirection::Document(number) => Some(Err(*number)),
            RawRedirection::To(to) if to.kind == RedirectionKind::Text => Some(Ok(to.target.clone())),
            RawRedirection::To(_) => None,
        });
        let is_file = self.record.redirections.iter().any(
            |raw| matches!(raw, RawRedirection::To(to) if to.kind == RedirectionKind::Read && to.target.form == WordForm::Literal),
        );
        match text {
            Some(Ok(text)) => return self.text(&text, false, state),
            Some(Err(document)) => state.run_later(document, self.record.place.clone()),
            None => state.is_opaque |= !is_file,
        }
        state.record(self.record)
    }

    /// `eval` and `watch`, whose operands are one text.
    fn pieces(self, rest: usize, wrapper: &Wrapper, state: &mut State) -> Step<()> {
        let pieces = self.record.words.get(rest..).unwrap_or_default();
        let is_literal = pieces.iter().all(|word| word.form == WordForm::Literal);
        let text = pieces.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let form = if is_literal { WordForm::Literal } else { WordForm::Computed };
        let is_eval = self.is_here && wrapper.names == ["eval"];
        self.text(&Word { text, form }, is_eval, state)
    }

    /// Reads a text that is run. `is_here`: by the same shell.
    fn text(self, text: &Word, is_here: bool, state: &mut State) -> Step<()> {
        let Record { words, redirections, place, is_piped, order } = self.record;
        let outer = std::mem::replace(&mut state.place, place.clone());
        let is_told = text.form == WordForm::Literal;
        state.is_opaque |= !is_told;
        // What is expanded in a text may be anything; what stands around it runs all the same.
        let (words, text) =
            if is_told { (Vec::new(), text.text.clone()) } else { (words, unquoted(&text.text)) };
        if !is_told || !redirections.is_empty() {
            state.record(Record { words, redirections, place, is_piped, order })?;
        }
        let read = state.read_nested(&text);
        if !is_here {
            state.place = outer;
        }
        read
    }

    /// A command that wraps no other; its name where it is more than a program.
    fn plain(self, name: &'static str, state: &mut State) -> Step<()> {
        let operand = self.record.words.get(1);
        let has_operand = operand.is_some();
        let is_option = |text: &str| self.record.words.iter().skip(1).any(|word| word.text.starts_with(text));
        match name {
            "cd" | "chdir" | "pushd" | "popd" if self.is_here => self.change_directory(name, state),
            "source" | "." => {
                let is_file = operand.is_some_and(|file| file.form == WordForm::Literal && !is_input(file));
                state.is_opaque |= !is_file;
            }
            "alias" => {
                state.is_opaque |= self
                    .record
                    .words
                    .iter()
                    .skip(1)
                    .any(|word| word.form != WordForm::Literal || word.text.contains('='))
            }
            "hash" => state.is_opaque |= is_option("-p"),
            "enable" => state.is_opaque |= is_option("-"),
            "trap" => return self.trap(state),
            "find" => return self.find(state),
            _ => state.is_opaque |= has_operand && UNREAD.contains(&name),
        }
        state.record(self.record)
    }

    fn change_directory(&self, name: &str, state: &mut State) {
        let mut operands = self.record.words.iter().skip(1).filter(|word| {
            !matches!(word.text.as_str(), "-L" | "-P" | "-e" | "-@" | "--") || word.form != WordForm::Literal
        });
        let (to, other) = (operands.next(), operands.next());
        let is_searched = |text: &str| state.assigns_search_path && !text.starts_with(['/', '.']);
        let to = to.filter(|to| {
            other.is_none() && name != "popd" && !to.text.starts_with(['-', '+']) && !is_searched(&to.text)
        });
        state.place = to.map_or_else(Place::computed, |to| state.place.moved(to, self.record.order));
        state.moves += 1;
    }

    /// `trap TEXT SIGNAL`: the text runs later, wherever the shell is then.
    fn trap(mut self, state: &mut State) -> Step<()> {
        match self.record.words.get(1) {
            Some(text)
                if !text.text.is_empty() && !text.text.starts_with('-') && self.record.words.len() > 2 =>
            {
                let text = text.clone();
                self.record.place = Place::computed();
                self.text(&text, false, state)
            }
            Some(_) | None => state.record(self.record),
        }
    }

    /// `find … -exec COMMAND ;`: a command itself, and each that it runs.
    fn find(self, state: &mut State) -> Step<()> {
        let Record { words, place, order, .. } = &self.record;
        let mut commands = Vec::new();
        let mut counted = Ok(());
        let mut rest = words.iter().skip(1);
        while let Some(word) = rest.next() {
            if !matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
                continue;
            }
            let mut inner: Vec<Word> = Vec::new();
            let is_ended = rest.by_ref().any(|next| {
                let is_end = next.text == ";"
                    || (next.text == "+" && inner.last().is_some_and(|last| last.text == "{}"));
                if !is_end {
                    inner.push(next.clone());
                }
                is_end
            });
            state.is_opaque |= !is_ended || inner.is_empty();
            counted = state.count_words(inner.len());
            if counted.is_err() {
                break;
            }
            compute(inner.iter_mut(), "{}");
            let place = if word.text.ends_with("dir") { Place::computed() } else { place.clone() };
            let record =
                Record { words: inner, redirections: Vec::new(), place, is_piped: false, order: *order };
            commands.push(Self { record, is_here: false });
        }
        state.record(self.record)?;
        counted?;
        if state.wrappers >= MOST_WRAPPERS {
            state.is_opaque |= !commands.is_empty();
            return Ok(());
        }
        let outer = state.wrappers + 1;
        for command in commands {
            state.wrappers = outer;
            command.run(state)?;
        }
        Ok(())
    }
}

/// A word without the quotes in which it is written, as far as that can be told without its expansions.
fn unquoted(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    let (mut is_double, mut is_single, mut signs) = (false, false, written.chars().peekable());
    while let Some(sign) = signs.next() {
        match sign {
            '"' if !is_single => is_double = !is_double,
            '\'' if !is_double => is_single = !is_single,
            '\\' if !is_single => match signs.next_if(|next| !is_double || "\"\\$`\n".contains(*next)) {
                Some('\n') => {}
                escaped => text.push(escaped.unwrap_or('\\')),
            },
            _ => text.push(sign),
        }
    }
    text
}

/// Whether a word names the program that runs: a `~` in front hides its directory alone.
fn is_program(word: &Word) -> bool {
    match word.form {
        WordForm::Literal => !word.text.starts_with('=') && !word.text.is_empty(),
        WordForm::Pattern => {
            word.text.starts_with("~") && word.text.contains('/') && !word.text.contains(['*', '?', '['])
        }
        WordForm::Computed => false,
    }
}

/// Whether a file is what the shell reads from anyway.
fn is_input(file: &Word) -> bool {
    file.text == "-"
        || file.text == "/dev/stdin"
        || file.text.starts_with("/dev/fd/")
        || file.text.starts_with("/proc/")
}

/// Makes words computed that have this text in them.
fn compute<'a>(words: impl Iterator<Item = &'a mut Word>, text: &str) {
    for word in words.filter(|word| word.text.contains(text)) {
        word.form = WordForm::Computed;
    }
}
