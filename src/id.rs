//! Ids and times of events, made from a clock and randomness that are passed in.

use std::fmt;
use std::ops::Range;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

/// A UUIDv7 (RFC 9562 section 5.7) of an event, a connection or an exchange: 16 bytes, printed in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(uuid::Uuid);

impl Id {
    /// An id made at a time, from 74 random bits (the last 6 of `random` are not used).
    pub fn new(time: Timestamp, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(time.0, &random).into_uuid())
    }

    /// Reads an id in any of the spellings of a UUID.
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text).ok().map(Self)
    }

    /// An id of 16 bytes; none of any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        uuid::Uuid::from_slice(bytes).ok().map(Self)
    }

    /// Its 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// When the id was made.
    pub fn time(self) -> Timestamp {
        let (high, _) = self.0.as_u64_pair();
        Timestamp(high >> 16)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0.as_hyphenated(), f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = uuid::Uuid::encode_buffer();
        serializer.serialize_str(self.0.as_hyphenated().encode_lower(&mut buffer))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text(|text: &str| Self::parse(text).ok_or("a UUID")))
    }
}

/// Reads a text without a copy of it: events have many of these.
pub(crate) struct Text<F>(pub(crate) F);

impl<T, F: Fn(&str) -> Result<T, &'static str>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(|expected| E::custom(format_args!("expected {expected}")))
    }
}

/// A point in time in milliseconds since the Unix epoch, printed as RFC 3339 in UTC: `2026-11-22T00:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// The shape of a printed time; also what a time beyond the year 9999 is printed as.
const EPOCH: [u8; 24] = *b"1970-01-01T00:00:00.000Z";

impl Timestamp {
    /// Only the lower 48 bits are held, which last until the year 10889.
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis & 0xffff_ffff_ffff)
    }

    pub const fn unix_millis(self) -> u64 {
        self.0
    }

    /// Reads a time of RFC 3339.
    fn parse(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        u64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok().map(Self::from_unix_millis)
    }

    /// Reads a time as it is printed here, in a fraction of the time that any other takes: each event has one.
    fn parse_printed(text: &str) -> Option<Self> {
        let text: &[u8; 24] = text.as_bytes().try_into().ok()?;
        let is_shaped =
            |(byte, shape): (&u8, &u8)| byte == shape || byte.is_ascii_digit() && shape.is_ascii_digit();
        if !text.iter().zip(&EPOCH).all(is_shaped) {
            return None;
        }
        let value = |at: Range<usize>| {
            text[at].iter().fold(0_u16, |value, digit| value * 10 + u16::from(digit - b'0'))
        };
        let two = |at: usize| u8::try_from(value(at..at + 2)).ok();
        let date =
            Date::from_calendar_date(i32::from(value(0..4)), Month::try_from(two(5)?).ok()?, two(8)?).ok()?;
        let at = date.with_hms_milli(two(11)?, two(14)?, two(17)?, value(20..23)).ok()?.assume_utc();
        let seconds = u64::try_from(at.unix_timestamp()).ok()?;
        Some(Self::from_unix_millis(seconds * 1_000 + u64::from(at.millisecond())))
    }

    /// Prints into a buffer without the machinery of `fmt`, since every event passes here.
    fn print(self, out: &mut [u8; 24]) -> &str {
        *out = EPOCH;
        let seconds = i64::try_from(self.0 / 1000).unwrap_or_default();
        if let Ok(at) = OffsetDateTime::from_unix_timestamp(seconds) {
            let (year, month, day) = at.to_calendar_date();
            let (hour, minute, second) = at.to_hms();
            digits(&mut out[0..4], u64::from(year.unsigned_abs()));
            digits(&mut out[5..7], u64::from(u8::from(month)));
            digits(&mut out[8..10], u64::from(day));
            digits(&mut out[11..13], u64::from(hour));
            digits(&mut out[14..16], u64::from(minute));
            digits(&mut out[17..19], u64::from(second));
            digits(&mut out[20..23], self.0 % 1000);
        }
        std::str::from_utf8(out).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Self::parse_printed(text).or_else(|| Self::parse(text));
        deserializer.deserialize_str(Text(|text: &str| parse(text).ok_or("a time of RFC 3339 since 1970")))
    }
}

/// Fills `out` with the last decimal digits of `value`, zeros in front.
fn digits(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.print(&mut [0; 24]))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.print(&mut [0; 24]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_a_version_7_uuid_that_knows_its_time() {
        let time = Timestamp::from_unix_millis(1_645_557_742_000);
        let id = Id::new(time, [0xff; 10]);
        assert_eq!(id.to_string(), "017f22e2-79b0-7fff-bfff-ffffffffffff");
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{id}\""));
        assert_eq!(id.time(), time);
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let early = Id::new(Timestamp::from_unix_millis(1), [0xff; 10]);
        let late = Id::new(Timestamp::from_unix_millis(2), [0; 10]);
        assert!(early < late);
    }

    #[test]
    fn a_time_is_printed_as_rfc_3339_with_milliseconds() {
        let print = |millis| Timestamp::from_unix_millis(millis).to_string();
        assert_eq!(print(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(print(1_709_164_799_999), "2024-02-28T23:59:59.999Z");
        assert_eq!(print(1_709_164_800_007), "2024-02-29T00:00:00.007Z");
    }

    #[test]
    fn a_time_beyond_what_rfc_3339_can_say_does_not_break_the_line() {
        assert_eq!(Timestamp::from_unix_millis(u64::MAX).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_time_that_is_printed_otherwise_is_read_too_and_what_is_none_is_not() {
        let second = 1_709_164_799_000;
        for (text, millis) in [
            ("2024-02-28T23:59:59Z", Some(second)),
            ("2024-02-28T23:59:59.0007Z", Some(second)),
            ("2024-02-29T01:59:59.007+02:00", Some(second + 7)),
            ("2024-02-28t23:59:59.007z", Some(second + 7)),
            ("2016-12-31T23:59:60.500Z", Some(1_483_228_799_999)),
            ("1969-12-31T23:59:59.999Z", None),
            ("2023-02-29T00:00:00.000Z", None),
            ("2024-13-01T00:00:00.000Z", None),
            ("2024-02-28T24:00:00.000Z", None),
            ("2024-02-28 23:59:59.00 Z", None),
            ("", None),
        ] {
            let read: Result<Timestamp, _> = serde_json::from_value(text.into());
            assert_eq!(read.ok().map(Timestamp::unix_millis), millis, "{text}");
            let printed = Timestamp::parse_printed(text);
            assert!(printed.is_none() || printed == Timestamp::parse(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_until_the_year_9999_reads_back(millis in 0u64..253_402_300_799_999) {
            let text = Timestamp::from_unix_millis(millis).to_string();
            let read: Timestamp = serde_json::from_value(text.as_str().into()).unwrap();
            prop_assert_eq!(read.unix_millis(), millis);
            prop_assert_eq!(Timestamp::parse_printed(&text), Some(read));
            prop_assert_eq!(Timestamp::parse(&text), Some(read));
        }
    }
}
