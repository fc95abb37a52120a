//! The search for all forms of all keys at once, however each of their characters is spelled.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr2_iter, memchr3_iter};

use super::forms::{KeyForm, forms, once, plain};
use super::spelling::{Spelled, is_introducer, spellings};
use super::{LEAST, Secret};

/// How many bytes of a form the first look knows. A candidate is then compared in full. No form is shorter, since no
/// key is.
const PREFIX: usize = LEAST;
/// How many bytes the first look takes at once.
const GRAM: usize = 3;
/// How many grams the table tells apart.
const TABLE: usize = 1 << 15;
/// How many line breaks and the like may stand between two characters of a form.
const GAPS: usize = 4;

/// Every form of a set of keys, ready to be searched for. Built when a key changes, shared by all exchanges.
pub struct SecretMatcher {
    /// In the order of their first bytes, in lower case.
    forms: Vec<KeyForm>,
    /// Where the forms begin whose first byte is this or a greater one, in lower case.
    buckets: Box<[usize; 257]>,
    /// For each gram, how far it is from the end of a form's prefix at least (Wu and Manber, "A fast algorithm for
    /// multi-pattern searching", 1994): so far the search can skip.
    skips: Box<[u8]>,
    /// The bytes with which a form or a spelling begins.
    begins: [bool; 256],
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
            skips: vec![(PREFIX - GRAM + 1) as u8; TABLE].into_boxed_slice(),
            words: [false; 256],
            begins: [false; 256],
            stuff: [false; 256],
            shortest: forms.iter().map(|form| form.text().len()).min().unwrap_or(usize::MAX),
            longest: forms.iter().map(|form| form.text().len()).max().unwrap_or_default(),
            forms,
        };
        for form in &matcher.forms {
            matcher.buckets[usize::from(Self::bucket(form)) + 1] += 1;
            for (far, gram) in form.text()[..PREFIX].windows(GRAM).rev().enumerate() {
                let skip = &mut matcher.skips[slot(gram)];
                *skip = (*skip).min(far as u8);
            }
            form.bytes().for_each(|byte| matcher.words[usize::from(byte)] = true);
            let first = Self::bucket(form);
            matcher.begins[usize::from(first)] = true;
            matcher.begins[usize::from(first.to_ascii_uppercase())] = true;
        }
        for i in 0..256 {
            matcher.buckets[i + 1] += matcher.buckets[i];
        }
        for (byte, is_stuff) in (0..=u8::MAX).zip(&mut matcher.stuff) {
            matcher.begins[usize::from(byte)] |= is_introducer(byte);
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
        let mut at = from;
        while let Some(gram) = text.get(at + PREFIX - GRAM..at + PREFIX) {
            match self.skips[slot(gram)] {
                // The gram may end a prefix here; `judge` compares in full.
                0 if self.begins[usize::from(text[at])] => return Some(at),
                0 => at += 1,
                skip => at += usize::from(skip),
            }
        }
        None
    }

    /// The parts of a text in which a form could stand with a character spelled or a line broken. Wherever else one
    /// stands, it is known by its first bytes.
    fn spelled(&self, text: &[u8]) -> Vec<Range<usize>> {
        let (mut runs, mut known): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        let mut escapes = memchr3_iter(b'%', b'&', b'\\', text).peekable();
        let mut breaks = memchr2_iter(b'=', b'\n', text).peekable();
        loop {
            let at = match (escapes.peek().copied(), breaks.peek().copied()) {
                (Some(escape), Some(other)) => escape.min(other),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => break,
            };
            if escapes.next_if_eq(&at).is_none() {
                breaks.next();
            }
            if at < known || !self.joins(text, at) {
                continue;
            }
            let run = self.run(text, at);
            known = run.end;
            if run.len() >= self.shortest {
                runs.push(run);
            }
        }
        runs
    }

    /// The end of a text, in which a form could begin that goes on behind it. One with a character spelled may be longer,
    /// and is in a part of its own.
    fn begun(&self, text: &[u8]) -> Range<usize> {
        let tail = text.iter().rev().take(self.longest).take_while(|byte| self.stuff[usize::from(**byte)]);
        text.len() - tail.count()..text.len()
    }

    /// Whether the escape or line break at a place could be inside a form.
    fn joins(&self, text: &[u8], at: usize) -> bool {
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        if text[at] == b'\n' {
            // More line breaks than a form may have in a row join nothing, however many there are: a break is two bytes.
            let before = text[..at].iter().rev().take(2 * GAPS + 1).find(|byte| !is_break(byte));
            let behind = text[at..].iter().take(GAPS + 1).find(|byte| !is_break(byte));
            return [before, behind]
                .iter()
                .all(|byte| byte.is_some_and(|byte| self.words[usize::from(*byte)]));
        }
        let mut joins = false;
        let is_cut = spellings(&text[at..], &mut |spelled| match spelled {
            Spelled::Byte(byte, _) => joins |= self.words[usize::from(byte)],
            Spelled::Gap(_) => joins = true,
        });
        joins || is_cut
    }

    /// The part of the text around a place in which every byte can belong to a form or a spelling.
    fn run(&self, text: &[u8], at: usize) -> Range<usize> {
        let is_stuff = |byte: &&u8| self.stuff[usize::from(**byte)];
        let before = text[..at].iter().rev().take_while(is_stuff).count();
        let behind = text[at..].iter().take_while(is_stuff).count();
        at - before..at + behind
    }

    /// The longest form that stands at the start of `rest`, and whether one may go on behind it.
    fn judge(&self, rest: &[u8], start: usize) -> [Option<KeyMatch>; 2] {
        let Some(&first) = rest.first() else { return [None; 2] };
        if let Some(gram) = rest.get(..GRAM)
            && !gram.iter().any(|byte| is_introducer(*byte))
            && usize::from(self.skips[slot(gram)]) > PREFIX - GRAM
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

/// A gram's place in the table. The case of letters makes no difference.
fn slot(gram: &[u8]) -> usize {
    let gram = gram.iter().fold(0_u32, |all, byte| all << 8 | u32::from(byte | 0x20));
    (gram.wrapping_mul(0x9e37_79b1) >> 17) as usize & (TABLE - 1)
}

impl Default for SecretMatcher {
    fn default() -> Self {
        Self::new(&[])
    }
}
