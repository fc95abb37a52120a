//! Searches for the anchors of all detectors of a place at once. Few runs have one, so runs are sifted first.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use super::decode::MIRRORS;
use super::detector::{Detector, Place};

/// Anchors that are shorter stand in too many texts by chance, turned round or in the other case.
const LEAST_MIRRORED: usize = 4;

/// Whose an anchor is, and how it is turned round.
pub(super) type Owner = (usize, Option<usize>);

#[derive(Debug)]
pub(super) struct Anchors {
    pub(super) automaton: AhoCorasick,
    pub(super) owners: Vec<Owner>,
    sieve: Sieve,
}

impl Anchors {
    /// The anchors of the detectors whose secrets stand there.
    pub(super) fn of(all: &[Detector], place: Place) -> Result<Self, String> {
        let (mut texts, mut owners) = (Vec::new(), Vec::new());
        for (number, detector) in all.iter().enumerate().filter(|(_, of)| of.form.place == place) {
            for anchor in detector.anchors.iter().map(String::as_bytes) {
                texts.push(anchor.to_vec());
                owners.push((number, None));
                if !detector.is_rigid || anchor.len() < LEAST_MIRRORED {
                    continue;
                }
                for (way, mirror) in MIRRORS.iter().enumerate() {
                    let turned = (mirror.undo)(anchor);
                    if turned != anchor {
                        texts.push(turned);
                        owners.push((number, Some(way)));
                    }
                }
            }
        }
        let mut builder = AhoCorasickBuilder::new();
        match place {
            Place::Text => builder.match_kind(MatchKind::LeftmostFirst),
            // Anchors may stand in each other, and each run is short.
            Place::Anywhere => &mut builder,
            Place::Token | Place::Value => builder.kind(Some(AhoCorasickKind::DFA)).prefilter(false),
        };
        let automaton = builder.build(&texts).map_err(|error| error.to_string())?;
        let sieve = Sieve::of(&texts);
        Ok(Self { automaton, owners, sieve })
    }

    /// Tells of the anchors in a run, in the order of their ends.
    pub(super) fn in_run(&self, run: &[u8], mut tell: impl FnMut(Option<&Owner>, Range<usize>)) {
        let mut at = 0;
        while let Some(part) = self.sieve.next(run, at) {
            for anchor in self.automaton.find_overlapping_iter(run.get(part.clone()).unwrap_or_default()) {
                let owner = self.owners.get(anchor.pattern().as_usize());
                tell(owner, part.start + anchor.start()..part.start + anchor.end());
            }
            at = part.end.next_multiple_of(STEP);
        }
    }
}

/// Three bytes at every second place are looked at, since the others tell nothing more.
const STRIDE: usize = 2;
/// The bytes that are read together, of which three times three are looked at.
const READ: usize = 8;
const STEP: usize = 3 * STRIDE;
/// How much behind a hit is searched without looking for another.
const MOST: usize = 40 * STEP;
/// The logarithm of how many bits a sieve has: some thousand are set, and it stays in the nearest cache.
const BITS: u32 = 16;
const WORDS: usize = 1 << (BITS - u64::BITS.ilog2());

/// Knows three bytes of each anchor, both where it begins at an even place of a run and where it begins at an odd one.
#[derive(Debug)]
struct Sieve {
    bits: Box<[u64; WORDS]>,
    /// The same at other places: what passes both is hardly ever something else.
    others: Box<[u64; WORDS]>,
    /// The length of the longest anchor.
    longest: usize,
}

impl Sieve {
    fn of(anchors: &[Vec<u8>]) -> Self {
        let longest = anchors.iter().map(Vec::len).max().unwrap_or(0);
        let mut sieve = Self { bits: Box::new([0; WORDS]), others: Box::new([0; WORDS]), longest };
        for anchor in anchors {
            match anchor.as_slice() {
                [] | [_] => {
                    [&mut sieve.bits, &mut sieve.others].iter_mut().for_each(|bits| bits.fill(u64::MAX))
                }
                [a, b] => {
                    (0..=u8::MAX).for_each(|any| sieve.add([*a, *b, any]));
                    (0..=u8::MAX).for_each(|any| sieve.add([any, *a, *b]));
                }
                [a, b, c] => {
                    sieve.add([*a, *b, *c]);
                    (0..=u8::MAX).for_each(|any| sieve.add([any, *a, *b]));
                }
                [a, b, c, d, ..] => {
                    sieve.add([*a, *b, *c]);
                    sieve.add([*b, *c, *d]);
                }
            }
        }
        sieve
    }

    fn add(&mut self, [a, b, c]: [u8; 3]) {
        let three = u64::from(u32::from_le_bytes([a, b, c, 0]));
        let (word, bit) = place(three, SPREAD);
        self.bits[word] |= bit;
        let (word, bit) = place(three, OTHER_SPREAD);
        self.others[word] |= bit;
    }

    /// Whether three of these bytes may be of an anchor.
    fn has(&self, bytes: &[u8; READ]) -> bool {
        let bytes = u64::from_le_bytes(*bytes);
        let threes = [bytes, bytes >> 16, bytes >> 32];
        let is_in = |bits: &[u64; WORDS], three, spread| {
            let (word, bit) = place(three, spread);
            bits[word] & bit != 0
        };
        let [first, second, third] = threes.map(|three| is_in(&self.bits, three, SPREAD));
        (first | second | third)
            && threes
                .iter()
                .any(|three| is_in(&self.bits, *three, SPREAD) && is_in(&self.others, *three, OTHER_SPREAD))
    }

    /// The next part of a run that may have anchors, so that all of them end in it; from a multiple of [`STEP`] on.
    fn next(&self, run: &[u8], at: usize) -> Option<Range<usize>> {
        let first = self.hit(run, at, run.len())?;
        let (mut last, mut more) = (first + STEP, 0);
        loop {
            // What begins near the end of this part is in it too. Where hits follow each other, they are looked for ever
            // farther away.
            let end = last + more + self.longest;
            match self.hit(run, last + more, end + 1) {
                Some(next) => (last, more) = (next + STEP, MOST.min(2 * more + STEP)),
                None => return Some(first.saturating_sub(1)..run.len().min(end)),
            }
        }
    }

    /// The first step from there on at which three bytes are of an anchor, if it begins before a place.
    fn hit(&self, run: &[u8], mut at: usize, before: usize) -> Option<usize> {
        while at < before {
            let rest = run.get(at..).filter(|rest| !rest.is_empty())?;
            let Some(bytes) = rest.first_chunk() else {
                let mut last = [0; READ];
                last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                return self.has(&last).then_some(at);
            };
            if self.has(bytes) {
                return Some(at);
            }
            at += STEP;
        }
        None
    }
}

/// Odd numbers that spread three bytes well (Knuth, The Art of Computer Programming, 6.4).
const SPREAD: u32 = 0x9e37_79b1;
const OTHER_SPREAD: u32 = 0x85eb_ca6b;

/// Where the bit of three bytes is, the lowest ones.
fn place(three: u64, spread: u32) -> (usize, u64) {
    let number = (three as u32 & 0xff_ffff).wrapping_mul(spread) >> (u32::BITS - BITS);
    ((number >> 6) as usize, 1 << (number & 0x3f))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::catalogue;
    use super::*;

    static ALL: LazyLock<Vec<Detector>> = LazyLock::new(|| {
        let rows = catalogue::rows().unwrap();
        rows.into_iter().map(|row| catalogue::detector(row).unwrap()).collect()
    });
    static ANCHORS: LazyLock<Anchors> = LazyLock::new(|| Anchors::of(&ALL, Place::Token).unwrap());

    proptest! {
        #[test]
        fn the_anchors_of_a_run_are_those_that_the_automaton_finds(
            parts in proptest::collection::vec((any::<Index>(), "[a-zA-Z0-9_.~-]{0,30}", 0_usize..20), 0..8),
            way in 0..MIRRORS.len() * 2,
        ) {
            let some: Vec<&String> = ALL.iter().flat_map(|detector| &detector.anchors).collect();
            let mut run = Vec::new();
            for (index, other, cut) in parts {
                run.extend(other.as_bytes());
                let anchor = index.get(&some).as_bytes();
                run.extend(&anchor[..anchor.len() - cut % anchor.len()]);
            }
            if let Some(mirror) = MIRRORS.get(way) {
                run = (mirror.undo)(&run);
            }
            let expected: Vec<_> = ANCHORS
                .automaton
                .find_overlapping_iter(&run)
                .map(|found| (ANCHORS.owners.get(found.pattern().as_usize()).copied(), found.range()))
                .collect();
            let mut found = Vec::new();
            ANCHORS.in_run(&run, |owner, range| found.push((owner.copied(), range)));
            prop_assert_eq!(found, expected);
        }
    }
}
