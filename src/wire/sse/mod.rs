//! Frames server-sent events (WHATWG HTML, section 9.2), and checks that every client reads the same events.
//!
//! Parsers of this format disagree about a byte order mark, bare carriage returns, comments inside an event, data
//! after the end, an unterminated last event and more, so what one of them drops another executes. The decoder reads
//! as the standard says and notes each [`Departure`] from the canonical form that all of them read alike. An event
//! without one may pass as it was received; any other is written anew by [`encode`], or refused.

mod decoder;
mod encode;
mod lines;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encode::{encode, encode_comment};

use std::ops::Range;

use bytes::Bytes;

use super::excerpt::Excerpt;

/// The canonical form of a stream's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub name: NameLine,
    /// Whether comments may stand between events. Some clients try to read them as data, so that a stream for those
    /// has none.
    pub comments: bool,
    pub end: End,
}

/// Whether events have an `event:` line. Some clients skip events without a name, others execute them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameLine {
    Required,
    Absent,
}

/// How a stream ends. Some clients stop reading there, others execute what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// An event with exactly this data, such as `[DONE]`.
    Data(&'static str),
    /// An event with one of these names.
    Name(&'static [&'static str]),
    /// The end of the body alone.
    Body,
}

/// A part of a stream, up to and including a blank line. The raw bytes of all parts in order are the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Event(Event),
    /// Only comments and blank lines, which keep a connection alive. It may be dropped.
    Filler(Filler),
}

impl Item {
    /// The bytes as they were received.
    pub fn raw(&self) -> &Bytes {
        match self {
            Self::Event(event) => &event.raw,
            Self::Filler(filler) => &filler.raw,
        }
    }

    /// The first reason why clients may read this differently.
    pub fn departure(&self) -> Option<Departure> {
        match self {
            Self::Event(event) => event.departure,
            Self::Filler(filler) => filler.departure,
        }
    }
}

/// Lines with at least one field, known or not, up to the blank line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The range in `raw` of the value of the last `event:` line, if that is not empty.
    pub name: Option<Range<usize>>,
    /// The values of the `data:` lines, joined by LF; empty if there are none. A range of `raw` if there is one line.
    pub data: Excerpt,
    /// There is an `id` line.
    pub id: bool,
    /// There is a `retry` line.
    pub retry: bool,
    /// The range in `raw` of consecutive lines with an unknown field. Some providers write JSON so, without a field,
    /// and some clients read it.
    pub bare: Option<Range<usize>>,
    /// The bytes as they were received, with the blank line.
    pub raw: Bytes,
    /// `None` if the event is in canonical form.
    pub departure: Option<Departure>,
}

impl Event {
    /// Whether every parser reads this event alike, so that it may pass as it was received.
    pub fn is_canonical(&self) -> bool {
        self.departure.is_none()
    }

    /// The name as text; `None` also where it is not UTF-8.
    pub fn name(&self) -> Option<&str> {
        std::str::from_utf8(self.raw.get(self.name.clone()?)?).ok()
    }

    /// The values of the `data:` lines. UTF-8, unless `departure` is [`Departure::Text`].
    pub fn data(&self) -> &[u8] {
        self.data.of(&self.raw)
    }
}

/// Comments and blank lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filler {
    pub raw: Bytes,
    pub departure: Option<Departure>,
}

/// How lines end. The canonical form has one of the two throughout a stream; a bare CR is never canonical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    #[default]
    Lf,
    CrLf,
}

impl LineEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// How a part of a stream departs from the canonical form first. At each of these points, parsers of official and
/// widely used clients were seen to disagree, or hand-written ones (that go line by line) differ from those that follow
/// the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// It comes after the stream's end. Some clients ignore it, some execute it.
    AfterEnd,
    /// No blank line ends it. Some clients dispatch it, some drop it, some fail.
    Unterminated,
    /// It is not UTF-8, which some clients replace and others reject, or has a control character other than a tab:
    /// generic line splitters end lines at several of them.
    Text,
    /// The stream begins with a byte order mark, with which some clients lose the first event.
    ByteOrderMark,
    /// A line ends in a bare CR, or otherwise than the stream's first line.
    LineEnd,
    /// A comment is inside the event, or in a stream whose clients read comments as data.
    Comment,
    /// A field other than `event` and `data`: `id`, `retry`, another case, a space in front, or a line without a
    /// colon. Some clients lose the event, some read the line as data.
    Field,
    /// The `event:` line is missing, not expected, repeated, behind the data, or no plain word.
    Name,
    /// There is not exactly one space between a colon and the value, or a value ends in a space. Clients trim
    /// differently, and compare `[DONE]` with what is left.
    Space,
    /// There is not exactly one `data:` line with content. Clients that go line by line take each for an event.
    Data,
}

impl Departure {
    /// A few stable words, fit for an event and a metric's label.
    pub fn reason(self) -> &'static str {
        match self {
            Self::AfterEnd => "after the end of the stream",
            Self::Unterminated => "not ended by a blank line",
            Self::Text => "not UTF-8 text",
            Self::ByteOrderMark => "byte order mark",
            Self::LineEnd => "bare CR or mixed line ends",
            Self::Comment => "comment inside an event",
            Self::Field => "unexpected field",
            Self::Name => "unexpected or missing event name",
            Self::Space => "spaces around a value",
            Self::Data => "not exactly one data line",
        }
    }
}

/// An event, or the filler between two events, is longer than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("server-sent event is longer than {0} bytes (limits.sseEventBytes)")]
pub struct TooLong(pub usize);
