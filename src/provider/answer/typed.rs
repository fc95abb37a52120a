//! Keeps what calls type into programs that run, as far as its line has not ended: a later call ends it, of the same answer
//! or of one that follows.

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde_json::Value;

use crate::call::Input;
use crate::provider::kind;

/// What was typed lately, by conversation and program; shared by all exchanges. What is kept is bounded, and for every
/// piece of a line that was kept too short its call was opaque.
#[derive(Debug, Clone)]
pub struct TypedLines(Arc<Cache<String, Vec<String>>>);

/// The most programs whose lines are kept.
const MOST_PROGRAMS: usize = 64;

/// The longest line that is kept: a byte more than what is read of a command.
const MOST_BYTES: usize = (64 << 10) + 1;

/// The most pieces of a line that are told apart.
const MOST_PIECES: usize = 8;

/// Parameters that name the program that is typed into.
const PROGRAMS: &[&str] = &[
    "session_id",
    "sessionId",
    "id",
    "pid",
    "shell_id",
    "shellId",
    "terminal_id",
    "terminalId",
    "process_id",
];

impl Default for TypedLines {
    fn default() -> Self {
        Self(Arc::new(Cache::new(MOST_PROGRAMS)))
    }
}

impl TypedLines {
    /// What may stand on the line before a call's own text: all that was typed, and each end of it, since what was typed
    /// first may have gone to another program, or may be gone. Empty for a call that types nothing.
    pub(super) fn before(
        &self,
        conversation: &str,
        tool: (&str, Option<&str>),
        input: Input<'_>,
    ) -> Vec<String> {
        if self.0.is_empty() || kind::typed(tool, input).is_none() {
            return Vec::new();
        }
        let pieces = self.0.get(&key(conversation, input)).unwrap_or_default();
        (0..pieces.len()).filter_map(|first| pieces.get(first..)).map(<[String]>::concat).collect()
    }

    /// Takes note of a call that goes on.
    pub(super) fn add(&self, conversation: &str, tool: (&str, Option<&str>), input: Input<'_>) {
        let Some(text) = kind::typed(tool, input).filter(|text| !text.is_empty()) else { return };
        let key = key(conversation, input);
        let pieces = continued(self.0.get(&key).unwrap_or_default(), &text);
        if pieces.is_empty() {
            self.0.remove(&key);
        } else {
            self.0.insert(key, pieces);
        }
    }
}

fn key(conversation: &str, input: Input<'_>) -> String {
    let named = match input {
        Input::Json(json) => PROGRAMS.iter().find_map(|key| json.get(key)).filter(|value| !value.is_null()),
        Input::Text(_) => None,
    };
    format!("{conversation}\n{}", named.map(Value::to_string).unwrap_or_default())
}

/// The pieces of a line after another text was typed; none where it has ended.
fn continued(mut pieces: Vec<String>, text: &str) -> Vec<String> {
    let before = pieces.concat();
    let line = [before.as_str(), text].concat();
    match unended(&line) {
        0 if line.len() < MOST_BYTES => pieces.push(text.to_owned()),
        start => pieces = vec![line.get(start..).map(cut).unwrap_or_default()],
    }
    while pieces.len() > MOST_PIECES {
        let second = pieces.remove(1);
        if let Some(first) = pieces.first_mut() {
            first.push_str(&second);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn cut(line: &str) -> String {
    line.get(..line.floor_char_boundary(MOST_BYTES)).unwrap_or_default().to_owned()
}

/// Where the text begins that stands behind the last line that has ended. A backslash before its end joins the next.
fn unended(text: &str) -> usize {
    let ends = text.char_indices().rev().filter(|(_, sign)| matches!(sign, '\n' | '\r' | '\u{3}' | '\u{4}'));
    let mut ended = ends.filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    ended.next().map_or(0, |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOL: (&str, Option<&str>) = ("write_stdin", None);

    fn typed(all: &[(u32, &str)]) -> TypedLines {
        let lines = TypedLines::default();
        for (session, chars) in all {
            lines.add("c", TOOL, Input::Json(&json!({"session_id": session, "chars": chars})));
        }
        lines
    }

    fn before(lines: &TypedLines, session: u32) -> Vec<String> {
        lines.before("c", TOOL, Input::Json(&json!({"session_id": session, "chars": "x"})))
    }

    #[test]
    fn a_line_goes_on_in_the_program_that_it_was_typed_into() {
        let lines = typed(&[(1, "rm -r"), (2, "ls"), (1, "f ")]);
        assert_eq!(before(&lines, 1), ["rm -rf ", "f "]);
        assert_eq!(before(&lines, 2), ["ls"]);
        assert!(before(&lines, 3).is_empty());
        let call = json!({"session_id": 1, "chars": "x"});
        assert!(lines.before("other", TOOL, Input::Json(&call)).is_empty());
        assert!(lines.before("c", ("Bash", None), Input::Json(&json!({"command": "x"}))).is_empty());
    }

    #[test]
    fn a_line_ends_where_a_terminal_ends_it() {
        for (text, left) in [
            ("ls\n", ""),
            ("ls\r", ""),
            ("ls\nrm", "rm"),
            ("rm \\\n", "rm \\\n"),
            ("a\nrm \\\n-r", "rm \\\n-r"),
            ("rm\u{3}ls", "ls"),
        ] {
            let left = if left.is_empty() { vec![] } else { vec![left.to_owned()] };
            assert_eq!(before(&typed(&[(1, text)]), 1), left, "{text:?}");
        }
        assert_eq!(before(&typed(&[(1, "rm \\"), (1, "\n")]), 1), ["rm \\\n", "\n"]);
        assert!(before(&typed(&[(1, "r"), (1, "m x\n")]), 1).is_empty());
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let long = "x".repeat(MOST_BYTES);
        let lines = typed(&[(1, &long), (1, &long)]);
        assert_eq!(before(&lines, 1).iter().map(String::len).collect::<Vec<_>>(), [MOST_BYTES]);
        let many: Vec<(u32, &str)> = (0..1000).map(|session| (session, "rm")).collect();
        assert!(typed(&many).0.len() <= MOST_PROGRAMS);
        let pieces = before(&typed(&[(1, "r"); 100]), 1);
        assert_eq!((pieces.len(), pieces[0].len(), pieces[1].len()), (MOST_PIECES, 100, MOST_PIECES - 1));
    }
}
