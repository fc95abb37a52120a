//! A quick look at a text for the places where a form may begin. Hardly any other place passes it.

use std::ops::Range;

use super::forms::KeyForm;
use super::sorted::{GAPS, SortedForms};
use super::spelling::{Spelled, begins_name, is_introducer, may_name, spellings};

/// How many bytes of each form are known: as many of these as all have. No form has fewer than eight, since no key has.
const KNOWN: [usize; 4] = [32, 20, 12, super::LEAST];
/// How many bytes are looked at together.
const GRAM: usize = 4;
/// The logarithm of how many bits there are for grams: some thousand are set, and they stay in the nearest cache.
const BITS: u32 = 17;
const WORDS: usize = 1 << (BITS - u64::BITS.ilog2());
/// The logarithm of how many sets of offsets there are, and how many for each gram.
const OFFSETS: Range<u32> = 10..14;
const SPARSE: usize = 4;
/// The logarithm of how many sets of places there are for pairs of bytes.
const PAIRS: u32 = 12;
/// How many bytes behind a sign are looked at.
const AHEAD: usize = 4;
/// So many bytes are looked at together for signs.
const BLOCK: usize = 64;

/// A set of places in the first bytes of forms, the first one lowest.
type Places = u32;

/// Knows the first bytes of forms, without the case of letters.
pub(super) struct Sieve {
    /// How many of the first bytes of each.
    known: usize,
    /// A bit for each gram of them.
    grams: Box<[u64; WORDS]>,
    /// How far a gram is from the beginning of its forms.
    offsets: Box<[Places]>,
    offsets_shift: u32,
    /// Where a byte stands.
    bytes: Box<[Places; 256]>,
    /// Where the second of two bytes stands that follow each other.
    pairs: Box<[Places; 1 << PAIRS]>,
    /// Behind which of the signs a byte may stand that a form has there, and in front of which.
    behind: Box<[Signs; 256]>,
    in_front: Box<[Signs; 256]>,
}

/// A text that is searched.
#[derive(Clone, Copy)]
pub(super) struct Searched<'a> {
    pub(super) text: &'a [u8],
    /// Whether nothing follows it.
    pub(super) is_last: bool,
}

impl Sieve {
    pub(super) fn of(forms: &[SortedForms]) -> Self {
        let each = || forms.iter().flat_map(SortedForms::iter).map(KeyForm::text);
        let shortest = each().map(<[u8]>::len).min();
        let known = KNOWN.into_iter().find(|known| shortest.is_none_or(|shortest| *known <= shortest));
        let known = known.unwrap_or(super::LEAST);
        let count = each().count() * (known - GRAM + 1);
        let sets = (count * SPARSE).next_power_of_two().ilog2().clamp(OFFSETS.start, OFFSETS.end);
        let mut sieve = Self {
            known,
            grams: Box::new([0; WORDS]),
            offsets: vec![0; 1 << sets].into(),
            offsets_shift: u32::BITS - sets,
            bytes: Box::new([0; 256]),
            pairs: Box::new([0; 1 << PAIRS]),
            behind: Box::new(MAY_FOLLOW),
            in_front: Box::new([Signs::MAX ^ BREAK; 256]),
        };
        each().for_each(|form| sieve.add(&form[..known]));
        for byte in 0..=u8::MAX {
            let (at, is_known) = (usize::from(byte), sieve.bytes[usize::from(folded(byte))] != 0);
            if is_known || is_introducer(byte) {
                sieve.behind[at] |= BREAK;
                sieve.in_front[at] |= BREAK;
            }
            if is_known && byte.is_ascii_punctuation() {
                sieve.behind[at] |= BACKSLASH;
            }
        }
        sieve
    }

    fn add(&mut self, first: &[u8]) {
        for (offset, gram) in first.array_windows().enumerate() {
            let gram = gram_of(u32::from_le_bytes(*gram));
            let (word, bit) = bit_of(gram);
            self.grams[word] |= bit;
            let set = self.offsets_of(gram);
            self.offsets[set] |= 1 << offset;
        }
        for (place, byte) in first.iter().enumerate() {
            self.bytes[usize::from(folded(*byte))] |= 1 << place;
        }
        for (before, pair) in first.windows(2).enumerate() {
            self.pairs[pair_of(pair[0], pair[1])] |= 1 << (before + 1);
        }
    }

    /// How much before a place of a text a form begins at most that is found there.
    pub(super) fn reach(&self) -> usize {
        self.known + 1
    }

    /// Adds the places where a form may begin that is written as it is at first, and that has a gram in this part; the part
    /// begins where another one ended, or the text.
    pub(super) fn plain(&self, text: &[u8], within: Range<usize>, starts: &mut Vec<usize>) {
        match self.known {
            32.. => self.plain_at::<29>(text, within, starts),
            20.. => self.plain_at::<17>(text, within, starts),
            12.. => self.plain_at::<9>(text, within, starts),
            _ => self.plain_at::<5>(text, within, starts),
        }
    }

    /// The same: of the known bytes of a form, one gram stands at a multiple of the stride.
    fn plain_at<const STRIDE: usize>(&self, text: &[u8], within: Range<usize>, starts: &mut Vec<usize>) {
        /// So many grams are looked at together, and so many bytes have them.
        const TOGETHER: usize = 4;
        const WINDOW: usize = 3 * 29 + GRAM;
        let mut at = within.start.next_multiple_of(STRIDE);
        while at < within.end {
            let rest = &text[at..];
            if let Some(window) = rest.first_chunk::<WINDOW>() {
                let grams: [u32; TOGETHER] = std::array::from_fn(|number| {
                    let from = number * STRIDE;
                    u32::from_le_bytes([window[from], window[from + 1], window[from + 2], window[from + 3]])
                });
                if !grams.iter().fold(false, |any, gram| any | self.has(gram_of(*gram))) {
                    at += STRIDE * TOGETHER;
                    continue;
                }
            }
            let Some(gram) = rest.first_chunk() else { return };
            let gram = gram_of(u32::from_le_bytes(*gram));
            if self.has(gram) {
                let offsets = places(self.offsets[self.offsets_of(gram)]);
                let begin = offsets.filter_map(|offset| at.checked_sub(offset));
                starts.extend(begin.filter(|start| self.begins_plain(&text[*start..])));
            }
            at += STRIDE;
        }
    }

    /// Whether all known bytes of a form may stand there as they are.
    fn begins_plain(&self, text: &[u8]) -> bool {
        text.get(..self.known).is_some_and(|first| {
            let (grams, _) = first.as_chunks();
            grams.iter().zip((0..).step_by(GRAM)).all(|(gram, offset)| {
                let gram = gram_of(u32::from_le_bytes(*gram));
                self.offsets[self.offsets_of(gram)] & 1 << offset != 0
            })
        })
    }

    /// Adds the places where a form may begin of which one of the first bytes is spelled in this part, or a line broken.
    pub(super) fn spelled(&self, searched: Searched<'_>, within: Range<usize>, starts: &mut Vec<usize>) {
        if !has_sign(&searched.text[within.clone()]) {
            return;
        }
        let mut at = within.start;
        while at < within.end {
            let rest = &searched.text[at..];
            let mut last = [0; BLOCK + 1];
            let block = rest.first_chunk().unwrap_or_else(|| {
                last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                &last
            });
            let signs = signs_of(block);
            if signs != 0 {
                self.signs(searched, at, (block, signs), starts);
            }
            at += BLOCK;
        }
    }

    /// Adds the places where a form may begin in the last bytes of a text that goes on.
    pub(super) fn end(&self, searched: Searched<'_>, starts: &mut Vec<usize>) {
        let text = searched.text;
        if searched.is_last {
            return;
        }
        let begins = |start: &usize| {
            let has = |places: Places, place: usize| places & 1 << place != 0;
            let first = text[*start];
            has(self.bytes[usize::from(folded(first))], 0)
                && text
                    .get(start + 1)
                    .is_none_or(|next| has(self.pairs[pair_of(first, *next)], 1) || is_introducer(*next))
        };
        starts.extend((text.len().saturating_sub(self.known - 1)..text.len()).filter(begins));
        if text.ends_with(b"\r") {
            let at = text.len() - 1;
            starts.extend(places(self.before(text, at)).map(|before| at - before));
        }
    }

    /// Judges the signs of a block. What cannot be is left out without a branch.
    fn signs(
        &self,
        searched: Searched<'_>,
        at: usize,
        (block, mut signs): (&[u8; BLOCK + 1], u64),
        starts: &mut Vec<usize>,
    ) {
        let (mut likely, mut count) = ([0_u8; BLOCK], 0);
        while signs != 0 {
            let place = place_of_sign(signs.trailing_zeros());
            let in_front = self.in_front[usize::from(searched.text[(at + place).saturating_sub(1)])];
            let behind = self.behind[usize::from(block[place + 1])];
            likely[count] = place as u8;
            // What the text cuts may be any spelling.
            let is_cut = at + place + 2 >= searched.text.len();
            count += usize::from(is_cut | (SIGNS[usize::from(block[place])] & in_front & behind != 0));
            signs &= signs - 1;
        }
        likely[..count].iter().for_each(|place| self.sign(searched, at + usize::from(*place), starts));
    }

    fn has(&self, gram: u32) -> bool {
        let (word, bit) = bit_of(gram);
        self.grams[word] & bit != 0
    }

    fn offsets_of(&self, gram: u32) -> usize {
        (gram.wrapping_mul(OTHER_SPREAD) >> self.offsets_shift) as usize
    }

    /// Adds the places where a form may begin whose first character that is not written as it is stands there.
    fn sign(&self, searched: Searched<'_>, at: usize, starts: &mut Vec<usize>) {
        let text = searched.text;
        let (mut first, mut found) = (at, 0);
        match text[at..] {
            [b'\n', ..] => {
                first -= usize::from(text[..at].ends_with(b"\r"));
                found = self.gap(searched, first, at + 1);
            }
            [b'\\', b'n' | b'r', ..] => found = self.gap(searched, at, at + 2),
            [b'&', first, second, ..] if first != b'#' && !may_name(first, second) => {}
            _ => {
                let is_cut = spellings(&text[at..], &mut |spelled| {
                    found |= match spelled {
                        Spelled::Byte(byte, length) => self.byte(searched, at, (byte, at + length)),
                        Spelled::Gap(length) => self.gap(searched, at, at + length),
                    }
                });
                if is_cut && !searched.is_last {
                    found |= self.before(text, at);
                }
            }
        }
        starts.extend(places(found).map(|before| first - before));
    }

    /// How much before a place a form may begin of which all bytes up to there are written as they are.
    fn before(&self, text: &[u8], at: usize) -> Places {
        let Some(&[.., one]) = text[..at].last_chunk::<1>() else { return 1 };
        let all = self.bytes[usize::from(folded(one))] << 1 | 1;
        let known = all & (Places::MAX >> (Places::BITS as usize - self.known));
        let Some(&[before, one]) = text[..at].last_chunk::<2>() else { return known & 0b11 };
        let known = known & (self.pairs[pair_of(before, one)] << 1 | 0b11);
        // Nothing begins before the text.
        known & Places::MAX.checked_shr((Places::BITS - 1).saturating_sub(at as u32)).unwrap_or(0)
    }

    /// The same of one that has a byte spelled there, and goes on behind it.
    fn byte(&self, searched: Searched<'_>, at: usize, (byte, behind): (u8, usize)) -> Places {
        let known = self.before(searched.text, at) & self.bytes[usize::from(folded(byte))];
        let known = match searched.text[..at].last() {
            Some(before) => known & (self.pairs[pair_of(*before, byte)] | 1),
            None => known,
        };
        if known == 0 { 0 } else { self.following(searched, known, Read { byte, behind, count: 1, gaps: 0 }) }
    }

    /// The same of one that is broken there, and goes on behind it.
    fn gap(&self, searched: Searched<'_>, at: usize, behind: usize) -> Places {
        let may_be = |byte: Option<&u8>, signs: &[Signs; 256]| {
            byte.is_none_or(|byte| signs[usize::from(*byte)] & BREAK != 0)
        };
        let Some(&byte) = searched.text[..at].last() else { return 0 };
        if !may_be(Some(&byte), &self.in_front) || !may_be(searched.text.get(behind), &self.behind) {
            return 0;
        }
        // No form begins with a gap.
        let known = self.before(searched.text, at) & !1;
        if known == 0 { 0 } else { self.following(searched, known, Read { byte, behind, count: 0, gaps: 1 }) }
    }

    /// Those of the places from which a form may go on with what follows.
    fn following(&self, searched: Searched<'_>, known: Places, read: Read) -> Places {
        let Some(&next) = searched.text.get(read.behind) else { return known };
        if read.count == AHEAD {
            return known;
        }
        let with = |byte, length| {
            let known =
                known & (self.pairs[pair_of(read.byte, byte)] >> read.count | self.unknown(read.count));
            let read = Read { byte, behind: read.behind + length, count: read.count + 1, gaps: 0 };
            if known == 0 { 0 } else { self.following(searched, known, read) }
        };
        let as_it_is = with(next, 1);
        if !is_introducer(next) {
            return as_it_is;
        }
        let is_broken = read.gaps > 0 && matches!(next, b'\r' | b'\n');
        let mut found = as_it_is;
        let is_cut = spellings(&searched.text[read.behind..], &mut |spelled| {
            found |= match spelled {
                Spelled::Byte(byte, length) => with(byte, length),
                Spelled::Gap(length) if !is_broken && read.gaps < GAPS => {
                    let behind = read.behind + length;
                    self.following(searched, known, Read { behind, gaps: read.gaps + 1, ..read })
                }
                Spelled::Gap(_) => 0,
            }
        });
        if is_cut && !searched.is_last { known } else { found }
    }

    /// The places behind which so many bytes are not known.
    fn unknown(&self, count: usize) -> Places {
        let all = Places::MAX >> (Places::BITS as usize - self.known);
        all & !(all >> count)
    }
}

/// What is read of a form behind its first sign.
#[derive(Clone, Copy)]
struct Read {
    /// The last byte of it.
    byte: u8,
    /// Where the next one stands.
    behind: usize,
    /// How many bytes, the one of the sign included, and how many gaps behind them.
    count: usize,
    gaps: usize,
}

/// A set of the signs with which a spelling or a gap may begin.
type Signs = u8;
const PERCENT: Signs = 1;
const ENTITY: Signs = 2;
const QUOTED: Signs = 4;
const BACKSLASH: Signs = 8;
const BREAK: Signs = 16;

/// The sign that a byte is.
const SIGNS: [Signs; 256] = {
    let mut signs = [0; 256];
    signs[b'%' as usize] = PERCENT;
    signs[b'&' as usize] = ENTITY;
    signs[b'=' as usize] = QUOTED;
    signs[b'\\' as usize] = BACKSLASH;
    signs[b'\n' as usize] = BREAK;
    signs
};

/// The signs of which a byte makes the spelling of a visible character, of zero or of a gap, whatever the forms are. Behind a
/// text that ends there are zeros.
const MAY_FOLLOW: [Signs; 256] = {
    let (mut signs, mut byte) = ([0; 256], 0_u8);
    while byte < 128 {
        signs[byte as usize] = match byte {
            0 => Signs::MAX,
            b'0' | b'2'..=b'7' => PERCENT | QUOTED | BACKSLASH,
            b'1' => BACKSLASH,
            b'n' | b'r' | b'U' | b'x' => BACKSLASH,
            b'u' => PERCENT | BACKSLASH,
            b'\\' => BACKSLASH,
            b'\r' => QUOTED,
            b'\n' => QUOTED | BACKSLASH,
            b'#' => ENTITY,
            _ => 0,
        };
        if begins_name(byte) {
            signs[byte as usize] |= ENTITY;
        }
        byte += 1;
    }
    signs
};

/// Odd numbers that spread grams well (Knuth, The Art of Computer Programming, 6.4).
const SPREAD: u32 = 0x9e37_79b1;
const OTHER_SPREAD: u32 = 0x85eb_ca6b;

/// A byte without the case of letters. Some other bytes are alike then too.
fn folded(byte: u8) -> u8 {
    byte | (byte & 0x40) >> 1
}

/// The same of four.
fn gram_of(bytes: u32) -> u32 {
    bytes | (bytes & 0x4040_4040) >> 1
}

/// Where the bit of a gram is.
fn bit_of(gram: u32) -> (usize, u64) {
    let number = gram.wrapping_mul(SPREAD) >> (u32::BITS - BITS);
    ((number >> u64::BITS.ilog2()) as usize, 1 << (number & (u64::BITS - 1)))
}

fn pair_of(one: u8, next: u8) -> usize {
    let pair = u32::from(folded(one)) << 8 | u32::from(folded(next));
    (pair.wrapping_mul(SPREAD) >> (u32::BITS - PAIRS)) as usize
}

fn places(mut set: Places) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        place
    })
}

/// Whether a spelling or a gap may begin anywhere in a part. In most texts the first few bytes tell.
fn has_sign(part: &[u8]) -> bool {
    memchr::memchr3(b'\n', b'=', b'\\', part).is_some() || memchr::memchr2(b'%', b'&', part).is_some()
}

/// A bit for each byte of a block with which a spelling or a gap may begin, but for the last byte. It has no branches and no
/// table, so that compilers make it a few wide instructions; that is why the bits are in the order of [`place_of_sign`].
fn signs_of(block: &[u8; BLOCK + 1]) -> u64 {
    const LANES: usize = BLOCK / 4;
    let is_sign = |at: usize| {
        let (byte, next) = (block[at], block[at + 1]);
        let is = |sign: u8| u8::from(byte == sign);
        let is_sign = u8::from(byte.wrapping_sub(b'%') <= 1) | is(b'=') | is(b'\\') | is(b'\n');
        // A space is in no form and in no spelling, and no form goes on behind an empty line.
        is_sign & u8::from(next != b' ') & !(is(b'\n') & u8::from(next == b'\n'))
    };
    let mut lanes = [0; LANES];
    for (at, lane) in lanes.iter_mut().enumerate() {
        *lane = is_sign(at)
            | is_sign(at + LANES) << 1
            | is_sign(at + 2 * LANES) << 2
            | is_sign(at + 3 * LANES) << 3;
    }
    let lanes = u128::from_le_bytes(lanes);
    lanes as u64 | ((lanes >> 64) as u64) << 4
}

/// Where the byte of such a bit stands.
fn place_of_sign(bit: u32) -> usize {
    let (lane, row) = (bit as usize / 8, bit as usize % 8);
    row % 4 * (BLOCK / 4) + row / 4 * 8 + lane
}
