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
/// There were two faults: it is no text. No other state has this number, since a character without more bytes is not broken.
const NO_TEXT: u8 = FAULT | BROKEN;
const STATES: usize = 16;
/// How many bits the number of three classes has.
const STEP: u32 = 8;

/// The state behind three bytes by the state before them.
static STEPS: [u8; STATES << STEP] = steps(false);
/// The same at the beginning of a sample: the bytes may be the rest of a character.
static STARTS: [u8; STATES << STEP] = steps(true);

const fn steps(at_start: bool) -> [u8; STATES << STEP] {
    let mut steps = [NO_TEXT; STATES << STEP];
    let mut state = 0;
    while state < STATES {
        let mut three = 0;
        while three < CLASSES * CLASSES * CLASSES {
            let first = next(state as u8, (three / CLASSES / CLASSES) as u8, at_start);
            let middle = next(first, (three / CLASSES % CLASSES) as u8, at_start);
            steps[state << STEP | three] = next(middle, (three % CLASSES) as u8, at_start);
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

/// Looks at a sample of bytes. One byte of it, or one character, may be no text.
#[derive(Clone, Copy)]
pub(super) struct Like(u8);

impl Like {
    /// The first three bytes, in the lowest bits.
    pub(super) fn start(three: u32) -> Self {
        Self(step(&STARTS, 0, three))
    }

    /// The next three bytes.
    pub(super) fn then(self, three: u32) -> Self {
        Self(step(&STEPS, self.0, three))
    }

    /// Whether it may be text, all that was seen of it.
    pub(super) fn is_text(self) -> bool {
        self.0 != NO_TEXT
    }
}

fn step(steps: &[u8; STATES << STEP], state: u8, three: u32) -> u8 {
    let [_, first, middle, last] = three.to_be_bytes();
    let classes = FIRST[usize::from(first)] + MIDDLE[usize::from(middle)] + LAST[usize::from(last)];
    steps[usize::from(state % STATES as u8) << STEP | usize::from(classes)]
}

/// Whether text may begin like this, a sample of decoded bytes: the first may be the rest of a character, one may be no
/// text.
pub(super) fn is_like_text(sample: &[u8]) -> bool {
    let (threes, rest) = sample.as_chunks::<3>();
    let number = |three: &[u8; 3]| u32::from_be_bytes([0, three[0], three[1], three[2]]);
    let mut steps = &STARTS;
    let mut state = 0;
    for three in threes {
        state = step(steps, state, number(three));
        if state == NO_TEXT {
            return false;
        }
        steps = &STEPS;
    }
    // What is printable behind the end changes nothing: a character may be cut there.
    let at_start = threes.is_empty();
    rest.iter().fold(state, |state, byte| next(state, class(*byte), at_start)) != NO_TEXT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, character by character.
    fn is_like_text_slowly(sample: &[u8]) -> bool {
        let mut rest = sample;
        let mut others = 0;
        while let Some((first, after)) = rest.split_first() {
            let follow = match class(*first) {
                PRINTABLE => 0,
                GOES_ON if sample.len() - rest.len() < 3 => 0,
                GOES_ON | OTHER => {
                    others += 1;
                    0
                }
                begins => usize::from(begins - BEGINS) + 1,
            };
            let (bytes, after) = after.split_at(follow.min(after.len()));
            others += usize::from(bytes.iter().any(|byte| class(*byte) != GOES_ON));
            rest = after;
        }
        others <= 1
    }

    proptest! {
        #[test]
        fn samples_are_judged_as_by_a_walk_over_their_characters(
            sample in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(b'a'), 0x80_u8..0xc0, Just(0xc3), Just(0xe3), Just(0xf1)],
                0..24,
            ),
        ) {
            let expected = is_like_text_slowly(&sample);
            prop_assert_eq!(is_like_text(&sample), expected);
            if let (Some((first, rest)), []) = (sample.as_chunks::<3>().0.split_first(), sample.as_chunks::<3>().1) {
                let number = |three: &[u8; 3]| u32::from_be_bytes([0, three[0], three[1], three[2]]);
                let like = rest.iter().fold(Like::start(number(first)), |like, three| like.then(number(three)));
                prop_assert_eq!(like.is_text(), expected);
            }
        }
    }
}
