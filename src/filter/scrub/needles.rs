//! The search for all forms of all keys at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use memchr::memmem;
use zeroize::Zeroizing;

use super::forms::{Fit, Form, forms};
use crate::credential::Secret;

/// How many bytes of a form the automaton knows. A candidate is then compared in full, so that the automaton
/// stays small however long a key is. No form is shorter, since no key is.
const PREFIX: usize = crate::credential::LEAST;

/// Every form of a set of keys, ready to be searched for. Built when a key changes, shared by all exchanges.
pub struct Needles {
    /// In order, so that those with one first byte stand together.
    forms: Vec<Form>,
    /// The keys in lower case, as a header's name would hold them.
    lowered: Vec<Zeroizing<Vec<u8>>>,
    /// Over the first bytes of the forms. `None` where there is no form.
    prefixes: Option<AhoCorasick>,
    /// The length of the shortest form.
    shortest: usize,
    /// The bytes with which a form can begin.
    firsts: [bool; 256],
}

/// What was found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A form of a key from `start` to `end`.
    Whole { start: usize, end: usize },
    /// From `start` to the text's end all is the beginning of a form.
    Begun { start: usize },
}

impl Needles {
    /// Makes the search for these keys.
    pub fn new(secrets: &[Arc<Secret>]) -> Self {
        let forms: BTreeSet<Form> = secrets.iter().flat_map(|secret| forms(secret.expose())).collect();
        let mut firsts = [false; 256];
        for first in forms.iter().filter_map(Form::first) {
            firsts[usize::from(first)] = true;
        }
        let prefixes: BTreeSet<Vec<u8>> = forms.iter().flat_map(|form| form.prefixes(PREFIX)).collect();
        // Too many patterns to build: then the first bytes alone find candidates, more slowly.
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(prefixes).ok();
        let lower = |secret: &Arc<Secret>| Zeroizing::new(secret.expose().to_ascii_lowercase());
        Self {
            shortest: forms.iter().map(Form::length).min().unwrap_or(usize::MAX),
            prefixes: automaton.filter(|_| !forms.is_empty()),
            forms: forms.into_iter().collect(),
            lowered: secrets.iter().map(lower).collect(),
            firsts,
        }
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Every place of a text where a form stands, or begins and may go on after the text, in the order of their
    /// starts.
    pub(super) fn find<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Found> + 'a {
        let mut from = 0;
        let candidates = std::iter::from_fn(move || {
            let start = self.candidate(text, from)?;
            from = start + 1;
            Some(start)
        });
        candidates.flat_map(|start| self.judge(&text[start..], start)).flatten()
    }

    /// Whether a form could stand in a text of so many bytes.
    pub(super) fn fits(&self, length: usize) -> bool {
        length >= self.shortest
    }

    /// Whether a header's name holds a key.
    pub(super) fn is_named_by(&self, name: &str) -> bool {
        let holds = |key: &Zeroizing<Vec<u8>>| {
            key.len() <= name.len() && memmem::find(name.as_bytes(), key).is_some()
        };
        self.lowered.iter().any(holds)
    }

    /// The next place where a form could stand or begin.
    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let found = self.prefixes.as_ref().and_then(|it| it.find(Input::new(text).range(from..)));
        if let Some(found) = found {
            return Some(found.start());
        }
        // The last bytes are too few for the automaton.
        let tail = if self.prefixes.is_some() { text.len().saturating_sub(PREFIX - 1) } else { 0 };
        (from.max(tail)..text.len()).find(|&at| self.firsts[usize::from(text[at])])
    }

    /// The longest form that stands at the start of `rest`, and whether a longer one may.
    fn judge(&self, rest: &[u8], start: usize) -> [Option<Found>; 2] {
        let first = rest.first().copied();
        let begin = self.forms.partition_point(|form| form.first() < first);
        let mut longest = None;
        let mut begun = None;
        for form in self.forms[begin..].iter().take_while(|form| form.first() == first) {
            match form.fit(rest) {
                Fit::Whole(length) => longest = longest.max(Some(length)),
                Fit::Begun => begun = Some(Found::Begun { start }),
                Fit::None => {}
            }
        }
        [longest.map(|length| Found::Whole { start, end: start + length }), begun]
    }
}

impl Default for Needles {
    fn default() -> Self {
        Self::new(&[])
    }
}
