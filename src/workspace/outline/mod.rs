//! Finds the lines of a source file that look like declarations, by line patterns and no grammar. Pure and linear.

mod languages;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use regex::bytes::{RegexSet, RegexSetBuilder};

use languages::LANGUAGES;

/// The longest line that is looked at, in bytes: declarations are short, generated lines are not.
const MOST_LINE: usize = 400;

/// A language: which files are of it, and how its declarations begin.
struct Language {
    name: &'static str,
    /// The endings of its files' names, in lower case, without the dot.
    extensions: &'static [&'static str],
    /// What the beginning of a line matches.
    declares: &'static [&'static str],
    /// What a line must not match besides: statements that look like declarations.
    unless: &'static [&'static str],
}

/// A line as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlineLine<'a> {
    /// From 1.
    pub number: usize,
    /// Without white space at its end.
    pub text: &'a str,
}

/// The names of the languages, in the order of the table.
pub fn languages() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().map(|language| language.name)
}

/// Compiles the patterns of all languages, which the first file of each would wait for.
pub fn prepare() {
    (0..LANGUAGES.len()).for_each(|language| {
        let _ = patterns(language);
    });
}

/// Whether a file of this name is of a language that is known.
pub fn is_source(file_name: &str) -> bool {
    language(file_name).is_some()
}

/// The lines of a text that look like declarations, in their order; none of a file of another language.
pub fn outline<'a>(file_name: &str, text: &'a str) -> impl Iterator<Item = OutlineLine<'a>> + use<'a> {
    let patterns = language(file_name).and_then(patterns);
    let lines = patterns.is_some().then(|| text.lines()).into_iter().flatten();
    lines.zip(1..).filter_map(move |(line, number)| {
        let is_short = line.len() <= MOST_LINE;
        (is_short && patterns.is_some_and(|patterns| patterns.match_line(line)))
            .then(|| OutlineLine { number, text: line.trim_end() })
    })
}

/// Where a language stands in the table.
fn language(file_name: &str) -> Option<usize> {
    let (stem, extension) = file_name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    let has = |language: &Language| language.extensions.contains(&extension.as_str());
    LANGUAGES.iter().position(has).filter(|_| !stem.is_empty())
}

/// The patterns of one language, compiled.
struct Patterns {
    declares: RegexSet,
    unless: RegexSet,
}

impl Patterns {
    fn match_line(&self, line: &str) -> bool {
        self.declares.is_match(line.as_bytes()) && !self.unless.is_match(line.as_bytes())
    }

    fn compile(language: &Language) -> Option<Self> {
        let set = |patterns: &[&str]| RegexSetBuilder::new(patterns).unicode(false).build().ok();
        Some(Self { declares: set(language.declares)?, unless: set(language.unless)? })
    }
}

/// Compiled once, when the first file of the language is read at the latest. The table's patterns all compile (tested).
fn patterns(language: usize) -> Option<&'static Patterns> {
    static COMPILED: [OnceLock<Option<Patterns>>; LANGUAGES.len()] =
        [const { OnceLock::new() }; LANGUAGES.len()];
    let compiled = COMPILED.get(language)?;
    compiled.get_or_init(|| Patterns::compile(LANGUAGES.get(language)?)).as_ref()
}
