//! Writes the events of a Messages stream: <https://platform.claude.com/docs/en/build-with-claude/streaming>
//!
//! Each is `event: TYPE`, `data: JSON` and a blank line, in the one form that all clients read alike. No string in them
//! ends a line: JSON has no raw control characters.

use crate::call::turn::said::JsonText;

/// The tokens of an answer, as Messages counts: the three parts of the input do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cache_write: u64,
    pub(super) cache_read: u64,
    pub(super) output: u64,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End<'a> {
    pub(super) reason: &'static str,
    pub(super) sequence: Option<&'a str>,
    pub(super) tokens: Tokens,
}

pub(super) fn message_start(id: &str, model: &str, input_tokens: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    head(id, model, out);
    out.extend_from_slice(b"],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
    usage(Tokens { input: input_tokens, ..Tokens::default() }, out);
    out.extend_from_slice(b"}}\n\n");
}

/// A message up to its blocks.
pub(super) fn head(id: &str, model: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":\"");
    JsonText::Plain(id).write(out);
    out.extend_from_slice(b"\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"");
    JsonText::Plain(model).write(out);
    out.extend_from_slice(b"\",\"content\":[");
}

pub(super) fn text_start(index: u64, out: &mut Vec<u8>) {
    start(index, out);
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":\"\"}}\n\n");
}

pub(super) fn thinking_start(index: u64, out: &mut Vec<u8>) {
    start(index, out);
    out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n");
}

pub(super) fn call_start(index: u64, id: &str, name: &str, out: &mut Vec<u8>) {
    start(index, out);
    call_head(id, name, out);
    out.extend_from_slice(b"{}}}\n\n");
}

/// A block of a call up to its input.
pub(super) fn call_head(id: &str, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":\"");
    JsonText::Plain(id).write(out);
    out.extend_from_slice(b"\",\"name\":\"");
    JsonText::Plain(name).write(out);
    out.extend_from_slice(b"\",\"input\":");
}

fn start(index: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":");
    number(index, out);
    out.extend_from_slice(b",\"content_block\":");
}

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delta {
    Text,
    Thinking,
    Input,
    Signature,
}

pub(super) fn delta(index: u64, kind: Delta, piece: JsonText<'_>, out: &mut Vec<u8>) {
    let kind: &[u8] = match kind {
        Delta::Text => b",\"delta\":{\"type\":\"text_delta\",\"text\":\"",
        Delta::Thinking => b",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"",
        Delta::Input => b",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"",
        Delta::Signature => b",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"",
    };
    out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":");
    number(index, out);
    out.extend_from_slice(kind);
    piece.write(out);
    out.extend_from_slice(b"\"}}\n\n");
}

pub(super) fn stop(index: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":");
    number(index, out);
    out.extend_from_slice(b"}\n\n");
}

/// The last two events.
pub(super) fn end(end: End<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{");
    reason(end, out);
    out.extend_from_slice(b"},\"usage\":");
    usage(end.tokens, out);
    out.extend_from_slice(b"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

/// The two entries of a message that say why it ended.
pub(super) fn reason(end: End<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"stop_reason\":\"");
    out.extend_from_slice(end.reason.as_bytes());
    out.extend_from_slice(b"\",\"stop_sequence\":");
    match end.sequence {
        None => out.extend_from_slice(b"null"),
        Some(sequence) => {
            out.push(b'"');
            JsonText::Plain(sequence).write(out);
            out.push(b'"');
        }
    }
}

pub(super) fn usage(tokens: Tokens, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"input_tokens\":");
    number(tokens.input, out);
    out.extend_from_slice(b",\"cache_creation_input_tokens\":");
    number(tokens.cache_write, out);
    out.extend_from_slice(b",\"cache_read_input_tokens\":");
    number(tokens.cache_read, out);
    out.extend_from_slice(b",\"output_tokens\":");
    number(tokens.output, out);
    out.push(b'}');
}

pub(super) fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ping\ndata: {\"type\": \"ping\"}\n\n");
}

/// The last event of an answer that fails in its middle.
pub(super) fn error(json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: error\ndata: ");
    out.extend_from_slice(json.as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// Appends a number without the machinery of formatting: there is one in each event.
fn number(number: u64, out: &mut Vec<u8>) {
    if number >= 10 {
        self::number(number / 10, out);
    }
    out.push(b'0' + (number % 10) as u8);
}
