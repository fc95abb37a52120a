//! Forms in the order of their bytes, so that a text is compared with all of them at once, however each of their
//! characters is spelled.

use std::ops::Range;

use zeroize::Zeroizing;

use super::forms::KeyForm;
use super::spelling::{Spelled, is_introducer, spellings};

/// How many line breaks and the like may stand between two characters of a form.
pub(super) const GAPS: usize = 4;
/// How many bytes of a form are compared at once. No form is shorter, since no key is.
const HEAD: usize = super::LEAST;

/// Forms in the order of their bytes, each once.
pub(super) struct SortedForms {
    forms: Vec<KeyForm>,
    /// The first bytes of each, the first one highest.
    heads: Zeroizing<Vec<u64>>,
    /// Whether the case of their letters is open; they are in lower case then.
    folds: bool,
}

/// The forms that match at one place.
#[derive(Default)]
pub(super) struct FormsSeen {
    /// The length of the longest that is whole.
    pub(super) longest: Option<usize>,
    /// Whether one may go on behind the text.
    pub(super) is_begun: bool,
}

/// The forms that the characters so far begin, and where these characters end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    first: usize,
    end: usize,
    place: usize,
}

/// All readings of a text so far, and those with one more character. There is room for those of each place.
#[derive(Default)]
pub(super) struct Readings {
    now: Vec<Reading>,
    next: Vec<Reading>,
}

impl SortedForms {
    /// Takes forms whose letters are alike in this.
    pub(super) fn of(mut forms: Vec<KeyForm>, folds: bool) -> Self {
        forms.sort_unstable();
        let heads =
            forms.iter().map(|form| form.text().first_chunk().map_or(0, |head| u64::from_be_bytes(*head)));
        let heads = Zeroizing::new(heads.collect());
        Self { forms, heads, folds }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, KeyForm> {
        self.forms.iter()
    }

    /// Adds the forms that stand at the beginning of a text.
    pub(super) fn judge(&self, text: &[u8], readings: &mut Readings, seen: &mut FormsSeen) {
        let plain = text.iter().take(HEAD).take_while(|byte| !is_introducer(**byte)).count();
        let Range { start: first, end } = self.beginning_with(&text[..plain]);
        let Readings { now, next } = readings;
        now.clear();
        now.push(Reading { first, end, place: plain });
        let mut length = plain;
        loop {
            if let [reading] = now.as_mut_slice() {
                length += self.read_plain(text, reading, length);
            }
            now.retain_mut(|reading| {
                let forms = &self.forms[reading.first..reading.end];
                if forms.first().is_some_and(|form| form.text().len() == length) {
                    seen.longest = seen.longest.max(Some(reading.place));
                    reading.first += 1;
                }
                reading.first < reading.end
            });
            if now.is_empty() {
                return;
            }
            next.clear();
            let gaps = if length > 0 { GAPS } else { 0 };
            for reading in now.iter() {
                seen.is_begun |= self.step(text, *reading, (length, gaps), next);
            }
            next.sort_unstable();
            next.dedup();
            std::mem::swap(now, next);
            length += 1;
        }
    }

    /// Reads on while there is one way to, and no form ends. Returns how many characters were read.
    fn read_plain(&self, text: &[u8], reading: &mut Reading, length: usize) -> usize {
        let start = reading.place;
        loop {
            let length = length + reading.place - start;
            let rest = text.get(reading.place..).unwrap_or_default();
            let forms = &self.forms[reading.first..reading.end];
            let (Some(first), Some(last)) = (forms.first(), forms.last()) else { break };
            let mut same = self.same(rest, first, length);
            if forms.len() > 1 {
                same = same.min(self.same(rest, last, length));
            }
            reading.place += same;
            let (length, byte) = (length + same, rest.get(same));
            let Some(&byte) = byte.filter(|byte| !is_introducer(**byte) && first.text().len() > length)
            else {
                break;
            };
            let Range { start: first, end } = self.narrowed(*reading, length, byte);
            *reading = Reading { first, end, place: reading.place + 1 };
        }
        reading.place - start
    }

    /// How many bytes of a text are those of a form behind so many.
    fn same(&self, text: &[u8], form: &KeyForm, length: usize) -> usize {
        let form = form.text().get(length..).unwrap_or_default();
        text.iter()
            .zip(form)
            .take_while(|(byte, want)| self.folded(**byte) == **want && !is_introducer(**byte))
            .count()
    }

    /// Adds every way to read one more character of a form that has so many; returns whether the text ends before all are
    /// known.
    fn step(
        &self,
        text: &[u8],
        from: Reading,
        (length, gaps): (usize, usize),
        next: &mut Vec<Reading>,
    ) -> bool {
        let place = from.place;
        let Some(&byte) = text.get(place) else { return true };
        let read = |byte, place| {
            let Range { start: first, end } = self.narrowed(from, length, byte);
            (first < end).then_some(Reading { first, end, place })
        };
        next.extend(read(byte, place + 1));
        if !is_introducer(byte) {
            return false;
        }
        let mut gap = [0; 2];
        let is_cut = spellings(&text[place..], &mut |spelled| match spelled {
            Spelled::Byte(byte, length) => next.extend(read(byte, place + length)),
            // A place has one gap, or two that begin alike.
            Spelled::Gap(length) if gap[0] == 0 => gap[0] = length,
            Spelled::Gap(length) => gap[1] = length,
        });
        // An empty line ends what was wrapped; behind one, nothing waits for more.
        let is_allowed = gaps > 0 && (gaps == GAPS || !matches!(byte, b'\r' | b'\n'));
        let behind = gap.into_iter().filter(|length| *length > 0 && is_allowed);
        behind.fold(is_cut, |is_cut, gap| {
            is_cut | self.step(text, Reading { place: place + gap, ..from }, (length, gaps - 1), next)
        })
    }

    /// The forms that begin with these bytes, of which there are no more than in a head.
    fn beginning_with(&self, bytes: &[u8]) -> Range<usize> {
        let (mut low, mut high) = ([0; HEAD], [u8::MAX; HEAD]);
        for ((low, high), byte) in low.iter_mut().zip(&mut high).zip(bytes) {
            *low = self.folded(*byte);
            *high = *low;
        }
        let [low, high] = [low, high].map(u64::from_be_bytes);
        let start = self.heads.partition_point(|head| *head < low);
        let count = self.heads[start..].partition_point(|head| *head <= high);
        start..start + count
    }

    /// The forms of a reading that have this byte behind so many.
    fn narrowed(&self, from: Reading, length: usize, byte: u8) -> Range<usize> {
        let byte = Some(self.folded(byte));
        let forms = &self.forms[from.first..from.end];
        let next = |form: &KeyForm| form.text().get(length).copied();
        if let (Some(first), Some(last)) = (forms.first(), forms.last())
            && next(first) == byte
            && next(last) == byte
        {
            return from.first..from.end;
        }
        let start = forms.partition_point(|form| next(form) < byte);
        let count = forms[start..].partition_point(|form| next(form) == byte);
        from.first + start..from.first + start + count
    }

    fn folded(&self, byte: u8) -> u8 {
        if self.folds { byte.to_ascii_lowercase() } else { byte }
    }
}
