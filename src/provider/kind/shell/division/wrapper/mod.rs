//! The command that is left without the programs that only run it.

pub(super) mod builtin;
mod options;
mod table;

use std::borrow::Cow;
use std::slice;

use super::super::OF_THE_SYSTEM;
use super::place::Place;
use super::state::{RawRedirection, Record, State, Step};
use super::{Redirection, RedirectionKind, Word, WordForm};
use options::Options;
use table::{Known, Runs, Wrapper, find};

/// How many wrappers are taken off.
const MOST_WRAPPERS: usize = 4;

/// Whether commands of this name are more to this reader than a program.
pub(super) fn is_read(name: &str) -> bool {
    match find(name) {
        Some(Known::Builtin(name)) => builtin::is_changing(name),
        Some(Known::Wrapper(_) | Known::Unread | Known::Find) => true,
        Some(Known::Ip | Known::Cmake) | None => false,
    }
}

/// The directory of a program, if it is named by one, and its name.
fn split(program: &str) -> (Option<&str>, &str) {
    let slash = program.bytes().rposition(|byte| byte == b'/');
    match slash.and_then(|at| program.split_at_checked(at)) {
        Some((directory, name)) => (Some(directory), name.get(1..).unwrap_or_default()),
        None => (None, program),
    }
}

/// The name of a program, as systems find it.
fn base(name: &str) -> Cow<'_, str> {
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
            let (directory, name) = split(&program.text);
            let known = find(&base(name));
            let wrapper = match known {
                Some(Known::Wrapper(wrapper)) => wrapper,
                Some(Known::Unread) => {
                    state.is_opaque = true;
                    return state.record(self.record);
                }
                Some(Known::Find) => return self.find(state),
                Some(Known::Ip) => return self.plain("ip", state),
                Some(Known::Cmake) => {
                    if is_system(directory, name) && tool_of_cmake(&mut self.record, state) {
                        continue;
                    }
                    return self.plain("", state);
                }
                // In a directory it is a program of the same name.
                Some(Known::Builtin(known)) if known == program.text => return self.plain(known, state),
                Some(Known::Builtin(_)) | None => return self.plain("", state),
            };
            let is_own = is_system(directory, name);
            if state.wrappers >= MOST_WRAPPERS {
                state.is_opaque = true;
                return state.record(self.record);
            }
            state.wrappers += 1;
            if !is_own {
                // A program of the wrapper's name, which may do anything beside.
                self.record_itself(state)?;
                self.is_here = false;
            }
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
        self.hide_beside(wrapper, &options, state);
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
            Runs::Pieces | Runs::Texts if !options.is_exact => {
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
            Runs::Command | Runs::Here | Runs::Assigned | Runs::Elevated | Runs::Options => {}
            Runs::Pieces | Runs::Texts => {}
        }
        let assigns = matches!(wrapper.runs, Runs::Assigned | Runs::Elevated);
        let before = self.record.words.get(1..options.rest).unwrap_or_default();
        let before = before.iter().filter(|word| assigns && !word.text.starts_with('-'));
        for word in before.chain(&options.set) {
            let Some((name, value)) = word.text.split_once('=') else { continue };
            state.has_assignments = true;
            state.is_opaque |= builtin::is_named_elsewhere(word);
            // Where something is expanded in it, its quotes are still there.
            state.assign(&name.replace(['"', '\'', '\\'], ""), Some(value));
        }
        // These change more than how long a command runs: a rule may be about them.
        if matches!(wrapper.runs, Runs::Elevated | Runs::Elsewhere | Runs::Input | Runs::Options) {
            self.record_itself(state)?;
        }
        self.record.words.drain(..options.rest);
        self.is_here &= wrapper.runs == Runs::Here;
        Ok(Some(self))
    }

    /// Records the command as it stands; what it wraps is still to be read.
    fn record_itself(&self, state: &mut State) -> Step<()> {
        let counted = state.count_words(self.record.words.len());
        let (words, place) = (self.record.words.clone(), self.record.place.clone());
        let Record { is_piped, order, .. } = self.record;
        state.record(Record { words, redirections: Vec::new(), place, is_piped, order }).and(counted)
    }

    /// Operands that come from the input.
    fn with_input(&mut self, options: &Options) {
        match &options.replaced {
            Some(replaced) => compute(self.record.words.iter_mut().skip(options.rest), &replaced.text),
            None => self.record.words.push(Word { text: "{}".to_owned(), form: WordForm::Computed }),
        }
    }

    /// Texts in the words around what runs, of which a shell among it makes variables.
    fn hide_beside(&self, wrapper: &Wrapper, options: &Options, state: &mut State) {
        let words = &self.record.words;
        // Behind a shell's script stand its operands, behind other wrappers what is read on its own.
        let is_shell = matches!(wrapper.runs, Runs::Shell | Runs::Options);
        let end = if is_shell { words.len() } else { options.rest };
        for (at, word) in words.iter().enumerate().take(end).skip(1) {
            let is_script = options.first_is_text && at == options.rest;
            if !is_script && options.text.as_ref().is_none_or(|text| text.text != word.text) {
                builtin::hide(slice::from_ref(word), state);
                if at >= options.rest {
                    state.hide_expression(&word.text);
                }
            }
        }
    }

    /// `sh -c TEXT`, `sh FILE`, `sh <<END`
    fn shell(self, options: &Options, state: &mut State) -> Step<()> {
        let operand = self.record.words.get(options.rest).cloned();
        let mut before = self.record.words.iter().take(options.rest).skip(1);
        state.evaluation.is_interactive |= before.any(|word| {
            word.text == "interactive"
                || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('i')
        });
        match operand {
            Some(text) if options.first_is_text => return self.text(&text, false, state),
            None if options.first_is_text => state.is_opaque = true,
            Some(file) if !options.reads_input && !is_input(&file, &self.record.place) => {
                state.is_opaque |= file.form != WordForm::Literal || is_special(&file, &self.record.place);
            }
            Some(_) | None => return self.shell_of_input(state),
        }
        state.record(self.record)
    }

    /// A shell that reads its commands from its input.
    fn shell_of_input(self, state: &mut State) -> Step<()> {
        let mut inputs = self.record.redirections.iter().rev().filter(|redirection| redirection.is_input());
        let input = inputs.next();
        // zsh reads each of them.
        state.is_opaque |= inputs.next().is_some();
        match input {
            Some(RawRedirection::Document(number)) => {
                state.run_later(*number, self.record.place.clone());
            }
            Some(RawRedirection::To(to)) if to.kind == RedirectionKind::Text => {
                let text = to.target.clone();
                return self.text(&text, false, state);
            }
            Some(RawRedirection::To(to)) => {
                let is_file =
                    to.target.form == WordForm::Literal && !is_special(&to.target, &self.record.place);
                state.is_opaque |= to.kind != RedirectionKind::Read || !is_file;
            }
            Some(RawRedirection::Aside(_) | RawRedirection::Copy) | None => state.is_opaque = true,
        }
        state.record(self.record)
    }

    /// `eval` and `watch`, whose operands are one text.
    fn pieces(self, rest: usize, wrapper: &Wrapper, state: &mut State) -> Step<()> {
        let pieces = self.record.words.get(rest..).unwrap_or_default();
        let is_literal = pieces.iter().all(|word| word.form == WordForm::Literal);
        let text = pieces.iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
        let text = text.join(if wrapper.runs == Runs::Texts { "\n" } else { " " });
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
            state.is_ended = false;
        }
        read
    }

    /// A command that wraps no other; its name where it is more than a program.
    fn plain(self, name: &'static str, state: &mut State) -> Step<()> {
        if state.has_moving_function
            && self.record.words.first().is_some_and(|word| state.functions.contains(&word.text))
        {
            state.place = Place::computed();
            state.moves += 1;
        }
        let operand = self.record.words.get(1);
        let is_option = |text: &str| self.record.words.iter().skip(1).any(|word| word.text.starts_with(text));
        match name {
            "cd" | "chdir" | "pushd" | "popd" if self.is_here => self.change_directory(name, state),
            "source" | "." => {
                let is_file = operand.is_some_and(|file| {
                    file.form == WordForm::Literal && !is_special(file, &self.record.place)
                });
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
            "exit" if self.is_here => {
                let is_status =
                    |word: &Word| word.text == "$?" || word.text.bytes().all(|byte| byte.is_ascii_digit());
                state.is_ended = self.record.words.len() <= 2
                    && operand.is_none_or(is_status)
                    && self.record.redirections.is_empty();
            }
            "ip" => {
                // `ip netns exec NAME COMMAND`, and its verbs cut short.
                let begins = |at: usize, of: char| {
                    self.record.words.get(at).is_some_and(|word| word.text.starts_with(of))
                };
                state.is_opaque |=
                    (1..self.record.words.len()).any(|at| begins(at, 'n') && begins(at + 1, 'e'));
            }
            _ => builtin::evaluate(name, &self.record.words, state),
        }
        self.hide_given(state);
        state.record(self.record)
    }

    /// Texts that a command is given, which it may give to a variable, whatever it is called.
    fn hide_given(&self, state: &mut State) {
        builtin::hide(self.record.words.get(1..).unwrap_or_default(), state);
        builtin::hide_texts(&self.record.redirections, state);
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
                let is_last = |word: &Word| matches!(word.text.as_str(), "EXIT" | "0");
                let runs_anytime = !self.record.words.iter().skip(2).all(is_last);
                let moves = state.moves;
                let read = self.text(&text, false, state);
                state.has_trap |= runs_anytime;
                state.moves_anytime |= runs_anytime && (state.moves != moves || state.has_moving_function);
                read
            }
            Some(_) | None => state.record(self.record),
        }
    }

    /// `find … -exec COMMAND ;`: a command itself, and each that it runs.
    fn find(self, state: &mut State) -> Step<()> {
        builtin::hide_texts(&self.record.redirections, state);
        let Record { words, place, order, .. } = &self.record;
        // Its parentheses are words of their own.
        words
            .iter()
            .filter(|word| word.text != "(")
            .for_each(|word| builtin::hide(slice::from_ref(word), state));
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

/// Takes the tool of cmake off that runs another command; false where it is none.
fn tool_of_cmake(record: &mut Record, state: &mut State) -> bool {
    let Some(verb) =
        record.words.get(2).filter(|_| record.words.get(1).is_some_and(|word| word.text == "-E"))
    else {
        return false;
    };
    // Those that cmake has for itself run what it gives them.
    let is_own = verb.text.starts_with("__") || verb.text.starts_with("cmake_");
    state.is_opaque |= verb.form != WordForm::Literal || is_own;
    let wrapper: &[&str] = match verb.text.as_str() {
        "env" => &["env"],
        "chdir" => &["env", "-C"],
        "time" => &["time"],
        _ => return false,
    };
    let word = |text: &&str| Word { text: (*text).to_owned(), form: WordForm::Literal };
    record.words.splice(..3, wrapper.iter().map(word));
    true
}

/// Names of what the shell reads from anyway.
const INPUTS: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether a file is what the shell reads from anyway.
fn is_input(file: &Word, place: &Place) -> bool {
    // From some of several directories it would be another one.
    let is_other = |path: &str| !INPUTS.contains(&path);
    file.text == "-" || place.reaches(file, |path| INPUTS.contains(&path)) && !place.reaches(file, is_other)
}

/// Whether a file may be what is open already: the input, or another descriptor.
fn is_special(file: &Word, place: &Place) -> bool {
    let is_device =
        |path: &str| path.starts_with("/proc/") || path.starts_with("/dev/") && path != "/dev/null";
    file.text == "-" || place.reaches(file, is_device)
}

/// Whether a name is that of the system's program, and not of a file that may be anything.
fn is_system(directory: Option<&str>, name: &str) -> bool {
    match directory {
        Some(directory) => OF_THE_SYSTEM.contains(&directory),
        None => !name.bytes().any(|byte| byte.is_ascii_uppercase()),
    }
}

/// Makes words computed that have this text in them.
fn compute<'a>(words: impl Iterator<Item = &'a mut Word>, text: &str) {
    for word in words.filter(|word| word.text.contains(text)) {
        word.form = WordForm::Computed;
    }
}
