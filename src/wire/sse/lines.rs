//! Reads the lines of one event as the standard says, and notes what other parsers may read differently.

use std::ops::Range;

use bytes::Bytes;
use memchr::{memchr, memchr2};

use crate::wire::excerpt::Excerpt;

use super::{Departure, End, Event, Filler, Form, Item, LineEnd, NameLine};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The state of a stream after the parts that were read.
#[derive(Debug)]
pub(super) struct StreamState {
    form: Form,
    line_end: Option<LineEnd>,
    begun: bool,
    over: bool,
}

impl StreamState {
    pub(super) fn new(form: Form) -> Self {
        Self { form, line_end: None, begun: false, over: false }
    }

    pub(super) fn line_end(&self) -> LineEnd {
        self.line_end.unwrap_or_default()
    }

    /// Whether the last event has come: nothing after it is canonical.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    fn ends_with(&self, event: &Event) -> bool {
        match self.form.end {
            End::Data(data) => event.data() == data.as_bytes(),
            End::Name(names) => event.name().is_some_and(|name| names.contains(&name)),
            End::Body => false,
        }
    }
}

/// Reads the lines of a part of a stream; `terminated` if it ends in a blank line.
pub(super) fn read(raw: Bytes, terminated: bool, stream: &mut StreamState) -> Item {
    let mut block = EventLines::default();
    if !terminated {
        block.note(Departure::Unterminated);
    }
    if !is_text(&raw) {
        block.note(Departure::Text);
    }
    let mut at = 0;
    if !stream.begun && raw.starts_with(BYTE_ORDER_MARK) {
        at = BYTE_ORDER_MARK.len();
        block.note(Departure::ByteOrderMark);
    }
    stream.begun = true;
    while at < raw.len() {
        let (line, next) = next_line(&raw, at, stream, &mut block);
        block.read_line(&raw, line, next, stream.form);
        at = next;
    }
    if !block.has_fields {
        if !stream.form.comments && block.has_comment {
            block.note(Departure::Comment);
        }
        return Item::Filler(Filler { raw, departure: block.departure });
    }
    block.judge(&raw, stream.form);
    let mut event = block.event(raw);
    if stream.over {
        event.departure = Some(Departure::AfterEnd);
    }
    stream.over |= stream.ends_with(&event);
    Item::Event(event)
}

/// Whether it is UTF-8 without control characters, some of which generic line splitters take for line ends.
fn is_text(raw: &[u8]) -> bool {
    let control = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    // Without an early exit this compiles to vector instructions.
    let controls = raw.iter().fold(false, |found, &byte| found | control(byte));
    !controls && (raw.is_ascii() || std::str::from_utf8(raw).is_ok())
}

/// The line that begins at `at`, without its end, and the offset of the next one.
fn next_line(
    raw: &[u8],
    at: usize,
    stream: &mut StreamState,
    block: &mut EventLines,
) -> (Range<usize>, usize) {
    let rest = raw.get(at..).unwrap_or_default();
    let Some(length) = memchr2(b'\n', b'\r', rest) else { return (at..raw.len(), raw.len()) };
    let (line_end, width) = match (rest.get(length), rest.get(length + 1)) {
        (Some(b'\n'), _) => (Some(LineEnd::Lf), 1),
        (_, Some(b'\n')) => (Some(LineEnd::CrLf), 2),
        _ => (None, 1),
    };
    let same = line_end.is_some_and(|line_end| *stream.line_end.get_or_insert(line_end) == line_end);
    if !same {
        block.note(Departure::LineEnd);
    }
    (at..at + length, at + length + width)
}

/// The content of a part's lines so far.
#[derive(Debug, Default)]
struct EventLines {
    name: Option<Range<usize>>,
    data: DataLines,
    id: bool,
    retry: bool,
    bare: Bare,
    has_fields: bool,
    has_comment: bool,
    departure: Option<Departure>,
}

/// The values of `data` lines: one is a slice, several are a copy.
#[derive(Debug, Default)]
enum DataLines {
    #[default]
    None,
    One(Range<usize>),
    Joined(Vec<u8>),
}

/// Lines with an unknown field.
#[derive(Debug, Default)]
enum Bare {
    #[default]
    None,
    Lines(Range<usize>),
    /// There are other lines between them.
    Scattered,
}

impl Bare {
    /// Takes one more line, with its end.
    fn add(&mut self, line: Range<usize>) {
        *self = match std::mem::take(self) {
            Self::None => Self::Lines(line),
            Self::Lines(before) if before.end == line.start => Self::Lines(before.start..line.end),
            Self::Lines(_) | Self::Scattered => Self::Scattered,
        };
    }
}

impl EventLines {
    fn note(&mut self, departure: Departure) {
        self.departure.get_or_insert(departure);
    }

    /// Reads a line; `next` is the offset of the following one.
    fn read_line(&mut self, raw: &Bytes, line: Range<usize>, next: usize, form: Form) {
        let text = slice(raw, &line);
        let colon = memchr(b':', text);
        match colon {
            _ if text.is_empty() => return,
            Some(0) => return self.has_comment = true,
            Some(_) | None => self.has_fields = true,
        }
        let field = text.get(..colon.unwrap_or(text.len())).unwrap_or_default();
        let after = colon.map_or(line.end, |colon| line.start + colon + 1);
        let value = after + usize::from(raw.get(after) == Some(&b' ') && after < line.end)..line.end;
        match field {
            b"data" => {
                self.check_value(raw, after, &value);
                self.add_data(raw, value);
            }
            b"event" => {
                if form.name == NameLine::Absent
                    || self.name.is_some()
                    || !matches!(self.data, DataLines::None)
                {
                    self.note(Departure::Name);
                }
                self.check_value(raw, after, &value);
                self.name = Some(value);
            }
            other => {
                self.id |= other == b"id";
                self.retry |= other == b"retry";
                if !matches!(other, b"id" | b"retry") {
                    self.bare.add(line.start..next);
                }
                self.note(Departure::Field);
            }
        }
    }

    /// Checks for exactly one space before a value, and none at its end.
    fn check_value(&mut self, raw: &[u8], after: usize, value: &Range<usize>) {
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        let text = slice(raw, value);
        if value.start == after || blank(text.first()) || blank(text.last()) {
            self.note(Departure::Space);
        }
    }

    fn add_data(&mut self, raw: &[u8], value: Range<usize>) {
        self.data = match std::mem::take(&mut self.data) {
            DataLines::None => DataLines::One(value),
            DataLines::One(first) => DataLines::Joined([slice(raw, &first), slice(raw, &value)].join(&b'\n')),
            DataLines::Joined(mut joined) => {
                joined.push(b'\n');
                joined.extend_from_slice(slice(raw, &value));
                DataLines::Joined(joined)
            }
        };
    }

    /// Notes departures that only the whole event shows.
    fn judge(&mut self, raw: &[u8], form: Form) {
        if self.has_comment {
            self.note(Departure::Comment);
        }
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let named = match &self.name {
            None => form.name == NameLine::Absent,
            Some(name) => !name.is_empty() && slice(raw, name).iter().all(word),
        };
        if !named {
            self.note(Departure::Name);
        }
        if !matches!(&self.data, DataLines::One(data) if !data.is_empty()) {
            self.note(Departure::Data);
        }
    }

    fn event(self, raw: Bytes) -> Event {
        let data = match self.data {
            DataLines::None => Excerpt::Of(0..0),
            DataLines::One(data) => Excerpt::Of(data),
            DataLines::Joined(joined) => Excerpt::Own(Bytes::from(joined)),
        };
        let name = self.name.filter(|name| !name.is_empty());
        let bare = match self.bare {
            Bare::Lines(lines) => Some(lines),
            Bare::None | Bare::Scattered => None,
        };
        Event { name, data, id: self.id, retry: self.retry, bare, raw, departure: self.departure }
    }
}

fn slice<'a>(raw: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    raw.get(range.clone()).unwrap_or_default()
}
