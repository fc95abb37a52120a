//! The programs of `awk`: whether they run something, and the files that they write.

use super::script::ScriptFiles;

/// What reads or runs something else, wherever it stands.
const HIDING: &[&str] = &["system", "getline", "ARGV", "ARGC"];

/// Words behind which a slash begins a pattern.
const BEFORE_PATTERNS: &[&[u8]] =
    &[b"print", b"printf", b"return", b"in", b"else", b"do", b"delete", b"exit", b"case"];

/// Reads a program.
pub(super) fn files(program: &str) -> ScriptFiles<'_> {
    let mut files =
        ScriptFiles { is_opaque: HIDING.iter().any(|name| program.contains(name)), ..ScriptFiles::default() };
    let Some(code) = code(program) else {
        // Where strings begin and end is not certain, so that signs in them count.
        let is_printed =
            program.find("print").is_some_and(|at| program.get(at..).is_some_and(|text| text.contains('>')));
        files.is_opaque |= is_printed || program.contains(['|', '@']);
        return files;
    };
    // `@include`, `@load`, `@name()`
    files.is_opaque |= code.contains('@') || code.replace("||", "").contains('|');
    let mut start = 0;
    for statement in code.split([';', '{', '}', '\n']) {
        let end = start + statement.len();
        if let Some(at) = statement.find("print").and_then(|at| Some(at + statement.get(at..)?.find('>')?)) {
            match target(program.get(start + at..end).unwrap_or_default()) {
                Some(file) => files.writes.push(file),
                None => files.is_opaque = true,
            }
        }
        start = end + 1;
    }
    files
}

/// The file of `> "file"`, if nothing stands behind it.
fn target(text: &str) -> Option<&str> {
    let name = text.trim_start_matches('>').trim().strip_prefix('"')?.strip_suffix('"')?;
    Some(name).filter(|name| !name.contains(['"', '\\']) && !name.is_empty() && !name.starts_with("/inet"))
}

/// A program with `_` for all that stands in strings and patterns, and without comments, as long as it was; none where
/// what a slash or a quote means is not certain.
fn code(program: &str) -> Option<String> {
    let mut code = program.as_bytes().to_vec();
    let bytes = program.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => closing(bytes, at, b'"')?,
            b'/' if begins_pattern(code.get(..at)?)? => closing(bytes, at, b'/')?,
            b'#' => {
                let end = bytes
                    .iter()
                    .skip(at)
                    .position(|byte| *byte == b'\n')
                    .map_or(bytes.len(), |length| at + length);
                code.get_mut(at..end)?.fill(b' ');
                at = end;
                continue;
            }
            b'\n' if continues(code.get(..at)?) => {
                *code.get_mut(at)? = b' ';
                at
            }
            _ => at,
        };
        if end > at {
            code.get_mut(at + 1..end)?.fill(b'_');
        }
        at = end + 1;
    }
    // What is not ASCII stands in strings, patterns and comments alone.
    String::from_utf8(code).ok()
}

/// Where a string or a pattern that begins here ends; none where readers differ.
fn closing(bytes: &[u8], start: usize, delimiter: u8) -> Option<usize> {
    let mut at = start + 1;
    let mut in_brackets = false;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'\n' => return None,
            byte if *byte == delimiter => return (!in_brackets).then_some(at),
            b'[' if delimiter == b'/' => in_brackets = true,
            b']' => in_brackets = false,
            _ => {}
        }
        at += 1;
    }
}

/// Whether a slash behind this begins a pattern, and does not divide; none where that is not certain.
fn begins_pattern(before: &[u8]) -> Option<bool> {
    let before = trimmed(before);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match before.last() {
        // Behind `if (…)` it begins one, behind `(a + b)` not.
        Some(b')') => None,
        Some(b'"' | b']') => Some(false),
        Some(_) if before.ends_with(b"++") || before.ends_with(b"--") => Some(false),
        Some(byte) if is_name(byte) => {
            let start = before.iter().rposition(|byte| !is_name(byte)).map_or(0, |at| at + 1);
            before.get(start..).map(|name| BEFORE_PATTERNS.contains(&name))
        }
        Some(_) | None => Some(true),
    }
}

/// Whether a statement goes on behind the end of a line.
fn continues(before: &[u8]) -> bool {
    matches!(trimmed(before).last(), Some(b',' | b'\\' | b'&' | b'|'))
}

/// Without blanks at the end.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}
