//! A first look at a text: few places of it could be a form's, and most are passed over four bytes at a time.

/// How many bytes are looked at together.
const GRAM: usize = 4;
/// Every so many bytes are looked at; every form has so many grams, so that one of them is met wherever it begins.
const STRIDE: usize = 4;
/// How many bytes of a form the sieve knows.
pub(super) const KNOWN: usize = GRAM + STRIDE - 1;
/// How many bytes are passed over with one branch.
const TOGETHER: usize = 4 * STRIDE;
/// The logarithm of how many bits a sieve has: it stays in the nearest cache.
const BITS: u32 = 16;
const WORDS: usize = 1 << (BITS - u64::BITS.ilog2());

/// Knows the first bytes of each form, in any case.
pub(super) struct Sieve {
    /// The grams of the first bytes, wherever they stand in these.
    any: Box<[u64; WORDS]>,
    /// The first gram of each.
    first: Box<[u64; WORDS]>,
}

impl Sieve {
    pub(super) fn of<'a>(forms: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut sieve = Self { any: Box::new([0; WORDS]), first: Box::new([0; WORDS]) };
        for form in forms {
            for (at, gram) in form.windows(GRAM).take(STRIDE).enumerate() {
                set(&mut sieve.any, gram_of(gram));
                if at == 0 {
                    set(&mut sieve.first, gram_of(gram));
                }
            }
        }
        sieve
    }

    /// The next place, from there on, at which a form could stand that is written as it is.
    pub(super) fn next(&self, text: &[u8], mut from: usize) -> Option<usize> {
        loop {
            // Of each form that is whole and begins from here on, a gram is looked at; it may begin up to three bytes in front.
            let at = self.hit(text, from)?;
            let begin = at.saturating_sub(STRIDE - 1).max(from);
            if let Some(start) = (begin..=at).find(|start| self.may_begin(text, *start)) {
                return Some(start);
            }
            from = at + 1;
        }
    }

    /// The first place of every fourth at which a gram of a form stands.
    fn hit(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let mut chunks = rest.chunks_exact(TOGETHER);
        let mut passed = 0;
        for chunk in chunks.by_ref() {
            // No branch for each: few have one.
            let hits = chunk
                .chunks_exact(STRIDE)
                .fold(0, |hits, gram| hits | bit(&self.any, places(gram_of(gram))[0]));
            if hits & 1 != 0 {
                let met = chunk.chunks_exact(STRIDE).position(|gram| has(&self.any, gram_of(gram)));
                if let Some(step) = met {
                    return Some(from + passed + step * STRIDE);
                }
            }
            passed += TOGETHER;
        }
        let met = chunks.remainder().chunks_exact(STRIDE).position(|gram| has(&self.any, gram_of(gram)));
        met.map(|step| from + passed + step * STRIDE)
    }

    /// Whether a form could begin there with its first bytes as they are.
    pub(super) fn may_begin(&self, text: &[u8], start: usize) -> bool {
        text.get(start..start + GRAM).is_some_and(|gram| has(&self.first, gram_of(gram)))
    }
}

/// Four bytes; the case of letters makes no difference.
fn gram_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default()) | 0x2020_2020
}

/// The two bits of a gram (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970).
fn places(gram: u32) -> [usize; 2] {
    let spread = u64::from(gram).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(spread >> (u64::BITS - BITS)) as usize, (spread >> (u64::BITS - 2 * BITS)) as usize & ((1 << BITS) - 1)]
}

fn set(bits: &mut [u64; WORDS], gram: u32) {
    for place in places(gram) {
        bits[place / 64] |= 1 << (place % 64);
    }
}

/// The bit of a place, as the lowest of these.
fn bit(bits: &[u64; WORDS], place: usize) -> u64 {
    bits[place / 64 % WORDS] >> (place % 64)
}

fn has(bits: &[u64; WORDS], gram: u32) -> bool {
    let [one, other] = places(gram);
    bit(bits, one) & bit(bits, other) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_found_at_every_place() {
        let sieve = Sieve::of([&b"blue-bicycle"[..], b"monday12"].into_iter());
        for before in 0..40 {
            for form in ["blue-bicycle", "BLUE-bicycle", "monday12"] {
                let text = format!("{}{form} and more", "-".repeat(before));
                assert_eq!(sieve.next(text.as_bytes(), 0), Some(before), "{text}");
                assert_eq!(sieve.next(form.as_bytes(), 0), Some(0));
            }
        }
        assert_eq!(sieve.next(&[0; 100], 0), None);
        assert_eq!(sieve.next(b"blu", 0), None);
    }
}
