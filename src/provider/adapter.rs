//! The trait of a dialect: its requests, answers and refusals; one implementation per folder.

use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;

use super::answer::Transcript;
use super::endpoint::Mount;
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Denial, RequestFacts, Service};
use crate::wire::json::{Document, Limits, Value};
use crate::wire::sse;

/// A dialect.
pub trait Adapter: Sync {
    /// What is spoken at a host of which only a rule's `provider` says that it is this dialect: its endpoints, at each
    /// base where a vendor has them.
    fn mounts(&self) -> &'static [Mount];

    /// Reads a request's body: says what it is ([`RequestEditor::facts`]), asks policy about all that would act at the
    /// provider, and takes out or corrects what may not go on.
    ///
    /// # Errors
    /// If the request must not go on, or cannot be understood.
    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial>;

    /// Marks the parts of a request's body by whose text they are, and which of them are no text.
    fn mark<'d>(&self, head: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>);

    /// Marks the calls that a message of a WebSocket's answer has whole.
    fn mark_answer<'d>(&self, _message: Value<'d>, _marks: &mut Marks<'d>) {}

    /// Whether the provider keeps the answer to a request, so that a later one may go on from it by its id alone.
    fn keeps_answer(&self, _body: Value<'_>) -> bool {
        false
    }

    /// Whether the provider takes the body as its client made it alone, so that no text in it may be replaced.
    fn is_attested(&self, _head: &ModelRequestHead<'_>, _editor: &RequestEditor<'_>) -> bool {
        false
    }

    /// The request that a body carries in a coded text, as a count of tokens may; none where it carries none.
    fn carried<'h>(
        &self,
        _head: &ModelRequestHead<'h>,
        _body: &[u8],
        _limits: Limits,
    ) -> Option<(ModelRequestHead<'h>, CarriedBody)> {
        None
    }

    /// How an answer with this content type is framed. `content_type` is in lower case, without parameters; empty
    /// where the answer has none.
    fn framing(&self, head: &ModelRequestHead<'_>, facts: &RequestFacts, content_type: &str) -> Framing;

    /// A reader of one answer; none where no answer of this endpoint holds what a model wrote (counts of tokens).
    fn transcript(&self, head: &ModelRequestHead<'_>, facts: &RequestFacts) -> Option<Box<dyn Transcript>>;

    /// A refusal in the shape of the dialect's own errors, with the status that its clients show once.
    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer;

    /// Returns the refusal as a message of a WebSocket, in answer to `document`; none if the dialect has no WebSocket.
    fn refused_message(&self, _refusal: &RefusalMessage<'_>, _document: &Document<'_>) -> Option<String> {
        None
    }
}

/// A request, but for its body.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequestHead<'a> {
    pub service: Service,
    /// As it was sent, without the query.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// Whether the agent's login is that of a person's subscription ([`super::is_subscription`]).
    pub is_subscription: bool,
}

/// A body that another one carries, in base64 within a JSON string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedBody {
    /// The string in the outer body, with its quotes.
    pub at: Range<usize>,
    pub body: Bytes,
}

impl CarriedBody {
    /// Returns the outer body with this one in the place of what it carried.
    pub fn replaced(&self, outer: &[u8], inner: &[u8]) -> Vec<u8> {
        let coded = BASE64_STANDARD.encode(inner);
        let before = outer.get(..self.at.start).unwrap_or_default();
        let after = outer.get(self.at.end..).unwrap_or_default();
        [before, b"\"", coded.as_bytes(), b"\"", after].concat()
    }
}

/// How an answer's body is cut into parts that are JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON document.
    Whole,
    /// Server-sent events, in canonical form where they look like this.
    Events(sse::Form),
    /// AWS event stream frames with JSON in them.
    EventStream,
    /// A JSON array of objects that streams.
    Array,
}

/// A refusal, before a dialect formats it.
#[derive(Debug, Clone, Copy)]
pub struct RefusalMessage<'a> {
    pub service: Service,
    /// For people: what was blocked, by which rule and why; several lines.
    pub message: &'a str,
    pub answer: crate::call::DenialForm,
}

/// A refusal in a dialect's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorAnswer {
    pub status: u16,
    /// Beside `content-type: application/json`.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: String,
}
