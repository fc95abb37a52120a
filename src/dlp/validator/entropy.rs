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
        let count = |is: fn(&u8) -> bool| text.iter().filter(|byte| is(byte)).count();
        Self {
            upper: count(u8::is_ascii_uppercase),
            lower: count(u8::is_ascii_lowercase),
            digits: count(u8::is_ascii_digit),
        }
    }

    /// Whether it has letters and digits, or letters of both cases, several of each.
    pub(super) fn are_mixed(&self) -> bool {
        [self.upper, self.lower, self.digits].iter().filter(|count| **count >= 2).count() >= 2
    }
}
