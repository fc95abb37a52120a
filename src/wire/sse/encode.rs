//! Writes events and comments in the form that every client reads alike.

use super::LineEnd;

/// Appends one event: an `event:` line where there is a name, one `data:` line, a blank line.
///
/// `data` is text that has been read as JSON, or a word such as `[DONE]`. Line ends and other controls in it become
/// spaces, which in JSON are the same white space, and white space around it is left out: one event is written,
/// whatever is given. The name is one of the stream's [`Form`](super::Form): a word where it has names, else `None`.
pub fn encode(name: Option<&str>, data: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    output.reserve(name.map_or(0, str::len) + data.len() + "event: data: \r\n\r\n\r\n".len());
    if let Some(name) = name {
        write_line("event: ", name, line_end, output);
    }
    write_line("data: ", data, line_end, output);
    output.extend_from_slice(line_end.as_str().as_bytes());
}

/// Appends a comment that is its own part of the stream, such as keeps a connection alive.
pub fn encode_comment(text: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    write_line(": ", text, line_end, output);
    output.extend_from_slice(line_end.as_str().as_bytes());
}

fn write_line(field: &str, value: &str, line_end: LineEnd, output: &mut Vec<u8>) {
    let control = |byte: u8| byte < b' ' && byte != b'\t';
    let value = value.trim_matches(|character| character <= ' ').as_bytes();
    output.extend_from_slice(field.as_bytes());
    // Seldom: without an early exit the compiler looks at many bytes at once.
    if value.iter().fold(false, |found, &byte| found | control(byte)) {
        output.extend(value.iter().map(|&byte| if control(byte) { b' ' } else { byte }));
    } else {
        output.extend_from_slice(value);
    }
    output.extend_from_slice(line_end.as_str().as_bytes());
}
