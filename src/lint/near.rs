//! Tells texts that differ by one letter, as typing errors do.

/// Whether one letter was left out, added, replaced, or swapped with the next. Digits are no typing errors: `api2` and
/// `api` are two hosts.
pub(super) fn is_near(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let (short, long) = (short.as_bytes(), long.as_bytes());
    let start = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[start..], &long[start..]);
    let end = short.iter().rev().zip(long.iter().rev()).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[..short.len() - end], &long[..long.len() - end]);
    let is_letter = |byte: &u8| !byte.is_ascii_digit() && *byte != b'.';
    match (short, long) {
        ([], [added]) => is_letter(added),
        ([old], [new]) => is_letter(old) && is_letter(new),
        ([a, b], [c, d]) => a == d && b == c && is_letter(a) && is_letter(b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_is_near_and_a_digit_is_another_name() {
        for near in ["api.antropic.com", "api.anthropicc.com", "api.anthropix.com", "api.anthorpic.com"] {
            assert!(is_near(near, "api.anthropic.com") && is_near("api.anthropic.com", near), "{near}");
        }
        for far in ["api.anthropic.com", "api2.anthropic.com", "api.anthropic.comm.x", "ap.antropic.com", ""]
        {
            assert!(!is_near(far, "api.anthropic.com"), "{far}");
        }
        assert!(is_near("api.openai.co", "api.openai.com") && !is_near("api-openai.com", "api.openai.com"));
    }
}
