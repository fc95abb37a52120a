//! The name that a value is given to.

/// How much may stand between name and value: quotes, brackets, spaces, a sign of assignment.
const BETWEEN: usize = 24;
const LONGEST: usize = 64;

/// Returns the name of the value that begins there.
pub(super) fn name_of(text: &[u8], value: usize) -> Option<&[u8]> {
    let before = text.get(..value)?;
    let (mut between, mut is_assigned) = (0, false);
    for byte in before.iter().rev().take(BETWEEN) {
        match byte {
            b'=' | b':' => is_assigned = true,
            b'"' | b'\'' | b'`' | b'\\' | b'>' | b'\t' | b' ' | b']' | b')' => {}
            _ => break,
        }
        between += 1;
    }
    if !is_assigned {
        return None;
    }
    let name = before.get(..value - between)?;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = name.iter().rev().take(LONGEST).take_while(is_name).count();
    name.get(name.len() - length..).filter(|name| !name.is_empty())
}
