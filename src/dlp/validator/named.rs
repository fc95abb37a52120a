//! The name that a value is given to.

/// How much may stand between name and value: quotes, brackets, spaces, a sign of assignment.
const BETWEEN: usize = 24;
const LONGEST: usize = 64;

/// Returns the name of the value that begins there.
pub(super) fn name_of(text: &[u8], value: usize) -> Option<&[u8]> {
    let before = text.get(value.saturating_sub(BETWEEN)..value)?;
    let is_between = |byte: &&u8| {
        matches!(byte, b'=' | b':' | b'"' | b'\'' | b'`' | b'\\' | b'>' | b'\t' | b' ' | b']' | b')')
    };
    let between = before.iter().rev().take_while(is_between).count();
    let is_assigned = before.iter().rev().take(between).any(|byte| matches!(byte, b'=' | b':'));
    let end = value - between;
    let name = text.get(end.saturating_sub(LONGEST)..end)?;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = name.iter().rev().take_while(is_name).count();
    name.get(name.len() - length..).filter(|name| is_assigned && !name.is_empty())
}
