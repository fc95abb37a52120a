//! Counts lines, and writes numbers and sizes for people.

/// How many lines a text has. What follows the last line break is one.
pub(super) fn lines(text: &str) -> usize {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The lines of a text without their breaks, as [`str::lines`] has them in more time.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut breaks = memchr::memchr_iter(b'\n', text.as_bytes());
    let mut from = 0;
    std::iter::from_fn(move || {
        let to = match breaks.next() {
            Some(to) => to,
            None if from < text.len() => text.len(),
            None => return None,
        };
        let line = text.get(from..to)?;
        from = to + 1;
        Some(if to < text.len() { line.strip_suffix('\r').unwrap_or(line) } else { line })
    })
}

/// Whether a text has more lines than this; the rest is not read.
pub(super) fn has_more_lines(text: &str, most: usize) -> bool {
    match memchr::memchr_iter(b'\n', text.as_bytes()).nth(most.saturating_sub(1)) {
        // The last of them that are allowed: anything behind it is one more.
        Some(at) if most > 0 => at + 1 < text.len(),
        Some(_) => true,
        None => most == 0 && !text.is_empty(),
    }
}

/// A number with a comma between thousands.
pub(super) fn number(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A size in bytes, kilobytes or megabytes of a thousand.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", (bytes + 500) / 1_000),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_with_and_without_a_break_at_the_end() {
        for (text, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("\n\nb", 3)] {
            assert_eq!(lines(text), count, "{text:?}");
            for most in 0..5 {
                assert_eq!(has_more_lines(text, most), count > most, "{text:?} {most}");
            }
        }
    }

    #[test]
    fn a_text_is_split_as_the_standard_library_does_it() {
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "a\nb",
            "\n\na",
            "a\r\nb\r\n",
            "a\r",
            "\r\n",
            "\r\r\n\r",
            "\u{e9}\n\u{1f600}",
        ] {
            assert!(split(text).eq(text.lines()), "{text:?}");
        }
    }

    #[test]
    fn numbers_and_sizes_are_short() {
        assert_eq!(number(7), "7");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_842), "1,842");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(61_400), "61 KB");
        assert_eq!(size(29_960_000), "29.9 MB");
    }
}
