//! Reads `diagnostics.yaml` into one set of patterns.

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

/// The patterns that are built in.
const TEXT: &str = include_str!("diagnostics.yaml");

/// What `{path}` stands for: the name of a file, with the drive that names have on Windows.
const PATH: &str = r"(?:[A-Za-z]:[\\/])?[^\s:(][^:(]*";

/// The most bytes that all patterns take compiled.
const MOST_COMPILED: usize = 8 << 20;

/// The patterns of a tool, as the file has them.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(rename = "tool")]
    _tool: String,
    #[serde(flatten)]
    patterns: BTreeMap<Kind, Vec<String>>,
}

/// What a pattern says of a line that it matches; the file says more of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Failure,
    Message,
    Headed,
    Heading,
    Detail,
    Below,
    More,
    Block,
    Frame,
    Never,
    Prefix,
}

/// What all patterns that match a line say of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    fn has_any(self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| self.has(*kind))
    }

    /// Whether the line says what failed, whatever stands above it.
    pub(super) fn is_failure(self) -> bool {
        self.has_any(&[Kind::Failure, Kind::Message, Kind::Headed]) && !self.has(Kind::Never)
    }

    /// Whether the line counts, whatever stands above it.
    pub(super) fn counts_alone(self) -> bool {
        self.is_failure() || (self.has_any(&[Kind::Detail, Kind::Block]) && !self.has(Kind::Never))
    }
}

/// All patterns, compiled into one automaton: a line without a prefix of which none says anything, as of nearly every line
/// there is, is read once.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// Those of prefixes too.
    set: RegexSet,
    /// What each pattern of the set says.
    kinds: Vec<Kind>,
    /// What stands in front of the lines of logs.
    prefix: Option<Regex>,
}

impl Patterns {
    /// Compiles the patterns that are built in.
    ///
    /// # Errors
    /// The file is not as it should be; a test finds that.
    pub(super) fn built_in() -> Result<Self, String> {
        let rows: Vec<Row> = serde_yaml::from_str(TEXT).map_err(|error| error.to_string())?;
        let of_rows = rows.iter().flat_map(|row| &row.patterns);
        let each = of_rows.flat_map(|(kind, patterns)| patterns.iter().map(|pattern| (*kind, pattern)));
        let prefixes: Vec<&str> = each
            .clone()
            .filter(|(kind, _)| *kind == Kind::Prefix)
            .map(|(_, pattern)| pattern.as_str())
            .collect();
        let (kinds, patterns): (Vec<_>, Vec<_>) =
            each.map(|(kind, pattern)| (kind, anchored(&pattern.replace("{path}", PATH)))).unzip();
        let set = RegexSetBuilder::new(patterns).unicode(false).size_limit(MOST_COMPILED).build();
        let prefix = RegexBuilder::new(&anchored(&prefixes.join("|"))).unicode(false).build();
        Ok(Self {
            set: set.map_err(|error| error.to_string())?,
            kinds,
            prefix: Some(prefix.map_err(|error| error.to_string())?),
        })
    }

    /// A line without what a log puts in front of it, and what the patterns say of that.
    pub(super) fn read<'l>(&self, line: &'l [u8]) -> (&'l [u8], Kinds) {
        let says = |text: &[u8]| self.set.is_match(text);
        if !says(line) {
            return (line, Kinds::default());
        }
        let text = self.without_prefix(line);
        if text.len() < line.len() && !says(text) {
            return (text, Kinds::default());
        }
        let matched = self.set.matches(text).into_iter().filter_map(|number| self.kinds.get(number));
        (text, Kinds(matched.fold(0, |kinds, kind| kinds | 1 << *kind as u16)))
    }

    fn without_prefix<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        let prefix = self.prefix.as_ref().and_then(|prefix| prefix.find(line));
        prefix.and_then(|prefix| line.get(prefix.end()..)).unwrap_or(line)
    }
}

fn anchored(pattern: &str) -> String {
    format!(r"\A(?:{pattern})")
}
