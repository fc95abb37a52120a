//! Cuts a body into parts, whatever its framing is, and says which of them may go on as they came.

use std::ops::Range;

use bytes::Bytes;

use super::{BrokenAnswer, GuardLimits, Received};
use crate::provider::adapter::Framing;
use crate::wire::event_stream::{self, EventStreamError, Frame};
use crate::wire::excerpt::Excerpt;
use crate::wire::json::{Kind, Value};
use crate::wire::json_array::{self, JsonArrayError};
use crate::wire::sse::{self, Departure, End, Form, LineEnd, NameLine};

/// Reads one body.
pub(super) enum PartReader {
    Events {
        decoder: sse::Decoder,
        form: Form,
        /// Whether the last event came.
        over: bool,
        /// A line of the last event that is no field, to be read after it.
        beside: Option<Received>,
        /// How many bytes were left out, but for empty events.
        left_out: usize,
    },
    Frames {
        decoder: event_stream::Decoder,
        event_bytes: usize,
    },
    Array {
        decoder: json_array::Decoder,
        ended: bool,
    },
    /// Nothing is cut: a message of a WebSocket is a part, and so is a whole body.
    Messages,
}

/// One piece of a body.
pub(super) enum Unit {
    Part(Received),
    /// Lines without a field, which some vendors use for errors.
    Bare(Received),
    /// It cannot be read, and it is known where it ends.
    BrokenAnswer(Received, BrokenAnswer),
    /// It says nothing, and may go on.
    Filler(Bytes),
    /// The end of an array, or white space behind it: it goes on last.
    Tail(Bytes),
}

impl PartReader {
    pub(super) fn new(framing: Framing, limits: &GuardLimits) -> Self {
        let event_bytes = limits.event_bytes;
        match framing {
            Framing::Events(form) => {
                let decoder = sse::Decoder::new(form, event_bytes);
                Self::Events { decoder, form, over: false, beside: None, left_out: 0 }
            }
            Framing::EventStream => Self::Frames { decoder: event_stream::Decoder::default(), event_bytes },
            Framing::Array => Self::Array { decoder: json_array::Decoder::new(event_bytes), ended: false },
            Framing::Whole => Self::Messages,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Events { decoder, .. } => decoder.push(chunk),
            Self::Frames { decoder, .. } => decoder.push(chunk),
            Self::Array { decoder, .. } => decoder.push(chunk),
            Self::Messages => {}
        }
    }

    /// Whether nothing more comes of a body whose end can be missed.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Self::Array { ended: true, .. })
    }

    /// The body has ended.
    pub(super) fn end(&mut self) {
        match self {
            Self::Events { decoder, .. } => decoder.end(),
            Self::Frames { decoder, .. } => decoder.end(),
            Self::Array { decoder, ended } => {
                *ended = true;
                decoder.end();
            }
            Self::Messages => {}
        }
    }

    /// Returns the next complete unit; none if it needs more bytes, or there are no more.
    pub(super) fn next_unit(&mut self) -> Result<Option<Unit>, BrokenAnswer> {
        match self {
            Self::Events { decoder, over, beside, left_out, .. } => {
                // An event with lines beside its fields is two units: the event first, then the lines.
                if let Some(bare) = beside.take() {
                    if !*over {
                        return Ok(Some(Unit::Bare(bare)));
                    }
                    *left_out += bare.raw.len();
                }
                next_event(decoder, *over, beside, left_out)
            }
            Self::Frames { decoder, event_bytes } => next_frame(decoder, *event_bytes),
            Self::Array { decoder, .. } => next_element(decoder),
            Self::Messages => Ok(None),
        }
    }

    /// Returns the bytes of the next events, if nothing of them was read yet; none in other framings.
    pub(super) fn untouched(&self) -> &[u8] {
        match self {
            Self::Events { decoder, over: false, beside: None, .. } => decoder.untouched(),
            Self::Events { .. } | Self::Frames { .. } | Self::Array { .. } | Self::Messages => &[],
        }
    }

    /// Takes so many of these bytes, which are whole events.
    pub(super) fn skip(&mut self, bytes: usize) -> Bytes {
        match self {
            Self::Events { decoder, .. } => decoder.skip(bytes),
            Self::Frames { .. } | Self::Array { .. } | Self::Messages => Bytes::new(),
        }
    }

    /// Whether the last event came.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Events { over: true, .. })
    }

    /// Counts bytes that are left out.
    pub(super) fn leave_out(&mut self, bytes: usize) {
        if let Self::Events { left_out, .. } = self {
            *left_out += bytes;
        }
    }

    /// How many bytes were left out: those behind the end, and lines that no client reads.
    pub(super) fn left_out(&self) -> usize {
        match self {
            Self::Events { left_out, .. } => *left_out,
            Self::Frames { .. } | Self::Array { .. } | Self::Messages => 0,
        }
    }

    /// Takes the bytes that were not read yet. Nothing more is read.
    pub(super) fn take_rest(&mut self) -> Bytes {
        match std::mem::replace(self, Self::Messages) {
            Self::Events { decoder, .. } => decoder.into_rest(),
            Self::Array { decoder, .. } => decoder.into_rest(),
            Self::Frames { decoder, .. } => decoder.into_rest(),
            Self::Messages => Bytes::new(),
        }
    }

    /// How the lines of the stream end.
    pub(super) fn line_end(&self) -> LineEnd {
        match self {
            Self::Events { decoder, .. } => decoder.line_end(),
            Self::Frames { .. } | Self::Array { .. } | Self::Messages => LineEnd::default(),
        }
    }

    /// Gives an event the name that is its JSON's `type`, in framings whose events have names, because some clients go by
    /// the name and others by the type. Notes the end of the stream.
    ///
    /// Returns that name if the event has none or another.
    pub(super) fn rename(
        &mut self,
        received: &Received,
        json: Value<'_>,
    ) -> Result<Option<Bytes>, BrokenAnswer> {
        let Self::Events { form, over, .. } = self else { return Ok(None) };
        if received.bare {
            return Ok(None);
        }
        let mut renamed = None;
        if form.name == NameLine::Required && json.kind() == Kind::Object {
            let kind = json
                .get("type")
                .map_err(|error| BrokenAnswer::ambiguous(format!("`type` of an event: {error}")))?;
            let name = received.name();
            if let Some(kind) = kind.filter(|kind| name.is_none_or(|name| !kind.says(name))) {
                renamed = Some(word(kind)?);
            }
        }
        *over |= match form.end {
            End::Data(_) => received.is_done(),
            End::Name(names) => {
                let renamed = renamed.as_ref().and_then(|name| std::str::from_utf8(name).ok());
                renamed.or(received.name()).is_some_and(|name| names.contains(&name))
            }
            End::Body => false,
        };
        Ok(renamed)
    }
}

/// The name that an event says, which must be a word.
fn word(said: Value<'_>) -> Result<Bytes, BrokenAnswer> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match said.text() {
        Some(name) if !name.is_empty() && name.bytes().all(is_part) => {
            Ok(Bytes::copy_from_slice(name.as_bytes()))
        }
        Some(_) | None => Err(BrokenAnswer::malformed("the `type` of an event is no word")),
    }
}

fn next_event(
    decoder: &mut sse::Decoder,
    over: bool,
    beside: &mut Option<Received>,
    left_out: &mut usize,
) -> Result<Option<Unit>, BrokenAnswer> {
    while let Some(item) = decoder.next_item().map_err(|error| BrokenAnswer::bound(error.to_string()))? {
        match item {
            sse::Item::Filler(filler) if filler.departure.is_none() => {
                return Ok(Some(Unit::Filler(filler.raw)));
            }
            // Clients disagree about events without data, which are not needed.
            sse::Item::Event(event) if event.data().trim_ascii().is_empty() && event.bare.is_none() => {}
            // Clients disagree about what stands behind the end.
            sse::Item::Event(event) if over || event.departure == Some(Departure::AfterEnd) => {
                *left_out += event.raw.len();
            }
            sse::Item::Event(event) => {
                let bare = event.bare.clone().map(|lines| bare(&event.raw, lines));
                if event.data().trim_ascii().is_empty() {
                    return Ok(bare.map(Unit::Bare));
                }
                *beside = bare;
                return Ok(Some(Unit::Part(part(event))));
            }
            sse::Item::Filler(_) => {}
        }
    }
    Ok(None)
}

fn part(event: sse::Event) -> Received {
    let canonical = event.is_canonical();
    let name = event.name.map(Excerpt::Of);
    let (data, raw) = (event.data, event.raw);
    Received { name, data, before: Bytes::new(), raw, canonical, bare: false }
}

/// Lines of an event, with the blank one where they are the last.
fn bare(event: &Bytes, lines: Range<usize>) -> Received {
    let is_last = event[lines.end..].trim_ascii().is_empty();
    let raw = if is_last { event.slice(lines.start..) } else { event.slice(lines) };
    let data = Excerpt::Of(0..raw.trim_ascii_end().len());
    Received { name: None, data, before: Bytes::new(), raw, canonical: true, bare: true }
}

fn next_frame(decoder: &mut event_stream::Decoder, event_bytes: usize) -> Result<Option<Unit>, BrokenAnswer> {
    let frame = match decoder.next_frame() {
        Ok(Some(frame)) => frame,
        Ok(None) => return Ok(None),
        Err(error @ EventStreamError::TooLong) => return Err(BrokenAnswer::bound(error.to_string())),
        Err(error) => {
            let broken = BrokenAnswer::malformed(error.to_string());
            let Some(frame) = decoder.take_broken() else { return Err(broken) };
            return Ok(Some(Unit::BrokenAnswer(received(frame, None), broken)));
        }
    };
    if frame.raw.len() > event_bytes {
        let reason = format!("event stream frame is longer than {event_bytes} bytes (limits.sseEventBytes)");
        return Err(BrokenAnswer::bound(reason));
    }
    let name = frame_name(&frame)?.map(|name| Excerpt::Own(Bytes::copy_from_slice(name.as_bytes())));
    Ok(Some(Unit::Part(received(frame, name))))
}

fn received(frame: Frame, name: Option<Excerpt>) -> Received {
    let (data, raw) = (Excerpt::Own(frame.payload), frame.raw);
    Received { name, data, before: Bytes::new(), raw, canonical: true, bare: false }
}

/// Returns the name of a frame. A frame without a known type is refused, because some clients take it for an event.
fn frame_name(frame: &Frame) -> Result<Option<&str>, BrokenAnswer> {
    match frame.string(":message-type") {
        Some("event") => Ok(frame.string(":event-type")),
        Some("exception") => Ok(frame.string(":exception-type")),
        Some("error") => Ok(frame.string(":error-code")),
        Some(_) | None => Err(BrokenAnswer::ambiguous("a frame does not say what it is")),
    }
}

fn next_element(decoder: &mut json_array::Decoder) -> Result<Option<Unit>, BrokenAnswer> {
    let item = match decoder.next_item() {
        Ok(Some(item)) => item,
        Ok(None) => return Ok(None),
        Err(error @ JsonArrayError::TooLong(_)) => return Err(BrokenAnswer::bound(error.to_string())),
        Err(error) => return Err(BrokenAnswer::malformed(error.to_string())),
    };
    Ok(Some(match item {
        json_array::Item::Element { before, json } => {
            let data = Excerpt::Of(0..json.len());
            Unit::Part(Received { name: None, data, before, raw: json, canonical: true, bare: false })
        }
        json_array::Item::Close(tail) | json_array::Item::Space(tail) => Unit::Tail(tail),
    }))
}
