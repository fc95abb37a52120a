//! How random a text looks.

/// Shannon's entropy of the bytes of a text, in bits a byte.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let length = text.len() as f64;
    let share = |count: u32| {
        let p = f64::from(count) / length;
        -p * p.log2()
    };
    // Few bytes stand there more often.
    let often: [f64; OFTEN] = std::array::from_fn(|count| if count == 0 { 0.0 } else { share(count as u32) });
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| often.get(*count as usize).copied().unwrap_or_else(|| share(*count)))
        .sum()
}

const OFTEN: usize = 4;

/// How many letters of each case and digits a text has.
pub(super) struct Classes {
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) digits: usize,
}

impl Classes {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut classes = Self { upper: 0, lower: 0, digits: 0 };
        // Narrow sums, so that compilers make it a few wide instructions.
        for few in text.chunks(32) {
            let count = |from: u8, many: u8| -> usize {
                few.iter().map(|byte| u8::from(byte.wrapping_sub(from) < many)).sum::<u8>().into()
            };
            classes.upper += count(b'A', 26);
            classes.lower += count(b'a', 26);
            classes.digits += count(b'0', 10);
        }
        classes
    }

    /// Whether it has letters and digits, or letters of both cases, several of each.
    pub(super) fn are_mixed(&self) -> bool {
        [self.upper, self.lower, self.digits].iter().filter(|count| **count >= 2).count() >= 2
    }
}
