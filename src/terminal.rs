//! Makes texts fit for a terminal: whoever wrote them, they move no cursor, change no colour and hide nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text on one line: every character that a terminal would not simply show is escaped as `\u{1b}`: controls, line
/// breaks, what changes the direction of writing, and what is invisible.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_shown(c) {
            plain.push(c);
        } else {
            plain.extend(c.escape_debug());
        }
    }
    Cow::Owned(plain)
}

/// The same of a text of several lines, with tabs.
pub(crate) fn plain_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let end = part.len() - usize::from(part.ends_with(['\n', '\t']));
        lines.push_str(&plain(&part[..end]));
        lines.push_str(&part[end..]);
    }
    lines
}

/// JSON that means the same, in which such characters are escaped.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    escaped(json, |fit, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(fit, "\\u{unit:04x}");
        }
    })
}

/// The same of JSON that is read as YAML, where no two escapes make one character.
pub(crate) fn json_as_yaml(json: &str) -> Cow<'_, str> {
    escaped(json, |fit, c| {
        // Writing to a String cannot fail.
        let _ = write!(fit, "\\U{:08x}", u32::from(c));
    })
}

/// Whether a text of several lines, with tabs, has no such character.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\n' | '\t') || is_shown(c))
}

/// In JSON such characters stand in texts alone.
fn escaped(json: &str, mut escape: impl FnMut(&mut String, char)) -> Cow<'_, str> {
    let is_fit = |c: char| c == '\n' || is_shown(c);
    if json.chars().all(is_fit) {
        return Cow::Borrowed(json);
    }
    let mut fit = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_fit(c) || c == '\t' || c == '\r' {
            fit.push(c);
        } else {
            escape(&mut fit, c);
        }
    }
    Cow::Owned(fit)
}

/// Whether a terminal shows a character and does nothing else with it. The standard library knows which are printable;
/// of those that it escapes, quotes and backslashes are.
fn is_shown(c: char) -> bool {
    matches!(c, ' '..='~') || (!c.is_ascii() && c.escape_debug().len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (text, fit) in [
            ("rm -rf \"/\" 'x' \\", "rm -rf \"/\" 'x' \\"),
            ("größe 删除 …", "größe 删除 …"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("a\r\nb\tc\0\u{7f}", "a\\r\\nb\\tc\\0\\u{7f}"),
            ("\u{9b}2J\u{85}", "\\u{9b}2J\\u{85}"),
            ("a\u{202e}b\u{2066}\u{200b}\u{2028}\u{feff}", "a\\u{202e}b\\u{2066}\\u{200b}\\u{2028}\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(plain(text), fit);
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(plain_lines("a\n\tb\u{1b}\nc"), "a\n\tb\\u{1b}\nc");
        assert_eq!(plain_lines(""), "");
    }

    #[test]
    fn json_keeps_its_meaning() {
        for text in ["a\u{9b}\u{7f}\u{202e}b", "\u{e0041}x", "plain"] {
            let value = serde_json::json!({ text: [text] });
            let fit = json(&serde_json::to_string_pretty(&value).unwrap()).into_owned();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&fit).unwrap(), value);
            assert!(fit.chars().all(|c| c == '\n' || is_shown(c)), "{fit}");
        }
    }
}
