//! Writes parts into a stream: as they came where that is possible, else framed anew.

use std::ops::Range;

use bytes::Bytes;

use super::{AnswerPart, BrokenAnswer, Received};
use crate::provider::adapter::Framing;
use crate::wire::event_stream::{self, Header};
use crate::wire::sse::{self, LineEnd, NameLine};

/// Gathers the output for one chunk. Neighbouring bytes of the chunk go on as one slice of it, without a copy.
pub(super) struct PartSink<'a> {
    chunk: Bytes,
    run: Range<usize>,
    out: &'a mut Vec<Bytes>,
}

impl<'a> PartSink<'a> {
    /// `chunk` is what is being read; other bytes go on as well, but one by one.
    pub(super) fn new(chunk: Bytes, out: &'a mut Vec<Bytes>) -> Self {
        Self { chunk, run: 0..0, out }
    }

    /// Lets bytes go on that were received.
    pub(super) fn received(&mut self, bytes: &Bytes) {
        // Slices of the chunk are recognised by their address, so that neighbours are joined without a copy.
        let start = bytes.as_ptr().addr().wrapping_sub(self.chunk.as_ptr().addr());
        let end = start.checked_add(bytes.len()).filter(|end| *end <= self.chunk.len());
        match end {
            _ if bytes.is_empty() => {}
            Some(end) if self.run.end == start && !self.run.is_empty() => self.run.end = end,
            Some(end) => {
                self.flush();
                self.run = start..end;
            }
            None => self.own(bytes.clone()),
        }
    }

    /// Lets bytes of our own go on.
    pub(super) fn own(&mut self, bytes: Bytes) {
        self.flush();
        self.out.push(bytes);
    }

    /// Hands over what has gathered; to be called at the end.
    pub(super) fn flush(&mut self) {
        if !self.run.is_empty() {
            self.out.push(self.chunk.slice(std::mem::take(&mut self.run)));
        }
    }
}

/// Frames parts in the form of one stream.
pub(super) struct Encoder {
    framing: Framing,
    /// Of an array: something went on already, so that a comma comes next.
    begun: bool,
}

impl Encoder {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, begun: false }
    }

    /// Lets a part go on.
    ///
    /// # Errors
    /// If it cannot be framed.
    pub(super) fn part(
        &mut self,
        part: &AnswerPart,
        line_end: LineEnd,
        sink: &mut PartSink<'_>,
    ) -> Result<(), BrokenAnswer> {
        match (part, self.framing) {
            (AnswerPart::Received(received), Framing::Array) => self.element(received, sink),
            (AnswerPart::Received(received), _) if received.canonical => sink.received(&received.raw),
            (AnswerPart::Received(received), Framing::Events(form)) => {
                let data = std::str::from_utf8(received.data())
                    .map_err(|_| BrokenAnswer::malformed("an event is not UTF-8"))?;
                sink.own(event(form.name, received.name(), data, line_end));
            }
            (AnswerPart::Received(received), Framing::EventStream | Framing::Whole) => {
                sink.received(&received.raw)
            }
            (AnswerPart::New { name, json }, Framing::Events(form)) => {
                sink.own(event(form.name, name.as_deref(), json, line_end));
            }
            (AnswerPart::New { name, json }, Framing::EventStream) => sink.own(frame(name.as_deref(), json)?),
            (AnswerPart::New { json, .. }, Framing::Array) => {
                self.separator(sink);
                sink.own(Bytes::copy_from_slice(json.as_bytes()));
            }
            (AnswerPart::New { json, .. }, Framing::Whole) => {
                sink.own(Bytes::copy_from_slice(json.as_bytes()))
            }
        }
        Ok(())
    }

    /// Ends the stream; `tail` is what ended it as it was received.
    pub(super) fn end(&mut self, tail: &[Bytes], sink: &mut PartSink<'_>) {
        if self.framing != Framing::Array {
            return;
        }
        // An array without elements has its opening bracket in front of the closing one.
        let is_whole =
            !self.begun && tail.first().is_some_and(|first| first.trim_ascii_start().starts_with(b"["));
        if !self.begun && !is_whole {
            sink.own(Bytes::from_static(b"["));
        }
        if tail.is_empty() {
            sink.own(Bytes::from_static(b"]"));
        }
        let strip = self.begun || !is_whole;
        for bytes in tail {
            let opening = bytes.iter().position(|byte| *byte == b'[').filter(|_| strip);
            sink.received(&bytes.slice(opening.map_or(0, |opening| opening + 1)..));
        }
        self.begun = true;
    }

    fn element(&mut self, received: &Received, sink: &mut PartSink<'_>) {
        // An element that was removed took its comma with it: the bytes before this one may not fit any more.
        let needed: &[u8] = if self.begun { b"," } else { b"[" };
        if received.before.trim_ascii_start().starts_with(needed) {
            sink.received(&received.before);
            self.begun = true;
        } else {
            self.separator(sink);
        }
        sink.received(&received.raw);
    }

    fn separator(&mut self, sink: &mut PartSink<'_>) {
        sink.own(Bytes::from_static(if self.begun { b"," } else { b"[" }));
        self.begun = true;
    }
}

/// An event in canonical form.
pub(super) fn event(line: NameLine, name: Option<&str>, data: &str, line_end: LineEnd) -> Bytes {
    let mut output = Vec::new();
    sse::encode(name.filter(|_| line == NameLine::Required), data, line_end, &mut output);
    output.into()
}

/// A frame of an AWS event stream: an exception where it is called one.
fn frame(name: Option<&str>, json: &str) -> Result<Bytes, BrokenAnswer> {
    // SDKs raise an exception frame, and read an event frame as a part of the answer.
    let name = name.unwrap_or("chunk");
    let (kind, message) =
        if name.ends_with("Exception") { (":exception-type", "exception") } else { (":event-type", "event") };
    let headers = [
        Header::string(kind, name),
        Header::string(":content-type", "application/json"),
        Header::string(":message-type", message),
    ];
    let mut output = Vec::new();
    let encoded = event_stream::encode(&headers, json.as_bytes(), &mut output);
    encoded.map_err(|error| BrokenAnswer::bound(error.to_string()))?;
    Ok(output.into())
}
