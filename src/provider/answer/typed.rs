//! Keeps what an answer's calls type into programs that run, as far as its line has not ended: a later call ends it.

use serde_json::Value;

use crate::call::Input;
use crate::provider::kind;

/// The most programs of one answer that are told apart.
const MOST_PROGRAMS: usize = 16;

/// The longest line that is kept: a byte more than what is read of a command.
const MOST_BYTES: usize = (64 << 10) + 1;

/// What was typed into each program since its last line ended.
#[derive(Debug, Default)]
pub(super) struct TypedLines(Vec<(String, String)>);

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

impl TypedLines {
    /// What stands on the line before a call's own text; empty for a call that types nothing.
    pub(super) fn before(&self, tool: (&str, Option<&str>), input: Input<'_>) -> &str {
        if self.0.is_empty() || kind::typed(tool, input).is_none() {
            return "";
        }
        let program = program(input);
        self.0.iter().find(|(own, _)| *own == program).map_or("", |(_, line)| line)
    }

    /// Takes note of a call that goes on.
    pub(super) fn add(&mut self, tool: (&str, Option<&str>), input: Input<'_>) {
        let Some(text) = kind::typed(tool, input) else { return };
        let program = program(input);
        let known = self.0.iter().position(|(own, _)| *own == program);
        let line = known.and_then(|known| self.0.get(known)).map_or("", |(_, line)| line);
        let line = unended(&[line, text].concat());
        // Of more programs than there is room for, the last takes the place of the one before.
        match known.or((self.0.len() == MOST_PROGRAMS).then_some(MOST_PROGRAMS - 1)) {
            Some(number) => {
                if let Some(kept) = self.0.get_mut(number) {
                    *kept = (program, line);
                }
            }
            None => self.0.push((program, line)),
        }
    }
}

fn program(input: Input<'_>) -> String {
    let Input::Json(json) = input else { return String::new() };
    let named = PROGRAMS.iter().find_map(|key| json.get(key)).filter(|value| !value.is_null());
    named.map(Value::to_string).unwrap_or_default()
}

/// What stands behind the last line that has ended. A backslash before its end joins the next.
fn unended(text: &str) -> String {
    let ends = text.char_indices().rev().filter(|(_, sign)| matches!(sign, '\n' | '\r' | '\u{3}' | '\u{4}'));
    let mut ended = ends.filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    let start = ended.next().map_or(0, |(at, _)| at + 1);
    let line = text.get(start..).unwrap_or_default();
    line.get(..line.floor_char_boundary(MOST_BYTES)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOL: (&str, Option<&str>) = ("write_stdin", None);

    fn typed(all: &[(u32, &str)]) -> TypedLines {
        let mut lines = TypedLines::default();
        for (session, chars) in all {
            lines.add(TOOL, Input::Json(&json!({"session_id": session, "chars": chars})));
        }
        lines
    }

    fn before(lines: &TypedLines, session: u32) -> String {
        lines.before(TOOL, Input::Json(&json!({"session_id": session, "chars": "x"}))).to_owned()
    }

    #[test]
    fn a_line_goes_on_in_the_program_that_it_was_typed_into() {
        let lines = typed(&[(1, "rm -r"), (2, "ls"), (1, "f ")]);
        assert_eq!(
            (before(&lines, 1), before(&lines, 2), before(&lines, 3)),
            ("rm -rf ".into(), "ls".into(), String::new())
        );
        let other = json!({"command": "x"});
        assert_eq!(lines.before(("Bash", None), Input::Json(&other)), "");
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
            assert_eq!(before(&typed(&[(1, text)]), 1), left, "{text:?}");
        }
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let long = "x".repeat(MOST_BYTES);
        let lines = typed(&[(1, &long), (1, &long)]);
        assert_eq!(before(&lines, 1).len(), MOST_BYTES);
        let many: Vec<(u32, &str)> = (0..100).map(|session| (session, "rm")).collect();
        assert_eq!(typed(&many).0.len(), MOST_PROGRAMS);
    }
}
