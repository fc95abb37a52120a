//! The search for all forms of all keys at once, however each of their characters is spelled.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Secret;
use super::forms::{KeyForm, forms, once, plain};
use super::sieve::{Searched, Sieve};
use super::sorted::{FormsSeen, Readings, SortedForms};

/// How much of a text is sifted before what is found is judged.
const PART: usize = 4 << 10;

/// Every form of a set of keys, ready to be searched for. Built when a key changes, shared by all exchanges.
///
/// A text is sifted first (`sieve`); at the few places where a form may begin, it is compared in full (`sorted`).
pub struct SecretMatcher {
    /// Those whose letters are in either case, and the others.
    forms: [SortedForms; 2],
    sieve: Sieve,
    shortest: usize,
}

/// A match in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// A form of a key from `start` to `end`.
    Whole { start: usize, end: usize },
    /// From `start` to its end, the text is the beginning of a form: more bytes decide.
    Begun { start: usize },
}

impl SecretMatcher {
    /// Makes the search for these keys.
    pub fn new(secrets: &[Arc<Secret>]) -> Self {
        Self::of(secrets.iter().flat_map(|secret| forms(secret.expose())).collect())
    }

    /// Makes the search for these keys in a text whose codings are undone besides, and for others as they are alone.
    pub(crate) fn shallow(secrets: &[Arc<Secret>], others: &[Arc<Secret>]) -> Self {
        let encoded = secrets.iter().flat_map(|secret| once(secret.expose()));
        Self::of(encoded.chain(others.iter().map(|secret| plain(secret.expose()))).collect())
    }

    pub(super) fn of(forms: BTreeSet<KeyForm>) -> Self {
        let (folding, exact) = forms.into_iter().partition(KeyForm::folds);
        let forms = [SortedForms::of(folding, true), SortedForms::of(exact, false)];
        let each = forms.iter().flat_map(SortedForms::iter);
        let sieve = Sieve::of(&forms);
        let shortest = each.map(|form| form.text().len()).min().unwrap_or(usize::MAX);
        Self { forms, sieve, shortest }
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.shortest == usize::MAX
    }

    /// Every place of a text where a form stands, or begins and may go on after a text that `is_last` does not end, in
    /// the order of their starts.
    pub(crate) fn find<'a>(&'a self, text: &'a [u8], is_last: bool) -> impl Iterator<Item = KeyMatch> + 'a {
        let mut starts = Starts {
            matcher: self,
            searched: Searched { text, is_last },
            sifted: 0,
            known: Vec::new(),
            next: 0,
        };
        let mut readings = Readings::default();
        std::iter::from_fn(move || starts.next())
            .flat_map(move |start| self.judge(&text[start..], start, &mut readings))
            .flatten()
    }

    /// Whether a form could stand in a text of so many bytes.
    pub(crate) fn fits(&self, length: usize) -> bool {
        length >= self.shortest
    }

    /// The longest form that stands at the start of `rest`, and whether one may go on behind it.
    fn judge(&self, rest: &[u8], start: usize, readings: &mut Readings) -> [Option<KeyMatch>; 2] {
        let mut seen = FormsSeen::default();
        self.forms.iter().for_each(|forms| forms.judge(rest, readings, &mut seen));
        let whole = seen.longest.map(|length| KeyMatch::Whole { start, end: start + length });
        [whole, seen.is_begun.then_some(KeyMatch::Begun { start })]
    }
}

/// The places of a text where a form may begin.
struct Starts<'a> {
    matcher: &'a SecretMatcher,
    searched: Searched<'a>,
    /// Up to here.
    sifted: usize,
    /// Those that are known, in their order, and which of them is next.
    known: Vec<usize>,
    next: usize,
}

impl Starts<'_> {
    fn next(&mut self) -> Option<usize> {
        let Searched { text, is_last } = self.searched;
        let sieve = &self.matcher.sieve;
        loop {
            // More parts may have a form that begins shortly before them.
            let is_sifted = self.sifted >= text.len();
            let certain = if is_sifted { text.len() } else { self.sifted.saturating_sub(sieve.reach()) };
            if let Some(start) = self.known.get(self.next).filter(|start| **start < certain) {
                self.next += 1;
                return Some(*start);
            }
            if is_sifted || self.matcher.is_empty() || is_last && !self.matcher.fits(text.len()) {
                return None;
            }
            let part = self.sifted..text.len().min(self.sifted + PART);
            self.sifted = part.end;
            self.known.drain(..self.next);
            self.next = 0;
            sieve.plain(text, part.clone(), &mut self.known);
            sieve.spelled(self.searched, part, &mut self.known);
            if self.sifted == text.len() {
                sieve.end(self.searched, &mut self.known);
            }
            self.known.sort_unstable();
            self.known.dedup();
        }
    }
}

impl Default for SecretMatcher {
    fn default() -> Self {
        Self::new(&[])
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
