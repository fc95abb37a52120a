//! Takes the words of a command apart by its program: verbs, options and their values, operands.

use std::borrow::Cow;

use super::super::division::{Word, WordForm, WorkingDirectory};
use super::table::{self, OptionSpec, Program, Role, Trait};
use super::{directory, setting};

/// Past so many options duplicates are kept: they are no longer looked for.
const MOST_COMPARED: usize = 64;

/// A word or the value of an option, with the directory that was current where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) form: WordForm,
    /// How many options moved that before.
    pub(super) base: usize,
}

/// The words behind a program, by what they are.
pub(super) struct Arguments<'a> {
    /// The program, or the innermost of its verbs.
    program: &'static Program,
    /// The programs around that, the outermost first.
    outer: Vec<&'static Program>,
    pub(super) variant: Option<&'static Program>,
    /// The names of the options.
    pub(super) options: Vec<Cow<'static, str>>,
    /// Those of one letter, a bit for each: a word may have thousands.
    letters: u128,
    pub(super) values: Vec<(Role, Piece<'a>)>,
    pub(super) operands: Vec<Piece<'a>>,
    /// How many operands stand before `--`.
    pub(super) dashes: Option<usize>,
    /// The directories that options move to.
    moved: Vec<WorkingDirectory>,
    /// The command that an option holds, as of `find -exec`.
    pub(super) executed: Option<&'a Word>,
    pub(super) is_opaque: bool,
    takes_options: bool,
    saw_option: bool,
}

/// Takes the words behind a program apart.
pub(super) fn take_apart<'a>(program: &'static Program, words: &'a [Word]) -> Arguments<'a> {
    let mut arguments = Arguments {
        program,
        outer: Vec::new(),
        variant: None,
        options: Vec::new(),
        letters: 0,
        values: Vec::new(),
        operands: Vec::with_capacity(words.len()),
        dashes: None,
        moved: Vec::new(),
        executed: None,
        is_opaque: false,
        takes_options: true,
        saw_option: false,
    };
    let mut words = words.iter();
    if program.has(Trait::Bundled)
        && let Some(first) = words.as_slice().first()
        && first.form == WordForm::Literal
        && first.text.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        words.next();
        arguments.bundle(&first.text, &mut words);
    }
    while let Some(word) = words.next() {
        arguments.word(word, &mut words);
    }
    arguments
}

/// A name of one character out of a text of all, so that nothing is copied for the option of a letter.
fn letter(name: &str) -> Option<&'static str> {
    const LETTERS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let at = LETTERS.bytes().position(|letter| name.as_bytes() == [letter])?;
    LETTERS.get(at..=at)
}

fn literal_start(word: &Word) -> &str {
    literal_start_of(&word.text, word.form)
}

/// The beginning of a word that stands there whatever expansions give.
pub(super) fn literal_start_of(text: &str, form: WordForm) -> &str {
    match form {
        WordForm::Literal | WordForm::Pattern => text,
        WordForm::Computed => {
            let text = text.trim_start_matches('"');
            let end = text.find(['$', '`', '"', '\'', '\\', '<', '>']).unwrap_or(text.len());
            text.get(..end).unwrap_or_default()
        }
    }
}

impl<'a> Arguments<'a> {
    pub(super) fn program(&self) -> &'static Program {
        self.program
    }

    /// The directory in which a word or a value begins, from that of the command.
    pub(super) fn base(&self, piece: Piece<'_>) -> &WorkingDirectory {
        let last = piece.base.checked_sub(1);
        last.and_then(|number| self.moved.get(number)).unwrap_or(&WorkingDirectory::Unsaid)
    }

    /// The directory behind all options.
    pub(super) fn here(&self) -> &WorkingDirectory {
        self.moved.last().unwrap_or(&WorkingDirectory::Unsaid)
    }

    /// The first value of this role.
    pub(super) fn value(&self, role: Role) -> Option<Piece<'a>> {
        self.values.iter().find(|(other, _)| *other == role).map(|(_, piece)| *piece)
    }

    /// Whether an option says that what has no scheme is a file.
    pub(super) fn takes_files(&self) -> bool {
        self.value(Role::Scheme).is_some_and(|scheme| scheme.text.eq_ignore_ascii_case("file"))
    }

    /// Whether the program, or the variant that its options choose, is so.
    pub(super) fn has(&self, wanted: Trait) -> bool {
        self.variant.unwrap_or(self.program()).has(wanted)
    }

    /// Whether the program, or the verb, is so.
    pub(super) fn has_anywhere(&self, wanted: Trait) -> bool {
        self.program.has(wanted) || self.outer.iter().any(|program| program.has(wanted))
    }

    fn word(&mut self, word: &'a Word, rest: &mut std::slice::Iter<'a, Word>) {
        let start = literal_start(word);
        let is_computed = word.form == WordForm::Computed;
        if !self.takes_options || !start.starts_with('-') || (start == "-" && !is_computed) {
            return self.operand(word);
        }
        // Those of `find` about links stand in front of its places.
        self.saw_option |= !(self.program().has(Trait::Front) && matches!(start, "-H" | "-L" | "-P"));
        if start == "--" && !is_computed {
            self.takes_options = false;
            self.dashes = Some(self.operands.len());
        } else if start.len() < 2 || (start == "--" && is_computed) {
            // `-$x`: which option it is cannot be told.
            self.is_opaque = true;
        } else if start.starts_with("--") || self.program().has(Trait::Single) {
            self.long(word, rest);
        } else {
            self.cluster(word, rest);
        }
    }

    fn operand(&mut self, word: &'a Word) {
        let program = self.program();
        let is_run = program.has(Trait::Runs);
        let is_verb = program.takes_verb() && self.operands.is_empty() && (self.takes_options || is_run);
        if is_verb && !word.text.starts_with('+') {
            if word.form == WordForm::Computed {
                self.is_opaque = true;
            }
            let known = || table::program(&word.text).filter(|_| is_run && word.form == WordForm::Literal);
            match program.verb(&word.text).or_else(known) {
                Some(verb) => return self.enter(verb),
                None => self.go_into(program.verb("*").unwrap_or(&table::UNKNOWN)),
            }
        }
        let program = self.program();
        if program.has(Trait::Plus)
            && let Some(told) = word.text.strip_prefix('+').filter(|told| !told.is_empty())
        {
            let is_line = told.bytes().all(|byte| byte.is_ascii_digit() || b",:$GF".contains(&byte));
            let is_search = told.starts_with('/') && !told.contains(['|', '\n', '!']);
            self.is_opaque |= word.form == WordForm::Computed || !(is_line || is_search);
            return;
        }
        if program.has(Trait::Front) {
            self.saw_option |= matches!(word.text.as_str(), "(" | ")" | "!" | ",");
            if self.saw_option && (!self.operands.is_empty() || "()!,".contains(word.text.as_str())) {
                return;
            }
        }
        // `sed -i '' s/a/b/ file` of BSD.
        let edits = self.variant.is_some_and(Program::writes_operands);
        if edits && word.text.is_empty() && self.operands.is_empty() {
            return;
        }
        // The name of a setting ends the options, too, but the verbs of newer versions have their own.
        let is_key =
            program.has(Trait::Settings) && !(self.operands.is_empty() && setting::is_verb(&word.text));
        if program.has(Trait::Stop) || is_key {
            self.takes_options = false;
        }
        let piece = self.piece(&word.text, word.form);
        self.operands.push(piece);
    }

    /// What follows are the words of this verb or program.
    fn enter(&mut self, program: &'static Program) {
        self.go_into(program);
        self.takes_options = true;
        self.dashes = None;
    }

    fn go_into(&mut self, program: &'static Program) {
        self.outer.push(std::mem::replace(&mut self.program, program));
    }

    /// `--name`, `--name=value`, `--name value`; of some programs `-name`.
    fn long(&mut self, word: &'a Word, rest: &mut std::slice::Iter<'a, Word>) {
        let text = word.text.trim_start_matches('"').trim_start_matches('-');
        let start = literal_start(word).trim_start_matches('-');
        let (name, attached) = match start.find('=') {
            Some(at) => (start.get(..at).unwrap_or_default(), text.get(at + 1..)),
            None => (start, None),
        };
        if attached.is_none() && word.form == WordForm::Computed {
            // `--$x`, `-I$x`
            self.is_opaque |= name.is_empty() || word.text.starts_with("--");
        }
        match self.spec(name) {
            Some((whole, spec)) => {
                self.known_name(whole);
                self.values_of(spec, attached.map(|text| self.piece(text, word.form)), rest);
            }
            None if word.text.starts_with("--") || !self.attached_letter(word) => self.name(name),
            None => {}
        }
    }

    /// `-I/usr/include` of a program whose long options have one dash.
    fn attached_letter(&mut self, word: &'a Word) -> bool {
        let text = word.text.strip_prefix('-').unwrap_or_default();
        let valued = |length: usize| {
            let (name, value) = text.split_at_checked(length)?;
            let spec = self.letter(name).filter(|spec| !spec.values.is_empty())?;
            Some((name, value, spec))
        };
        // `-MFfile`
        let is_long = text.get(..2).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_uppercase()));
        let Some((letter, value, spec)) = (if is_long { valued(2) } else { None }).or_else(|| valued(1))
        else {
            return false;
        };
        self.name(letter);
        let piece = self.piece(value, word.form);
        self.values_of(spec, Some(piece), &mut [].iter());
        true
    }

    /// `-rf`, `-n5`, `-ofile`, `-5`
    fn cluster(&mut self, word: &'a Word, rest: &mut std::slice::Iter<'a, Word>) {
        let start = literal_start(word).strip_prefix('-').unwrap_or_default();
        let whole = word.text.trim_start_matches('"').strip_prefix('-').unwrap_or_default();
        let mut letters = start.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let mut end = at + letter.len_utf8();
            if letter.is_ascii_digit() {
                while let Some((next, _)) = letters.next_if(|(_, c)| c.is_ascii_digit()) {
                    end = next + 1;
                }
            }
            let name = start.get(at..end).unwrap_or_default();
            // `-TT`
            let twice =
                start.get(at..end + name.len()).filter(|twice| twice.strip_prefix(name) == Some(name));
            // A word may have thousands.
            let twice = twice.filter(|_| at < MOST_COMPARED);
            let double = twice.and_then(|twice| Some((twice, self.letter(twice)?)));
            if let Some((twice, _)) = double {
                end += name.len();
                letters.next();
                self.name(twice);
            } else {
                self.name(name);
            }
            let Some(spec) = double.map(|(_, spec)| spec).or_else(|| self.letter(name)) else { continue };
            let left = whole.get(end..).filter(|left| !left.is_empty());
            if !spec.values.is_empty() || spec.is_attached {
                let left = left.map(|left| self.piece(left, word.form));
                return self.values_of(spec, left, rest);
            }
            self.choose(spec);
        }
        // An expansion that may be more letters.
        self.is_opaque |= word.form == WordForm::Computed;
    }

    /// `xzf`: the values follow as words, in the order of the letters.
    fn bundle(&mut self, letters: &'a str, rest: &mut std::slice::Iter<'a, Word>) {
        for (at, letter) in letters.char_indices() {
            let name = letters.get(at..at + letter.len_utf8()).unwrap_or_default();
            self.name(name);
            if let Some(spec) = self.letter(name) {
                self.values_of(spec, None, rest);
            }
        }
    }

    /// Takes the values of an option: one may be attached, the others are the next words.
    fn values_of(
        &mut self,
        spec: &'static OptionSpec,
        attached: Option<Piece<'a>>,
        rest: &mut std::slice::Iter<'a, Word>,
    ) {
        self.choose(spec);
        let mut attached = attached;
        for role in &spec.values {
            if *role == Role::Exec {
                self.execute(rest);
                continue;
            }
            let next = attached.take().or_else(|| {
                if spec.is_attached {
                    // `chmod -x file`: the option itself is the first operand.
                    return (*role == Role::First).then_some(self.piece("", WordForm::Literal));
                }
                let word = rest.next()?;
                Some(self.piece(&word.text, word.form))
            });
            let Some(piece) = next else { return };
            self.take_value(*role, piece);
        }
    }

    fn take_value(&mut self, role: Role, piece: Piece<'a>) {
        if role == Role::Directory {
            let moved = directory::moved(self.here(), piece.text, piece.form);
            self.moved.push(moved);
        } else if role == Role::Verb {
            // `python -m pip`
            self.is_opaque |= piece.form == WordForm::Computed;
            let program = self.program().verb(piece.text).or_else(|| table::program(piece.text));
            self.enter(program.unwrap_or(&table::UNKNOWN));
        } else if role == Role::Library && piece.text == "inplace" {
            self.variant = self.program().verb("/in-place");
        } else {
            self.values.push((role, piece));
        }
        // What follows are arguments of the code.
        self.takes_options &= !matches!(role, Role::CodeEnd | Role::End);
    }

    /// Skips the command of `find -exec`.
    fn execute(&mut self, rest: &mut std::slice::Iter<'a, Word>) {
        self.executed = self.executed.or(rest.as_slice().first());
        let mut last = "";
        for word in rest.by_ref() {
            if word.text == ";" || (word.text == "+" && last == "{}") {
                return;
            }
            last = &word.text;
        }
    }

    fn choose(&mut self, spec: &OptionSpec) {
        // Files that are edited in place are written whatever else is asked for.
        if self.variant.is_some_and(Program::writes_operands) {
            return;
        }
        if let Some(variant) = spec.variant.and_then(|name| self.program().verb(name)) {
            self.variant = Some(variant);
        }
    }

    fn spec(&self, name: &str) -> Option<(&'static str, &'static OptionSpec)> {
        self.program.option(name).or_else(|| self.around().find_map(|program| program.option(name)))
    }

    fn letter(&self, name: &str) -> Option<&'static OptionSpec> {
        self.program.letter(name).or_else(|| self.around().find_map(|program| program.letter(name)))
    }

    /// The programs around the verb whose options may stand behind it.
    fn around(&self) -> impl Iterator<Item = &'static Program> {
        self.outer.iter().rev().copied().filter(|program| !program.has(Trait::Stop))
    }

    fn name(&mut self, name: &str) {
        if !name.is_empty() && self.is_new(name) {
            self.options.push(letter(name).map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed));
        }
    }

    /// A name that the table has.
    fn known_name(&mut self, name: &'static str) {
        if self.is_new(name) {
            self.options.push(Cow::Borrowed(name));
        }
    }

    /// Whether no option before had this name.
    fn is_new(&mut self, name: &str) -> bool {
        if let [letter @ ..128] = name.as_bytes() {
            let others = self.letters;
            self.letters |= 1 << letter;
            return self.letters != others;
        }
        self.options.len() >= MOST_COMPARED || !self.options.iter().any(|option| option == name)
    }

    fn piece(&self, text: &'a str, form: WordForm) -> Piece<'a> {
        Piece { text, form, base: self.moved.len() }
    }
}
