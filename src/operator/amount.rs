//! Amounts of CPU, memory and storage, as Kubernetes writes them: `250m`, `2`, `64Mi`.

use std::fmt;

/// The resources that a LimitRange, autoscalers and annotations may set for Postern's containers. Every other resource
/// is a device, which can change what runs beside it.
pub(super) const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// An amount, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Amount(u128);

/// The suffixes, each with its factor in thousandths.
const SUFFIXES: [(&str, u128); 13] = [
    ("Ki", 1000 << 10),
    ("Mi", 1000 << 20),
    ("Gi", 1000 << 30),
    ("Ti", 1000 << 40),
    ("Pi", 1000 << 50),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000),
    ("", 1000),
];

/// More digits than an amount of anything has.
const MOST_DIGITS: usize = 18;

/// A text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoAmount;

impl fmt::Display for NoAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an amount such as 250m, 2 or 64Mi")
    }
}

impl Amount {
    /// Reads digits with an optional fraction and a suffix. Exponents are not accepted.
    pub(super) fn parse(text: &str) -> Result<Self, NoAmount> {
        let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (_, unit) = SUFFIXES.iter().find(|(known, _)| *known == suffix).ok_or(NoAmount)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit()) && !whole.is_empty();
        if !is_plain || whole.len() + fraction.len() > MOST_DIGITS {
            return Err(NoAmount);
        }
        let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| NoAmount)?;
        let scale = fraction.bytes().fold(1_u128, |scale, _| scale * 10);
        // Fractions of a thousandth are rounded up, as in Kubernetes.
        Ok(Self((digits * unit).div_ceil(scale)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_compared_whatever_their_suffixes() {
        let read = |text: &str| Amount::parse(text).unwrap();
        for (less, more) in
            [("250m", "1"), ("64Mi", "1Gi"), ("64M", "64Mi"), ("0.5", "501m"), ("0", "1m"), ("999Ti", "1Pi")]
        {
            assert!(read(less) < read(more), "{less} {more}");
        }
        for (one, other) in
            [("0.5", "500m"), ("1Gi", "1024Mi"), ("1.5Gi", "1536Mi"), ("1000", "1k"), ("0.0001", "1m")]
        {
            assert_eq!(read(one), read(other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "m",
            "-1",
            "+1",
            "1 Gi",
            "1gi",
            "1e3",
            "1.2.3",
            ".5",
            "1KiB",
            "٣",
            "1\0",
            "9999999999999999999",
        ] {
            assert_eq!(Amount::parse(text), Err(NoAmount), "{text:?}");
        }
    }
}
