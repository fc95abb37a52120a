//! Writes messages in which every name is a text: whoever chose it, it is no link, no markup and no placeholder.

use crate::terminal;

/// The longest name or reason that a message shows, in characters.
const SHOWN: usize = 256;

/// A sentence of our words and of texts that others chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Ours(&'static str),
    /// On one line and of a bounded length.
    Foreign(String),
}

impl Message {
    pub(super) fn ours(mut self, words: &'static str) -> Self {
        self.parts.push(Part::Ours(words));
        self
    }

    pub(super) fn foreign(mut self, text: &str) -> Self {
        self.parts.push(Part::Foreign(terminal::plain(&shortened(text)).into_owned()));
        self
    }

    /// As plain text. SARIF has links and placeholders even there (3.11.5, 3.11.6), so that their characters are escaped;
    /// and `](` is parted for viewers that do not know the escapes.
    pub(super) fn text(&self) -> String {
        self.joined(|text, foreign| {
            for c in foreign.replace("](", "] (").chars() {
                match c {
                    '\\' | '[' | ']' => text.extend(['\\', c]),
                    '{' | '}' => text.extend([c, c]),
                    c => text.push(c),
                }
            }
        })
    }

    /// As Markdown. Texts of others are code, in which nothing is markup: no link, no mention, no HTML (CommonMark 6.1).
    pub(super) fn markdown(&self) -> String {
        self.joined(|markdown, foreign| {
            let fence = "`".repeat(1 + longest_run(foreign));
            // A space on both sides is taken off again.
            let pad = if foreign.starts_with(['`', ' ']) || foreign.ends_with(['`', ' ']) { " " } else { "" };
            markdown.extend([&fence, pad, foreign, pad, &fence]);
        })
    }

    fn joined(&self, write: impl Fn(&mut String, &str)) -> String {
        let mut joined = String::new();
        for part in &self.parts {
            match part {
                Part::Ours(words) => joined.push_str(words),
                Part::Foreign(text) if text.is_empty() => {}
                Part::Foreign(text) => write(&mut joined, text),
            }
        }
        joined
    }
}

/// A text, `…` where it was cut.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(foreign: &str) -> Message {
        Message::default().ours("Tool call ").foreign(foreign).ours(" was denied.")
    }

    #[test]
    fn a_name_is_no_link_and_no_placeholder_of_plain_text() {
        for (name, text) in [
            ("Bash", "Bash"),
            ("[x](https://evil.example)", r"\[x\] (https://evil.example)"),
            ("{0} {{1}}", "{{0}} {{{{1}}}}"),
            (r"a\[b](1)", r"a\\\[b\] (1)"),
            ("a\nb\u{202e}", r"a\\nb\\u{{202e}}"),
        ] {
            assert_eq!(message(name).text(), format!("Tool call {text} was denied."));
        }
    }

    #[test]
    fn a_name_is_code_in_markdown() {
        for (name, code) in [
            ("Bash", "`Bash`"),
            ("<img src=x> @you #1 www.evil.example", "`<img src=x> @you #1 www.evil.example`"),
            ("a`b", "``a`b``"),
            ("`x``", "``` `x`` ```"),
            (" x ", "`  x  `"),
            ("", ""),
        ] {
            assert_eq!(message(name).markdown(), format!("Tool call {code} was denied."));
        }
        let fenced = message("a\n\n```\n# heading").markdown();
        assert_eq!(fenced, "Tool call ````a\\n\\n```\\n# heading```` was denied.");
    }

    #[test]
    fn a_long_name_is_cut() {
        let text = message(&"ä".repeat(10_000)).text();
        assert_eq!(text.chars().count(), "Tool call … was denied.".chars().count() + SHOWN);
    }
}
