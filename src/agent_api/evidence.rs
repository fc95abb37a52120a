//! Which lines of a kept text an agent asks for, and what it is told. Pure.

use std::borrow::Cow;

use crate::wire::percent;

/// The longest excerpt, in bytes; a text that is asked for as a whole is told as a whole.
pub const MOST_EXCERPT: usize = 1 << 20;
/// The same of a tool, whose answers are read by a model.
pub const MOST_TOLD: usize = 256 << 10;

/// How texts that were cut out of requests may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceAccess {
    /// None is kept.
    None,
    Http,
    /// By HTTP, and by a tool of `/mcp`.
    ToolToo,
}

/// Why a text is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTold {
    Unknown,
    /// The disk did not answer in time.
    Late,
    /// Too much is held in memory at this moment.
    Busy,
}

/// What is said of a text that is not kept.
pub(super) const UNKNOWN: &str = "No text with this id is kept: it was never cut here, or no request has carried it for too \
                                  long; the next request that carries it brings it back";

impl NotTold {
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Unknown => 404,
            Self::Late | Self::Busy => 503,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Unknown => UNKNOWN,
            Self::Late => "The text was not read in time: ask again",
            Self::Busy => "Too much is held in memory at this moment: ask again",
        }
    }
}

/// Lines of a text, numbered from 1, the last one included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    from: usize,
    to: usize,
    /// A text that they must contain; they are told with their numbers.
    matching: Option<String>,
}

impl Lines {
    /// # Errors
    /// No line can be meant.
    pub(super) fn new(
        from: Option<usize>,
        to: Option<usize>,
        matching: Option<String>,
    ) -> Result<Self, &'static str> {
        let (from, to) = (from.unwrap_or(1), to.unwrap_or(usize::MAX));
        match matching {
            _ if from == 0 || to == 0 => Err("Lines are numbered from 1"),
            _ if from > to => Err("`to` is a line before `from`"),
            Some(text) if text.is_empty() => Err("`match` is empty"),
            matching => Ok(Self { from, to, matching }),
        }
    }

    /// Reads `from=&to=&match=`; none where nothing is asked for, which is the whole text. A value that is empty counts as
    /// not given, since that is how the address is written down.
    ///
    /// # Errors
    /// In words.
    pub(super) fn of_query(query: &str) -> Result<Option<Self>, &'static str> {
        let (mut from, mut to, mut matching) = (None, None, None);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let slot = match key {
                "from" => &mut from,
                "to" => &mut to,
                "match" => &mut matching,
                _ => return Err("`from`, `to` and `match` are read here, and nothing else"),
            };
            if slot.is_some() {
                return Err("`from`, `to` and `match` may each be given once");
            }
            *slot = Some(value);
        }
        let number = |value: Option<&str>| match value {
            None | Some("") => Ok(None),
            Some(digits) => digits.parse().map(Some).map_err(|_| "`from` and `to` are numbers of lines"),
        };
        let matching = matching.filter(|text| !text.is_empty()).map(decoded).transpose()?;
        let (from, to) = (number(from)?, number(to)?);
        if from.is_none() && to.is_none() && matching.is_none() {
            return Ok(None);
        }
        Self::new(from, to, matching).map(Some)
    }
}

/// A value of a form (`+` is a space).
fn decoded(value: &str) -> Result<String, &'static str> {
    let spaced: Cow<'_, str> = value.replace('+', " ").into();
    let bytes = percent::decode(spaced.as_bytes()).into_owned();
    String::from_utf8(bytes).map_err(|_| "`match` is no UTF-8")
}

/// These lines as they stand in the text; with `match` each behind its number. At most about `most` bytes: where it ends
/// before the text does, a line says so.
///
/// # Errors
/// The text ends before them, in words.
pub(super) fn excerpt(text: &str, lines: &Lines, most: usize) -> Result<String, String> {
    let total = text.split_inclusive('\n').count();
    if lines.from > total.max(1) {
        return Err(format!("The text has {total} lines"));
    }
    let mut told = String::new();
    let wanted = text.split_inclusive('\n').zip(1..).skip(lines.from - 1);
    for (line, number) in wanted.take_while(|(_, number)| *number <= lines.to) {
        let piece = match &lines.matching {
            None => Cow::Borrowed(line),
            Some(text) if line.contains(text.as_str()) => Cow::Owned(format!("{number}: {line}")),
            Some(_) => continue,
        };
        if told.len() + piece.len() <= most {
            told.push_str(&piece);
        } else if told.is_empty() {
            told.push_str(beginning(&piece, most));
            told.push_str(&format!("\n[postern] Line {number} is longer than is told at a time.\n"));
        } else {
            told.push_str(&format!("[postern] There is more: ask again from line {number}.\n"));
            break;
        }
    }
    Ok(told)
}

/// The beginning of a text, of so many bytes at most.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\r\ntwo\n\nfour \u{e9}\nfive";

    fn told(query: &str) -> Result<String, String> {
        let lines = Lines::of_query(query).map_err(str::to_owned)?;
        lines.map_or_else(|| Ok(TEXT.to_owned()), |lines| excerpt(TEXT, &lines, 1_000))
    }

    #[test]
    fn lines_are_told_as_they_stand_and_numbered_where_they_were_searched() {
        for (query, text) in [
            ("", TEXT),
            ("from=&to=&match=", TEXT),
            ("from=1&to=1", "one\r\n"),
            ("from=4", "four \u{e9}\nfive"),
            ("to=2", "one\r\ntwo\n"),
            ("from=3&to=3", "\n"),
            ("from=5&to=999", "five"),
            ("match=o", "1: one\r\n2: two\n4: four \u{e9}\n"),
            ("match=o&from=2&to=3", "2: two\n"),
            ("match=r+%C3%A9", "4: four \u{e9}\n"),
            ("match=.*", ""),
        ] {
            assert_eq!(told(query).as_deref(), Ok(text), "{query}");
        }
    }

    #[test]
    fn a_question_that_means_no_line_is_told_why() {
        for (query, why) in [
            ("from=0", "from 1"),
            ("from=3&to=2", "before"),
            ("from=-1", "numbers"),
            ("from=x", "numbers"),
            ("to=99999999999999999999999", "numbers"),
            ("from=1&from=2", "once"),
            ("line=1", "nothing else"),
            ("match=%FF", "UTF-8"),
            ("from=6", "has 5 lines"),
        ] {
            let error = told(query).unwrap_err();
            assert!(error.contains(why), "{query}: {error}");
        }
    }

    #[test]
    fn what_is_too_long_says_where_to_go_on() {
        let lines = |from| Lines::new(Some(from), None, None).unwrap();
        let first = excerpt("aaa\nbbb\nccc\n", &lines(1), 9).unwrap();
        assert_eq!(first, "aaa\nbbb\n[postern] There is more: ask again from line 3.\n");
        assert_eq!(excerpt("aaa\nbbb\nccc\n", &lines(3), 9).unwrap(), "ccc\n");
        let long = excerpt("\u{e9}\u{e9}\u{e9}\nb\n", &lines(1), 5).unwrap();
        assert!(long.starts_with("\u{e9}\u{e9}\n[postern] Line 1 is longer"), "{long}");
        assert!(long.ends_with("again from line 2.\n"), "{long}");
        assert_eq!(excerpt("", &lines(1), 9).as_deref(), Ok(""));
    }
}
