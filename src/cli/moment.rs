//! A time on the command line.

use std::time::Duration;

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime};

/// A time on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    Ago(Duration),
    At(OffsetDateTime),
}

/// Reads a time; a date is its beginning in UTC.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    let ago = || {
        let number: u64 = text.get(..text.len().checked_sub(1)?)?.parse().ok()?;
        let seconds = match text.chars().next_back()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        // A century is before any event.
        number.checked_mul(seconds).filter(|seconds| *seconds < 100 * 366 * 86_400).map(Duration::from_secs)
    };
    let date = || {
        let date = Date::parse(text, time::macros::format_description!("[year]-[month]-[day]")).ok()?;
        Some(date.midnight().assume_utc())
    };
    let at = || OffsetDateTime::parse(text, &Rfc3339).ok().or_else(date).map(Moment::At);
    ago()
        .map(Moment::Ago)
        .or_else(at)
        .ok_or_else(|| "a time is 90s, 10m, 2h or 3d (ago), 2026-11-22, or 2026-11-22T10:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_a_date_or_rfc_3339() {
        assert_eq!(moment("90s"), Ok(Moment::Ago(Duration::from_secs(90))));
        assert_eq!(moment("3d"), Ok(Moment::Ago(Duration::from_secs(3 * 86_400))));
        assert_eq!(moment("2026-11-22"), moment("2026-11-22T00:00:00Z"));
        assert!(moment("2026-11-22T01:00:00+01:00").is_ok());
        for bad in ["", "s", "10", "-1m", "10é", "99999999999999d", "2026-13-01", "yesterday"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
