//! The table of programs: what their operands and options mean, one program a line.
//!
//! A line of `programs.txt` is `NAMES : OPERANDS : OPTIONS`.
//! - NAMES: `cat,tac`; a verb behind the program, `git clone`; `/NAME` is a variant that an option chooses; `*` is any
//!   other verb.
//! - OPERANDS: a role for each, `...` behind the one that repeats; behind `--` those that follow a `--`; `if=read` is an
//!   operand with a name; `+moves` is a trait.
//! - OPTIONS: `-o=write` takes a value of this role, `-n=` one without a meaning, `-i?` one that is attached or missing;
//!   `--arg=value+value` takes two; `/NAME` behind it chooses a variant.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::sync::LazyLock;

use super::super::Table;

const LINES: &str = include_str!("programs.txt");

/// What an operand or the value of an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Value,
    /// A file or directory that is read, written, or both.
    Read,
    Write,
    Both,
    /// A directory that files are put into; the operands are read.
    Into,
    /// Written by some variants, read by the others.
    Archive,
    /// A URL, with a scheme or without.
    Url,
    /// A URL, a path, or the name of something else: only what looks like one of the first two counts.
    Source,
    /// A URL; anything else is a path.
    Input,
    Output,
    /// A URL, `host:path`, a path, or the name of a remote.
    Repository,
    /// `host:path`; anything else is a path.
    RemoteRead,
    RemoteWrite,
    /// `container:path` names no file here; anything else is a path.
    NamedRead,
    NamedWrite,
    /// `revision:path`; without a revision, only what looks like a path counts.
    Object,
    /// `user@host`
    Host,
    /// `example.com/module@v1`
    Module,
    /// A file if it looks like one.
    Script,
    /// Paths that follow begin here.
    Directory,
    /// A file in which more files or URLs stand: it is read, and they cannot be told.
    List,
    /// `@file`
    Data,
    /// `name@file`
    Encoded,
    /// A file, if no `=` is in it.
    Cookie,
    /// `name=@file`
    Form,
    /// `name=file`
    Pair,
    /// Several forms of `http`: a method, a URL, and what is sent.
    Http,
    /// `/host:/container`
    Volume,
    /// `type=bind,src=/host`
    Mount,
    /// `core.pager=…`, `ProxyCommand=…`
    Config,
    /// `robots=off`: a line of a file of settings.
    Startup,
    /// `inplace` chooses the variant that writes its operands; anything else is a file that is read.
    Library,
    /// A file that is run; what comes from the input instead cannot be told.
    Program,
    /// `@file` in which more words stand; anything else is a file that is read.
    Response,
    /// `;` in it begins another command of the program, `#(` one of a shell.
    Sequence,
    /// The program that connects, as `ssh -p 22`.
    Transport,
    /// SQL, or a command of the program that takes it.
    Sql,
    /// Inline code; `CodeEnd` has arguments of the code behind it.
    Code,
    CodeEnd,
    /// What follows are arguments of something that is not read.
    End,
    /// Stands for the first operand; `FirstFile` is a file that holds it.
    First,
    FirstFile,
    /// A file out of an archive: it begins in the directory that an option names.
    Member,
    /// A branch; a path where it can be no name of one.
    Branch,
    /// A place that is only kept.
    Place,
    /// What stands behind a name to keep an old file: with a slash it is another directory.
    Backup,
    /// A pattern by which names are changed, which may be those of files that are written.
    Renaming,
    /// `l=file`
    Listing,
    /// The scheme of URLs without one.
    Scheme,
    /// A file that is sent; several of them in braces.
    Upload,
    /// A module of perl, with what it is given.
    Import,
    /// The scripts of `sed` and `awk`.
    Sed,
    Awk,
    /// A command up to `;` or `+`.
    Exec,
    /// The verb behind a program; as the value of an option, a program that is run.
    Verb,
}

/// What the operands of a program mean.
#[derive(Debug, Default)]
pub(super) struct Operands {
    front: Vec<Role>,
    repeated: Option<Role>,
    back: Vec<Role>,
    pub(super) named: Vec<(&'static str, Role)>,
}

/// An option of a program.
#[derive(Debug, Clone)]
pub(super) struct OptionSpec {
    pub(super) values: Vec<Role>,
    /// Whether its value is attached or missing.
    pub(super) is_attached: bool,
    pub(super) variant: Option<&'static str>,
}

/// What else is true of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    /// Options end at the first operand.
    Stop,
    /// Long options have a single dash.
    Single,
    /// Operands end at the first option behind one.
    Front,
    /// The first word is a cluster of options without a dash.
    Bundled,
    /// A directory may come with what is written.
    Moves,
    /// What is fetched is saved by the last segment of its URL, if nothing else is written.
    Saves,
    /// The working directory is read if no operand names a file.
    ReadsHere,
    /// Files are put into the working directory.
    WritesHere,
    /// Its archive is written.
    Packs,
    /// Values that begin with `file://` are files.
    FileUrls,
    /// Without a script it runs what it is given by standard input.
    RunsInput,
    /// Unless a word says what to run, it runs what it is given by standard input, behind a file or not.
    TakesInput,
    /// A word that begins with `+` is a command of it, or the number of a line.
    Plus,
    /// It changes the files that a diff names, which it may take from its input.
    Patches,
    /// It runs a program on what its input names.
    Appends,
    /// It tells nothing of what is in files, and changes none.
    Counts,
    /// The operands are the name of a setting, and its value.
    Settings,
    /// What it runs cannot be told.
    Opaque,
    /// Its verb is a program that it runs.
    Runs,
    /// A slash behind a directory means what is in it.
    Contents,
    /// What it is given may name more files.
    Includes,
}

/// A set of them, which is asked several times for each word.
#[derive(Debug, Default)]
struct Traits(u32);

impl Traits {
    fn add(&mut self, one: Trait) {
        self.0 |= 1 << one as u32;
    }

    fn has(&self, one: Trait) -> bool {
        self.0 & (1 << one as u32) != 0
    }
}

/// Options of one letter: a bit for each that there is, and what they are in the order of the letters, so that the bits
/// below one count where it stands.
#[derive(Debug, Default)]
struct Letters {
    known: u128,
    specs: Vec<OptionSpec>,
}

impl Letters {
    fn place(&self, letter: u8) -> (u128, usize) {
        let bit = 1_u128 << letter;
        ((self.known & bit), (self.known & (bit - 1)).count_ones() as usize)
    }

    fn get(&self, letter: u8) -> Option<&OptionSpec> {
        let (known, at) = self.place(letter);
        if known == 0 { None } else { self.specs.get(at) }
    }

    fn insert(&mut self, letter: u8, spec: OptionSpec) {
        let (known, at) = self.place(letter);
        let replaced = at..at + usize::from(known != 0);
        self.specs.splice(replaced, [spec]);
        self.known |= 1 << letter;
    }
}

/// A program, or a verb of one.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) operands: Operands,
    /// Those behind `--`, where it makes a difference.
    pub(super) behind_dashes: Option<Operands>,
    options: BTreeMap<&'static str, OptionSpec>,
    /// Those of one letter, again: hundreds of them may stand in one word.
    letters: Letters,
    traits: Traits,
    /// By name; variants as `/name`.
    verbs: Table<Self>,
}

static PROGRAMS: LazyLock<Program> = LazyLock::new(|| {
    let mut root = Program::default();
    for line in lines() {
        let mut parts = line.splitn(3, " :").map(str::trim);
        let names: Vec<&'static str> = parts.next().unwrap_or_default().split_whitespace().collect();
        let (operands, options) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        root.insert(&names, operands, options);
    }
    root
});

/// A program of which nothing is known.
pub(super) static UNKNOWN: LazyLock<Program> = LazyLock::new(Program::default);

fn lines() -> impl Iterator<Item = &'static str> {
    LINES.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The program of this name, without its directory. Some file systems fold names, and versions stand behind some.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.verbs.get(name).or_else(|| {
        let folded = name.to_ascii_lowercase();
        let folded = folded.strip_suffix(".exe").unwrap_or(&folded);
        let bare = folded.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
        PROGRAMS.verbs.get(folded).or_else(|| PROGRAMS.verbs.get(bare))
    })
}

/// How many programs there are.
#[cfg(test)]
pub(super) fn names() -> usize {
    PROGRAMS.verbs.len()
}

/// The words of the table that mean nothing: a mistake in it.
#[cfg(test)]
pub(super) fn mistakes() -> Vec<String> {
    let is_role = |word: &str| word == "value" || Role::read(word) != Role::Value;
    let is_operand = |word: &str| match word.strip_prefix('+') {
        Some(name) => Trait::read(name).is_some(),
        None => {
            word == "--" || is_role(word.split_once('=').map_or(word, |(_, role)| role).trim_end_matches('.'))
        }
    };
    let is_option = |word: &str| {
        let word = word.split('/').next().unwrap_or_default().trim_end_matches('?');
        let roles = word.split_once('=').map_or("", |(_, roles)| roles);
        word.starts_with('-') && (roles.is_empty() || roles.split('+').all(is_role))
    };
    let mut mistakes = Vec::new();
    for line in lines() {
        let parts: Vec<&str> = line.splitn(3, " :").collect();
        let [names, operands, options] = parts[..] else {
            mistakes.push(line.to_owned());
            continue;
        };
        let wrong = operands.split_whitespace().filter(|word| !is_operand(word));
        let wrong = wrong.chain(options.split_whitespace().filter(|word| !is_option(word)));
        mistakes.extend(wrong.map(|word| format!("{names}: {word}")));
    }
    mistakes
}

impl Program {
    fn insert(&mut self, names: &[&'static str], operands: &'static str, options: &'static str) {
        let Some((names_here, below)) = names.split_first() else {
            self.read_operands(operands);
            for (name, spec) in options.split_whitespace().filter_map(OptionSpec::read) {
                if let [letter @ ..128] = name.as_bytes() {
                    self.letters.insert(*letter, spec.clone());
                }
                self.options.insert(name, spec);
            }
            return;
        };
        for name in names_here.split(',') {
            let named = || Self { name, ..Self::default() };
            self.verbs.entry(name).or_insert_with(named).insert(below, operands, options);
        }
    }

    fn read_operands(&mut self, text: &'static str) {
        let mut words = text.split_whitespace();
        self.operands = Operands::read(words.by_ref().take_while(|word| *word != "--"), &mut self.traits);
        let behind = Operands::read(words, &mut self.traits);
        self.behind_dashes = text.split_whitespace().any(|word| word == "--").then_some(behind);
    }

    pub(super) fn has(&self, wanted: Trait) -> bool {
        self.traits.has(wanted)
    }

    pub(super) fn takes_verb(&self) -> bool {
        self.operands.front.first() == Some(&Role::Verb)
    }

    pub(super) fn verb(&self, name: &str) -> Option<&Self> {
        self.verbs.get(name)
    }

    /// An option by its name, and the whole name: GNU's programs and git take the beginning of one.
    pub(super) fn option(&self, name: &str) -> Option<(&'static str, &OptionSpec)> {
        if let Some((name, spec)) = self.options.get_key_value(name) {
            return Some((name, spec));
        }
        let longer = |(whole, _): &(&&'static str, &OptionSpec)| name.len() > 1 && whole.starts_with(name);
        let mut longer = self.options.range::<str, _>((Included(name), Unbounded)).take_while(longer);
        let (whole, spec) = longer.next()?;
        longer.next().is_none().then_some((*whole, spec))
    }

    /// The letters that take values stand in a cluster, so this is exact.
    pub(super) fn letter(&self, name: &str) -> Option<&OptionSpec> {
        match name.as_bytes() {
            [letter @ ..128] => self.letters.get(*letter),
            _ => self.options.get(name),
        }
    }

    /// Whether what it runs is SQL.
    pub(super) fn runs_sql(&self) -> bool {
        let operands = &self.operands;
        let mut options = self.options.values().flat_map(|spec| &spec.values);
        operands.repeated == Some(Role::Sql) || options.any(|role| *role == Role::Sql)
    }

    /// Whether its last operand may be a directory that the others are put into.
    pub(super) fn has_target(&self) -> bool {
        self.operands.repeated.is_some() && !self.operands.back.is_empty()
    }

    /// Whether it changes the files that its operands name.
    pub(super) fn writes_operands(&self) -> bool {
        let is_written = |role: &Role| matches!(role, Role::Write | Role::Both | Role::Member);
        let operands = &self.operands;
        operands.front.iter().chain(&operands.repeated).chain(&operands.back).any(is_written)
    }
}

impl Operands {
    fn read(words: impl Iterator<Item = &'static str>, traits: &mut Traits) -> Self {
        let mut operands = Self::default();
        for word in words {
            if let Some(name) = word.strip_prefix('+') {
                Trait::read(name).into_iter().for_each(|found| traits.add(found));
            } else if let Some((name, role)) = word.split_once('=') {
                operands.named.push((name, Role::read(role)));
            } else if let Some(role) = word.strip_suffix("...") {
                operands.repeated = Some(Role::read(role));
            } else if operands.repeated.is_some() {
                operands.back.push(Role::read(word));
            } else {
                operands.front.push(Role::read(word));
            }
        }
        operands
    }

    /// The role of the operand with this number among so many. `skipped` of the first ones are given by options, and
    /// the last ones where a directory is.
    pub(super) fn role(&self, number: usize, count: usize, skipped: usize, has_target: bool) -> Role {
        if let Some(role) = self.front.get(number + skipped) {
            return *role;
        }
        let back: &[Role] = if has_target { &[] } else { &self.back };
        let from_end = count.saturating_sub(number);
        // `cp a` has no target yet.
        let is_back = count > back.len() || self.repeated.is_none();
        let last = back.len().checked_sub(from_end).filter(|_| is_back).and_then(|at| back.get(at));
        last.copied().or(self.repeated).unwrap_or(Role::Value)
    }

    pub(super) fn first(&self) -> Role {
        self.front.first().copied().unwrap_or(Role::Value)
    }
}

impl OptionSpec {
    /// `-o=write`, `--name=value+read/variant`, `-i?`
    fn read(word: &'static str) -> Option<(&'static str, Self)> {
        let word = word.trim_start_matches('-');
        let (word, variant) = word.split_at(word.find('/').unwrap_or(word.len()));
        let (word, is_attached) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
        let (name, values) = match word.split_once('=') {
            Some((name, roles)) => (name, roles.split('+').map(Role::read).collect()),
            None => (word, Vec::new()),
        };
        let variant = Some(variant).filter(|variant| !variant.is_empty());
        (!name.is_empty()).then_some((name, Self { values, is_attached, variant }))
    }
}

impl Role {
    fn read(word: &str) -> Self {
        Self::NAMES.iter().find(|(name, _)| *name == word).map_or(Self::Value, |(_, role)| *role)
    }

    const NAMES: &[(&str, Self)] = &[
        ("read", Self::Read),
        ("write", Self::Write),
        ("both", Self::Both),
        ("into", Self::Into),
        ("archive", Self::Archive),
        ("url", Self::Url),
        ("source", Self::Source),
        ("input", Self::Input),
        ("output", Self::Output),
        ("repository", Self::Repository),
        ("remote-read", Self::RemoteRead),
        ("remote-write", Self::RemoteWrite),
        ("named-read", Self::NamedRead),
        ("named-write", Self::NamedWrite),
        ("object", Self::Object),
        ("host", Self::Host),
        ("module", Self::Module),
        ("script", Self::Script),
        ("directory", Self::Directory),
        ("list", Self::List),
        ("data", Self::Data),
        ("encoded", Self::Encoded),
        ("cookie", Self::Cookie),
        ("form", Self::Form),
        ("pair", Self::Pair),
        ("http", Self::Http),
        ("volume", Self::Volume),
        ("mount", Self::Mount),
        ("config", Self::Config),
        ("program", Self::Program),
        ("startup", Self::Startup),
        ("library", Self::Library),
        ("response", Self::Response),
        ("sequence", Self::Sequence),
        ("transport", Self::Transport),
        ("sql", Self::Sql),
        ("code", Self::Code),
        ("code-end", Self::CodeEnd),
        ("end", Self::End),
        ("first", Self::First),
        ("first-file", Self::FirstFile),
        ("member", Self::Member),
        ("branch", Self::Branch),
        ("place", Self::Place),
        ("backup", Self::Backup),
        ("renaming", Self::Renaming),
        ("listing", Self::Listing),
        ("scheme", Self::Scheme),
        ("upload", Self::Upload),
        ("import", Self::Import),
        ("sed", Self::Sed),
        ("awk", Self::Awk),
        ("exec", Self::Exec),
        ("verb", Self::Verb),
    ];
}

impl Trait {
    fn read(word: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == word).map(|(_, found)| *found)
    }

    const NAMES: &[(&str, Self)] = &[
        ("stop", Self::Stop),
        ("single", Self::Single),
        ("front", Self::Front),
        ("bundled", Self::Bundled),
        ("moves", Self::Moves),
        ("saves", Self::Saves),
        ("reads-here", Self::ReadsHere),
        ("writes-here", Self::WritesHere),
        ("packs", Self::Packs),
        ("file-urls", Self::FileUrls),
        ("runs-input", Self::RunsInput),
        ("takes-input", Self::TakesInput),
        ("plus", Self::Plus),
        ("patches", Self::Patches),
        ("appends", Self::Appends),
        ("counts", Self::Counts),
        ("settings", Self::Settings),
        ("opaque", Self::Opaque),
        ("runs", Self::Runs),
        ("contents", Self::Contents),
        ("includes", Self::Includes),
    ];
}
