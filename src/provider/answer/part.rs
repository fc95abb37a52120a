//! Parts of a stream, as they are received and as they go on.

use std::borrow::Cow;

use bytes::Bytes;

use crate::wire::excerpt::Excerpt;
use crate::wire::json::Value;

/// The memory of a kept part beside its bytes, so that many small parts count as well.
const BESIDE: usize = 160;

/// One part of a stream, parsed.
#[derive(Debug, Clone, Copy)]
pub struct StreamEvent<'a> {
    /// Its name in the framing: the `event:` line, or the header `:event-type`.
    pub name: Option<&'a str>,
    pub json: Value<'a>,
    pub received: &'a Received,
}

impl StreamEvent<'_> {
    /// Whether it is the marker that ends a stream of Chat Completions, `[DONE]`; it is no JSON, and `json` is null.
    pub fn is_done(&self) -> bool {
        self.received.is_done()
    }

    /// Its JSON with one value replaced, and every other byte as it came.
    pub fn replacing(&self, value: Value<'_>, json: &str) -> String {
        let (text, start) = (self.json.raw(), self.json.span().start);
        let span = value.span();
        [&text[..span.start - start], json, &text[span.end - start..]].concat()
    }
}

/// One part as it was received. Cloning it copies no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its name in the framing.
    pub(super) name: Option<Excerpt>,
    /// Its JSON, or the marker in place of JSON (`[DONE]`).
    pub(super) data: Excerpt,
    /// For an element of an array, the bytes between it and the one before.
    pub(super) before: Bytes,
    /// All of it, framing included.
    pub(super) raw: Bytes,
    /// Whether every parser reads `raw` alike, so that it may go on as it is. Else `data` is framed anew.
    pub(super) canonical: bool,
    /// Whether it is JSON without a field of the stream around it.
    pub(super) bare: bool,
}

impl Received {
    /// Its name in the framing; none if that is not UTF-8.
    pub fn name(&self) -> Option<&str> {
        std::str::from_utf8(self.name.as_ref()?.of(&self.raw)).ok()
    }

    /// The same part with the data that its JSON carries (base64 in Bedrock's InvokeModel). It goes on as it came.
    pub fn carrying(&self, data: Bytes) -> Self {
        Self { data: Excerpt::Own(data), ..self.clone() }
    }

    /// Its JSON, or the marker in place of JSON.
    pub fn data(&self) -> &[u8] {
        self.data.of(&self.raw)
    }

    /// The offset of its JSON in `raw`; none if it is not part of `raw`.
    pub(super) fn data_in_raw(&self) -> Option<usize> {
        match &self.data {
            Excerpt::Of(range) => Some(range.start),
            Excerpt::Own(_) => None,
        }
    }

    /// How many bytes of memory it takes while it is held.
    pub fn kept_bytes(&self) -> usize {
        self.raw.len().max(self.data().len()) + BESIDE
    }

    /// Whether it is a line outside of every event of its stream, from which clients take nothing but errors.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    pub(super) fn is_done(&self) -> bool {
        self.data().trim_ascii() == b"[DONE]"
    }
}

/// A part that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    Received(Received),
    /// JSON that Postern wrote, to be framed.
    New {
        name: Option<Cow<'static, str>>,
        json: String,
    },
}

impl AnswerPart {
    /// How many bytes of memory it takes while it is held.
    pub fn kept_bytes(&self) -> usize {
        match self {
            Self::Received(received) => received.kept_bytes(),
            Self::New { json, .. } => json.len() + BESIDE,
        }
    }
}

/// The parts that go on, in order, as a transcript puts them here.
#[derive(Debug, Default)]
pub struct Out {
    parts: Vec<AnswerPart>,
}

impl Out {
    /// Lets a part go on as it came.
    pub fn pass(&mut self, event: &StreamEvent<'_>) {
        self.parts.push(AnswerPart::Received(event.received.clone()));
    }

    /// Lets parts go on that were held.
    pub fn release(&mut self, kept: impl IntoIterator<Item = AnswerPart>) {
        self.parts.extend(kept);
    }

    /// Lets JSON go on that Postern wrote.
    pub fn say(&mut self, name: Option<&'static str>, json: impl Into<String>) {
        self.parts.push(AnswerPart::New { name: name.map(Cow::Borrowed), json: json.into() });
    }

    /// Whether nothing but this part goes on, and as it came.
    pub(super) fn is_only(&self, received: &Received) -> bool {
        let is_same = |raw: &Bytes| raw.as_ptr() == received.raw.as_ptr() && raw.len() == received.raw.len();
        matches!(&self.parts[..], [AnswerPart::Received(part)] if part.canonical && is_same(&part.raw))
    }

    /// Takes all parts.
    pub fn drain(&mut self) -> std::vec::Drain<'_, AnswerPart> {
        self.parts.drain(..)
    }
}
