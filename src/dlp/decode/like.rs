//! Whether text may begin with some bytes: three of them at a time, by tables, since this is asked of every run at each
//! alignment, and most are no text.

/// What a byte may be in UTF-8: printable, a byte that goes on, one that begins so many more, or none of these.
const PRINTABLE: u8 = 0;
const GOES_ON: u8 = 1;
/// The first of the classes of those that begin a character of two, three or four bytes.
const BEGINS: u8 = 2;
const OTHER: u8 = 5;
const CLASSES: usize = 6;

/// The classes of bytes, as the third, the second and the first of three count in the number of their classes together.
const LAST: [u8; 256] = classes(1);
const MIDDLE: [u8; 256] = classes(CLASSES as u8);
const FIRST: [u8; 256] = classes((CLASSES * CLASSES) as u8);

const fn classes(factor: u8) -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = factor * class(byte as u8);
        byte += 1;
    }
    classes
}

const fn class(byte: u8) -> u8 {
    match byte {
        b' '..=b'~' | b'\n' | b'\r' | b'\t' => PRINTABLE,
        0x80..=0xbf => GOES_ON,
        0xc2..=0xdf => BEGINS,
        0xe0..=0xef => BEGINS + 1,
        0xf0..=0xf4 => BEGINS + 2,
        _ => OTHER,
    }
}

/// What is known of the bytes so far: how many more belong to the last character, whether that is known to be none, and
/// whether there was something else that is no text.
const FOLLOW: u8 = 0b0011;
const BROKEN: u8 = 0b0100;
const FAULT: u8 = 0b1000;
/// There was nothing yet, and there were two faults: no other state has these numbers, since no character that is over is
/// broken.
const START: u8 = BROKEN;
const NO_TEXT: u8 = FAULT | BROKEN;
const STATES: usize = 16;
/// How many bits the number of three classes has.
const STEP: u32 = 8;

/// The state behind three bytes by the state before them.
static STEPS: [u8; STATES << STEP] = steps();

const fn steps() -> [u8; STATES << STEP] {
    let mut steps = [NO_TEXT; STATES << STEP];
    let mut state = 0;
    while state < STATES as u8 {
        // The first three bytes may be the rest of a character.
        let (at_start, before) = if state == START { (true, 0) } else { (false, state) };
        let mut three = 0;
        while three < CLASSES * CLASSES * CLASSES {
            let first = next(before, (three / CLASSES / CLASSES) as u8, at_start);
            let middle = next(first, (three / CLASSES % CLASSES) as u8, at_start);
            steps[(state as usize) << STEP | three] = next(middle, (three % CLASSES) as u8, at_start);
            three += 1;
        }
        state += 1;
    }
    steps
}

const fn next(state: u8, class: u8, at_start: bool) -> u8 {
    if state == NO_TEXT {
        return NO_TEXT;
    }
    let follow = state & FOLLOW;
    let (is_fault, next) = match (follow, class) {
        (0, PRINTABLE) => (false, 0),
        (0, GOES_ON) => (!at_start, 0),
        (0, OTHER) => (true, 0),
        (0, begins) => (false, begins - BEGINS + 1),
        (1, class) => (class != GOES_ON && state & BROKEN == 0, 0),
        (_, GOES_ON) => (false, state & BROKEN | (follow - 1)),
        (..) => (state & BROKEN == 0, BROKEN | (follow - 1)),
    };
    match (is_fault, state & FAULT) {
        (true, FAULT) => NO_TEXT,
        (true, _) => FAULT | next,
        (false, fault) => fault | next,
    }
}

/// Looks at a sample of bytes, first threes of them and then single ones. One of its characters may be no text, and the
/// first may be cut.
#[derive(Clone, Copy)]
pub(super) struct Like(u8);

impl Default for Like {
    fn default() -> Self {
        Self(START)
    }
}

impl Like {
    /// The next three bytes, in the lowest bits.
    pub(super) fn then(self, three: u32) -> Self {
        let [_, first, middle, last] = three.to_be_bytes();
        let classes = FIRST[usize::from(first)] + MIDDLE[usize::from(middle)] + LAST[usize::from(last)];
        Self(STEPS[usize::from(self.0 % STATES as u8) << STEP | usize::from(classes)])
    }

    /// The next byte, behind the first three.
    pub(super) fn then_one(self, byte: u8) -> Self {
        Self(next(self.0, class(byte), false))
    }

    /// Whether it may be text, all that was seen of it.
    pub(super) fn is_text(self) -> bool {
        self.0 != NO_TEXT
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goes from character to character.
    fn is_like_text(sample: &[u8]) -> bool {
        let mut rest = sample;
        let mut others = 0;
        while let Some((first, after)) = rest.split_first() {
            let follow = match first {
                b' '..=b'~' | b'\n' | b'\r' | b'\t' => 0,
                0xc2..=0xdf => 1,
                0xe0..=0xef => 2,
                0xf0..=0xf4 => 3,
                _ => {
                    others += usize::from(!(matches!(first, 0x80..=0xbf) && sample.len() - rest.len() < 3));
                    0
                }
            };
            let (bytes, after) = after.split_at(follow.min(after.len()));
            others += usize::from(bytes.iter().any(|byte| !matches!(byte, 0x80..=0xbf)));
            rest = after;
        }
        others <= 1
    }

    fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![any::<u8>(), Just(b'a'), 0x80_u8..0xc0, Just(0xc3), Just(0xe3), Just(0xf1)];
        proptest::collection::vec(byte, 3..24)
    }

    proptest! {
        #[test]
        fn samples_are_judged_as_by_a_walk_over_their_characters(sample in some_bytes()) {
            let (threes, rest) = sample.as_chunks::<3>();
            let number = |three: &[u8; 3]| u32::from_be_bytes([0, three[0], three[1], three[2]]);
            let like = threes.iter().fold(Like::default(), |like, three| like.then(number(three)));
            let like = rest.iter().fold(like, |like, byte| like.then_one(*byte));
            prop_assert_eq!(like.is_text(), is_like_text(&sample));
        }
    }
}
