//! The search for all forms of all keys at once, however each of their characters is spelled.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::Secret;
use super::forms::{KeyForm, forms, once, plain};
use super::sieve::{KNOWN, Sieve};
use super::spelling::{Spelled, is_introducer, spellings};
use crate::block::{BLOCK, blocks, mask_of};

/// No form is shorter than what the first look knows of it, since no key is.
const _: () = assert!(KNOWN <= super::LEAST);
/// How many line breaks and the like may stand between two characters of a form.
const GAPS: usize = 4;

/// Every form of a set of keys, ready to be searched for. Built when a key changes, shared by all exchanges.
pub struct SecretMatcher {
    /// In the order of their first bytes, in lower case.
    forms: Vec<KeyForm>,
    /// Where the forms begin whose first byte is this or a greater one, in lower case.
    buckets: Box<[usize; 257]>,
    sieve: Sieve,
    /// The bytes with which a form begins.
    begins: [bool; 256],
    /// Two bytes that follow each other in a form.
    pairs: Box<[bool; 1 << 16]>,
    /// The bytes that stand in a form as they are.
    words: [bool; 256],
    /// Those bytes, and the ones that spellings are made of.
    stuff: [bool; 256],
    shortest: usize,
    longest: usize,
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

    fn of(forms: BTreeSet<KeyForm>) -> Self {
        let mut forms: Vec<KeyForm> = forms.into_iter().collect();
        forms.sort_by_key(Self::bucket);
        let mut matcher = Self {
            buckets: Box::new([0; 257]),
            sieve: Sieve::of(forms.iter().map(KeyForm::text)),
            words: [false; 256],
            begins: [false; 256],
            pairs: Box::new([false; 1 << 16]),
            stuff: [false; 256],
            shortest: forms.iter().map(|form| form.text().len()).min().unwrap_or(usize::MAX),
            longest: forms.iter().map(|form| form.text().len()).max().unwrap_or_default(),
            forms,
        };
        for form in &matcher.forms {
            matcher.buckets[usize::from(Self::bucket(form)) + 1] += 1;
            form.pairs(|one, other| matcher.pairs[pair(one, other)] = true);
            form.bytes().for_each(|byte| matcher.words[usize::from(byte)] = true);
            let first = Self::bucket(form);
            matcher.begins[usize::from(first)] = true;
            matcher.begins[usize::from(first.to_ascii_uppercase())] = true;
        }
        for i in 0..256 {
            matcher.buckets[i + 1] += matcher.buckets[i];
        }
        for (byte, is_stuff) in (0..=u8::MAX).zip(&mut matcher.stuff) {
            let is_spelled = is_introducer(byte) || matches!(byte, b'#' | b';' | b'{' | b'}');
            *is_stuff = matcher.words[usize::from(byte)] || byte.is_ascii_alphanumeric() || is_spelled;
        }
        matcher
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Every place of a text where a form stands, or begins and may go on after a text that `is_last` does not end, in
    /// the order of their starts.
    pub(crate) fn find<'a>(&'a self, text: &'a [u8], is_last: bool) -> impl Iterator<Item = KeyMatch> + 'a {
        let spelled = self.spelled(text);
        let begun = if is_last { text.len()..text.len() } else { self.begun(text) };
        let (mut from, mut raw, mut passed) = (0, self.candidate(text, 0), 0);
        let candidates = std::iter::from_fn(move || {
            if raw.is_some_and(|raw| raw < from) {
                raw = self.candidate(text, from);
            }
            while spelled.get(passed).is_some_and(|run| run.end <= from) {
                passed += 1;
            }
            // Three sources of candidates: plain text, parts with escapes or line breaks, and the text's end.
            let run = spelled.get(passed).map(|run| run.start.max(from));
            let tail = Some(begun.start.max(from)).filter(|start| *start < begun.end);
            let start = raw.into_iter().chain(run).chain(tail).min()?;
            from = start + 1;
            Some(start)
        });
        candidates.flat_map(move |start| self.judge(&text[start..], start)).flatten()
    }

    /// Whether a form could stand in a text of so many bytes.
    pub(crate) fn fits(&self, length: usize) -> bool {
        length >= self.shortest
    }

    fn bucket(form: &KeyForm) -> u8 {
        form.text().first().map_or(0, u8::to_ascii_lowercase)
    }

    /// The next place where a form could stand whose first characters are written as they are.
    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        self.sieve.next(text, from)
    }

    /// The places of a text at which a form could begin that has a character spelled or a line broken, of which the first is
    /// the one behind these places. Wherever else one begins, it is known by its first bytes.
    fn spelled(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut starts = Vec::new();
        for (number, block) in blocks(text).enumerate() {
            let mut signs = signs_of(&block);
            while signs != 0 {
                starts.extend(self.starts(text, number * BLOCK + signs.trailing_zeros() as usize));
                signs &= signs - 1;
            }
        }
        starts
    }

    /// The places at which a form could begin of which the first escape or line break is this one.
    fn starts(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        let is_two = text[at] == b'\n' && at > 0 && text[at - 1] == b'\r';
        let first = if is_two { at - 1 } else { at };
        if !self.joins(text, first) {
            return None;
        }
        // A key may have the sign itself.
        let is_word = |byte: &&u8| self.words[usize::from(**byte)];
        let before = text[..first].iter().rev().take(self.longest).take_while(is_word).count();
        Some(first - before..first + 1)
    }

    /// The end of a text, in which a form could begin that goes on behind it. One with a character spelled may be longer,
    /// and is in a part of its own.
    fn begun(&self, text: &[u8]) -> Range<usize> {
        let tail = text.iter().rev().take(self.longest).take_while(|byte| self.stuff[usize::from(**byte)]);
        text.len() - tail.count()..text.len()
    }

    /// Whether the escape or line break at a place could be the first one inside a form.
    fn joins(&self, text: &[u8], at: usize) -> bool {
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let before = at.checked_sub(1).and_then(|before| text.get(before)).copied();
        if is_break(&text[at]) {
            // More line breaks than a form may have in a row join nothing, however many there are: a break is two bytes.
            let behind = text[at..].iter().take(2 * GAPS).find(|byte| !is_break(byte));
            return before.zip(behind).is_some_and(|(before, behind)| self.follows(before, *behind));
        }
        if !may_spell(text[at], text.get(at + 1).copied()) {
            return false;
        }
        let mut joins = false;
        let is_cut = spellings(&text[at..], &mut |spelled| {
            joins |= match spelled {
                Spelled::Byte(byte, _) => {
                    self.begins[usize::from(byte)] || before.is_some_and(|before| self.follows(before, byte))
                }
                Spelled::Gap(length) => {
                    let behind = text.get(at + length).copied();
                    before.is_some_and(|before| behind.is_none_or(|behind| self.follows(before, behind)))
                }
            };
        });
        joins || is_cut
    }

    /// Whether a byte of a form could stand there, and then this one, or what is written for the next one.
    fn follows(&self, before: u8, behind: u8) -> bool {
        let is_spelled = is_introducer(behind) && self.words[usize::from(before)];
        is_spelled || self.pairs[pair(before, behind)]
    }

    /// The longest form that stands at the start of `rest`, and whether one may go on behind it.
    fn judge(&self, rest: &[u8], start: usize) -> [Option<KeyMatch>; 2] {
        let Some(&first) = rest.first() else { return [None; 2] };
        if let Some(first) = rest.get(..KNOWN)
            && !first.iter().any(|byte| is_introducer(*byte))
            && !self.sieve.may_begin(rest, 0)
        {
            return [None; 2];
        }
        let mut seen = FormsSeen::default();
        self.judge_bucket(first, rest, &mut seen);
        if is_introducer(first) {
            let is_cut = spellings(rest, &mut |spelled| {
                if let Spelled::Byte(byte, _) = spelled {
                    self.judge_bucket(byte, rest, &mut seen);
                }
            });
            seen.is_begun |= is_cut;
        }
        let whole = seen.longest.map(|length| KeyMatch::Whole { start, end: start + length });
        [whole, seen.is_begun.then_some(KeyMatch::Begun { start })]
    }

    fn judge_bucket(&self, first: u8, rest: &[u8], seen: &mut FormsSeen) {
        let first = usize::from(first.to_ascii_lowercase());
        for form in &self.forms[self.buckets[first]..self.buckets[first + 1]] {
            compare(form, rest, seen);
        }
    }
}

/// The forms that match at one place.
#[derive(Default)]
struct FormsSeen {
    /// The length of the longest that is whole.
    longest: Option<usize>,
    /// Whether one may go on behind the text.
    is_begun: bool,
}

/// Compares a text with a form, each of whose characters may be spelled in any way.
fn compare(form: &KeyForm, text: &[u8], seen: &mut FormsSeen) {
    let plain = text.iter().zip(form.text());
    let plain =
        plain.take_while(|(byte, want)| !is_introducer(**byte) && form.accepts(**want, **byte)).count();
    let wanted = &form.text()[plain..];
    if text.get(plain).is_some_and(|byte| !is_introducer(*byte)) && !wanted.is_empty() {
        return;
    }
    // Every place at which the characters so far may end; they are few, since most spellings have one length.
    let (mut places, mut next) = (vec![plain], Vec::new());
    for (i, &want) in wanted.iter().enumerate() {
        let gaps = if plain + i > 0 { GAPS } else { 0 };
        for &place in &places {
            seen.is_begun |= step(form, want, (text, place), gaps, &mut next);
        }
        if next.is_empty() {
            return;
        }
        next.sort_unstable();
        next.dedup();
        places.clear();
        std::mem::swap(&mut places, &mut next);
    }
    seen.longest = seen.longest.max(places.last().copied());
}

/// Adds every place at which this character may end, if it stands at a place of the text; returns whether the text ends
/// before that is known.
fn step(form: &KeyForm, want: u8, at: (&[u8], usize), gaps: usize, next: &mut Vec<usize>) -> bool {
    let (text, place) = at;
    let Some(&byte) = text.get(place) else { return true };
    if form.accepts(want, byte) {
        next.push(place + 1);
    }
    if !is_introducer(byte) {
        return false;
    }
    let mut gap = [0; 2];
    let is_cut = spellings(&text[place..], &mut |spelled| match spelled {
        Spelled::Byte(byte, length) if form.accepts(want, byte) => next.push(place + length),
        Spelled::Byte(..) => {}
        // A place has one gap, or two that begin alike.
        Spelled::Gap(length) if gap[0] == 0 => gap[0] = length,
        Spelled::Gap(length) => gap[1] = length,
    });
    // An empty line ends what was wrapped; behind one, nothing waits for more.
    let is_allowed = gaps > 0 && (gaps == GAPS || !matches!(byte, b'\r' | b'\n'));
    let behind = gap.into_iter().filter(|length| *length > 0 && is_allowed);
    let goes_on = behind
        .fold(false, |goes_on, length| goes_on | step(form, want, (text, place + length), gaps - 1, next));
    is_cut || goes_on
}

/// The bytes of a block that may begin a spelling; of two bytes that break a line, the second.
fn signs_of(block: &[u8; BLOCK]) -> u64 {
    // Compared by their distance, since of comparisons compilers make a test of bits that is no wide instruction.
    mask_of(block, |byte| {
        let far = |sign: u8| byte ^ sign;
        1 - far(b'%').min(far(b'&')).min(far(b'\\')).min(far(b'=')).min(far(b'\n')).min(1)
    })
}

/// Whether a spelling may begin with these two bytes.
fn may_spell(one: u8, other: Option<u8>) -> bool {
    let Some(other) = other else { return true };
    match one {
        b'%' => other.is_ascii_hexdigit() || other == b'u',
        b'=' => other.is_ascii_hexdigit() || matches!(other, b'\r' | b'\n'),
        b'&' => other.is_ascii_alphabetic() || other == b'#',
        _ => true,
    }
}

/// The place of two bytes in the table of pairs.
fn pair(one: u8, other: u8) -> usize {
    usize::from(one) << 8 | usize::from(other)
}

impl Default for SecretMatcher {
    fn default() -> Self {
        Self::new(&[])
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
