//! Parts of a stream: as they were received, and as they go on.

use std::borrow::Cow;

use bytes::Bytes;

use crate::wire::excerpt::Excerpt;
use crate::wire::json::Value;

/// What a part that is kept takes beside its bytes: the smallest have three of them.
const BESIDE: usize = 160;

/// One part of a stream, parsed.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// What the framing calls it: the `event:` line, or the header `:event-type`.
    pub name: Option<&'a str>,
    pub json: Value<'a>,
    pub received: &'a Received,
}

impl Event<'_> {
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
    /// What the framing calls it.
    pub(super) name: Option<Excerpt>,
    /// Its JSON, or what stands in the place of JSON (`[DONE]`).
    pub(super) data: Excerpt,
    /// Of an array's element, what stands between it and the one before.
    pub(super) before: Bytes,
    /// All of it, framing included.
    pub(super) raw: Bytes,
    /// Whether `raw` has one reading for every parser, and may go on as it is. Else `data` is framed anew.
    pub(super) canonical: bool,
    /// Whether it is JSON without a field of the stream around it.
    pub(super) bare: bool,
}

impl Received {
    /// What the framing calls it; none also where that is not UTF-8.
    pub fn name(&self) -> Option<&str> {
        std::str::from_utf8(self.name.as_ref()?.of(&self.raw)).ok()
    }

    /// The same part, read by what its JSON carries (base64 in Bedrock's InvokeModel). It goes on as it came.
    pub fn carrying(&self, data: Bytes) -> Self {
        Self { data: Excerpt::Own(data), ..self.clone() }
    }

    /// Its JSON, or what stands in the place of JSON.
    pub fn data(&self) -> &[u8] {
        self.data.of(&self.raw)
    }

    /// Where in `raw` its JSON begins; none where it is bytes of its own.
    pub(super) fn data_in_raw(&self) -> Option<usize> {
        match &self.data {
            Excerpt::Of(range) => Some(range.start),
            Excerpt::Own(_) => None,
        }
    }

    /// How many bytes of memory it takes while it is kept.
    pub fn kept_bytes(&self) -> usize {
        self.raw.len().max(self.data().len()) + BESIDE
    }

    /// Whether it stands in no event of its stream: an error, where the dialect's clients take nothing else from there.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    pub(super) fn is_done(&self) -> bool {
        self.data().trim_ascii() == b"[DONE]"
    }
}

/// What goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Received(Received),
    /// JSON of our own, to be framed.
    New {
        name: Option<Cow<'static, str>>,
        json: String,
    },
}

impl Part {
    /// How many bytes of memory it takes while it is kept.
    pub fn kept_bytes(&self) -> usize {
        match self {
            Self::Received(received) => received.kept_bytes(),
            Self::New { json, .. } => json.len() + BESIDE,
        }
    }
}

/// Where a transcript puts what goes on, in order.
#[derive(Debug, Default)]
pub struct Out {
    parts: Vec<Part>,
}

impl Out {
    /// Lets a part go on as it came.
    pub fn pass(&mut self, event: &Event<'_>) {
        self.parts.push(Part::Received(event.received.clone()));
    }

    /// Lets go on what was kept.
    pub fn release(&mut self, kept: impl IntoIterator<Item = Part>) {
        self.parts.extend(kept);
    }

    /// Says something of our own.
    pub fn say(&mut self, name: Option<&'static str>, json: impl Into<String>) {
        self.parts.push(Part::New { name: name.map(Cow::Borrowed), json: json.into() });
    }

    /// Whether this part, as it came, is all that goes on.
    pub(super) fn is_only(&self, received: &Received) -> bool {
        let is_same = |raw: &Bytes| raw.as_ptr() == received.raw.as_ptr() && raw.len() == received.raw.len();
        matches!(&self.parts[..], [Part::Received(part)] if part.canonical && is_same(&part.raw))
    }

    /// Takes out all that was put in.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Part> {
        self.parts.drain(..)
    }
}
