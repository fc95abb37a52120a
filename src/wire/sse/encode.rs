//! Writes events and comments in the form that every client reads alike.

use super::LineEnd;

/// Appends one event: an `event:` line if it has a name, one `data:` line, a blank line.
///
/// `data` is text that was read as JSON, or a word such as `[DONE]`. Line ends and other controls in it become spaces,
/// which in JSON are the same white space, and white space around it is dropped: whatever is given, one event is
/// written. The name follows the stream's [`Form`](super::Form): a word if it has names, else `None`.
pub fn encode(name: Option<&str>, data: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    output.reserve(name.map_or(0, str::len) + data.len() + "event: data: \r\n\r\n\r\n".len());
    if let Some(name) = name {
        write_line("event: ", name, line_end, output);
    }
    write_line("data: ", data, line_end, output);
    output.extend_from_slice(line_end.as_str().as_bytes());
}

/// Appends a comment as a part of its own, which keeps a connection alive.
pub fn encode_comment(text: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    write_line(": ", text, line_end, output);
    output.extend_from_slice(line_end.as_str().as_bytes());
}

fn write_line(field: &str, value: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    let control = |byte: u8| byte < b' ' && byte != b'\t';
    let value = value.trim_matches(|character| character <= ' ').as_bytes();
    output.extend_from_slice(field.as_bytes());
    // Rarely true. Without an early exit this compiles to vector instructions.
    if value.iter().fold(false, |found, &byte| found | control(byte)) {
        output.extend(value.iter().map(|&byte| if control(byte) { b' ' } else { byte }));
    } else {
        output.extend_from_slice(value);
    }
    output.extend_from_slice(line_end.as_str().as_bytes());
}
