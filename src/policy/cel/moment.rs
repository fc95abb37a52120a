//! Timestamps, durations and zones, as constants of expressions.

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Reads `2026-11-23T09:00:00Z` (RFC 3339).
pub(super) fn timestamp(text: &str) -> Result<OffsetDateTime, String> {
    let parsed = OffsetDateTime::parse(text, &Rfc3339).ok().filter(is_known);
    parsed.ok_or_else(|| {
        "is no timestamp; expected one as 2026-11-23T09:00:00Z, of the years 1 to 9999".to_owned()
    })
}

/// Whether it is of the years that CEL has.
pub(super) fn is_known(time: &OffsetDateTime) -> bool {
    (1..=9999).contains(&time.to_offset(UtcOffset::UTC).year())
}

/// Units of durations in nanoseconds, the longer names first.
const UNITS: [(&str, i128); 7] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// Reads `1h30m`, `-1.5s`, `250ms` (as Go writes durations), in nanoseconds.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    let wrong = || "is no duration; expected one as 1h30m, 90s or 250ms".to_owned();
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    let mut total: i128 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|digit: char| !digit.is_ascii_digit() && digit != '.').ok_or_else(wrong)?;
        let (number, after) = rest.split_at(end);
        let (unit, size) = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit)).ok_or_else(wrong)?;
        total = total.saturating_add(part(number, size).ok_or_else(wrong)?);
        rest = after.strip_prefix(unit).unwrap_or_default();
    }
    i64::try_from(sign * total).map_err(|_| "is longer than 292 years".to_owned())
}

/// A number with digits after its dot, of a unit.
fn part(number: &str, size: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() > 19 || fraction.len() > 18 || whole.len() + fraction.len() == 0 || fraction.contains('.')
    {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let below = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    digits(whole)?.checked_mul(size)?.checked_add(digits(fraction)?.checked_mul(size)? / below)
}

/// Reads `UTC` or `+01:00`. Names of places are not read: their rules change.
pub(super) fn zone(text: &str) -> Result<UtcOffset, String> {
    let wrong = || "is no zone here; expected \"UTC\" or an offset as \"+01:00\"".to_owned();
    if text == "UTC" {
        return Ok(UtcOffset::UTC);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, most: i8| {
        let is_short = text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_digit());
        text.parse::<i8>().ok().filter(|number| is_short && *number <= most).ok_or_else(wrong)
    };
    let (hours, minutes) = (number(hours, 14)?, number(minutes, 59)?);
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let second = 1_000_000_000;
        for (text, expected) in [
            ("90s", 90 * second),
            ("1h30m", 5_400 * second),
            ("-1.5s", -1_500_000_000),
            ("250ms", 250_000_000),
            ("0", 0),
            ("1.5h", 5_400 * second),
            (".5s", 500_000_000),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "5", "s", "1d", "1..5s", "9999999h", "99999999999999999999s", "1s ", "."] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zones_are_utc_or_offsets() {
        assert_eq!(zone("UTC"), Ok(UtcOffset::UTC));
        assert_eq!(zone("+01:00"), UtcOffset::from_hms(1, 0, 0).map_err(|_| String::new()));
        assert_eq!(zone("-02:30"), UtcOffset::from_hms(-2, -30, 0).map_err(|_| String::new()));
        for text in ["", "Europe/Berlin", "+1:00", "+15:00", "+01:60", "+-1:00", "01", "é1:00"] {
            assert!(zone(text).is_err(), "{text}");
        }
    }

    #[test]
    fn timestamps_are_of_the_years_that_cel_has() {
        assert!(
            timestamp("2026-11-23T09:00:00Z").is_ok() && timestamp("2026-11-23T09:00:00.5+01:00").is_ok()
        );
        for text in
            ["", "2026-11-23", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-13-01T00:00:00Z"]
        {
            assert!(timestamp(text).is_err(), "{text}");
        }
    }
}
