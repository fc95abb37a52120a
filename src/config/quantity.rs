//! Durations (`30s`, `1h30m`, `7d`) and sizes (`32MiB`, plain numbers) as users write them.

use std::time::Duration;

/// Far beyond any sensible setting, and far below what clocks overflow at.
const MAX_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// Reads one or more whole numbers, each with its unit: `ms`, `s`, `m`, `h` or `d`. At most ten years.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a duration like 500ms, 30s, 15m, 1h30m or 7d, found {text:?}");
    let mut rest = text;
    let mut milliseconds = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*factor)).ok_or_else(wrong)?;
        milliseconds = milliseconds.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    let duration = Duration::from_millis(milliseconds);
    match (text.is_empty(), duration > MAX_DURATION) {
        (true, _) => Err(wrong()),
        (false, true) => Err(format!("{text} is more than ten years")),
        (false, false) => Ok(duration),
    }
}

/// Reads a number of bytes: a whole number, or one with `KiB`, `MiB`, `GiB` or `TiB` (powers of 1,024).
pub fn size(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("expected a size like 64KiB, 32MiB, 1GiB or a plain number of bytes, found {text:?}");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    if unit.is_empty() {
        return Ok(number);
    }
    let (_, shift) = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is more than can be counted"))
}

/// Writes a duration in the largest unit that holds it without a fraction.
pub fn written(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let (unit, factor) = UNITS
        .iter()
        .rev()
        .find(|(_, factor)| milliseconds != 0 && milliseconds.is_multiple_of(u128::from(*factor)))
        .unwrap_or(&UNITS[0]);
    format!("{}{unit}", milliseconds / u128::from(*factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up_their_parts() {
        for (text, seconds) in [("30s", 30), ("15m", 900), ("1h30m", 5_400), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(duration("1s500ms").unwrap(), Duration::from_millis(1_500));
    }

    #[test]
    fn a_duration_needs_a_unit_that_exists() {
        for text in ["", "30", "s", "1.5s", "-1s", "30 s", "30S", "1w", "1h30", "99999999999999999999s"] {
            assert!(duration(text).unwrap_err().contains("expected a duration"), "{text}");
        }
        assert!(duration("4000d").unwrap_err().contains("ten years"));
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in
            [("0", 0), ("65536", 65_536), ("64KiB", 65_536), ("1GiB", 1 << 30), ("2TiB", 2 << 40)]
        {
            assert_eq!(size(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn a_size_of_another_unit_is_refused() {
        for text in ["", "MiB", "1MB", "1k", "1.5MiB", "-1", "1 MiB", "99999999999TiB"] {
            size(text).unwrap_err();
        }
    }

    #[test]
    fn a_duration_is_written_as_it_is_read() {
        for text in ["500ms", "30s", "15m", "1h", "7d", "90m", "0ms"] {
            assert_eq!(written(duration(text).unwrap()), text);
        }
    }
}
