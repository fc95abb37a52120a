//! Reads answers of InvokeModel: unwraps each part, lets the reader of its API judge it, and wraps what changed.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;

use crate::call::Usage;
use crate::provider::answer::member::{count, present, text};
use crate::provider::answer::{
    AnswerPart, BrokenAnswer, Gate, KeepAlive, Out, StreamEvent, Transcript, may_hold_call,
};
use crate::provider::anthropic::MessagesTranscript;
use crate::provider::bedrock::converse;
use crate::provider::bedrock::error::break_off;
use crate::provider::bedrock::plain;
use crate::wire::json::{Document, Kind, Limits, Value};

/// The frames that hold what a model says; others are exceptions.
const CHUNK: &str = "chunk";

/// The object of counts that AWS adds to the last part.
const METRICS: &str = "amazon-bedrock-invocationMetrics";

/// In which API an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvokeApi {
    Messages,
    Nova,
    Chat,
}

/// Reads one answer.
pub(in crate::provider::bedrock) struct InvokeTranscript {
    model: String,
    /// The reader of Chat Completions, until it is needed.
    chat: Option<Box<dyn Transcript>>,
    /// The reader of the API, once a part has shown which it is.
    inner: Option<(InvokeApi, Box<dyn Transcript>)>,
    out: Out,
}

impl InvokeTranscript {
    pub(in crate::provider::bedrock) fn new(model: String, chat: Option<Box<dyn Transcript>>) -> Self {
        Self { model, chat, inner: None, out: Out::default() }
    }

    /// Returns the reader of an API; none if the one for Chat Completions was taken already.
    fn reader(&mut self, api: InvokeApi) -> Option<Box<dyn Transcript>> {
        Some(match api {
            InvokeApi::Messages => Box::new(MessagesTranscript::default()),
            InvokeApi::Chat => self.chat.take()?,
            InvokeApi::Nova => {
                let model = Some(self.model.clone());
                Box::new(converse::ConverseTranscript::new(converse::EventShape::Keyed, model))
            }
        })
    }

    /// Reads the JSON that a frame carries.
    fn chunk(&mut self, event: &StreamEvent<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        let json = event.json;
        // The first part that shows an API decides for the stream. A part that shows none belongs to any.
        match (streamed(json)?, &self.inner) {
            (Some(api), None) => self.inner = self.reader(api).map(|reader| (api, reader)),
            (Some(api), Some((known, _))) if *known == api => {}
            (Some(_), Some(_)) => {
                return Err(BrokenAnswer::ambiguous("the answer changes from one API to another"));
            }
            (None, _) => plain::check(json)?,
        }
        match &mut self.inner {
            Some((_, reader)) => reader.event(event, gate, &mut self.out)?,
            None => self.out.pass(event),
        }
        metrics(json, &mut gate.facts.usage)
    }

    /// Puts the parts that the reader let go on into frames.
    fn wrap(&mut self, out: &mut Out) {
        for part in self.out.drain() {
            match part {
                // What was kept is the frame itself.
                AnswerPart::Received(received) => out.release([AnswerPart::Received(received)]),
                AnswerPart::New { json, .. } => {
                    out.say(Some(CHUNK), format!(r#"{{"bytes":"{}"}}"#, BASE64_STANDARD.encode(json)));
                }
            }
        }
    }
}

impl Transcript for InvokeTranscript {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        if gate.facts.model.is_none() {
            gate.facts.model = Some(self.model.clone());
        }
        if event.name != Some(CHUNK) {
            out.pass(event);
            return Ok(());
        }
        let Some(encoded) = text(event.json, "bytes")? else {
            plain::check(event.json)?;
            out.pass(event);
            return Ok(());
        };
        let unread =
            |error: &dyn std::fmt::Display| BrokenAnswer::malformed(format!("a part of the answer: {error}"));
        let decoded = BASE64_STANDARD.decode(encoded.as_bytes()).map_err(|error| unread(&error))?;
        let document = Document::parse(&decoded, Limits::default()).map_err(|error| unread(&error))?;
        let json = document.root();
        // The part is held and goes on as the frame that came; only an edited one is encoded again.
        let received = event.received.carrying(Bytes::copy_from_slice(&decoded));
        let name = if json.kind() == Kind::Object { text(json, "type")? } else { None };
        let read = self.chunk(&StreamEvent { name: name.as_deref(), json, received: &received }, gate);
        self.wrap(out);
        read
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        let Some((_, reader)) = &mut self.inner else { return Ok(()) };
        let ended = reader.end(gate, &mut self.out);
        self.wrap(out);
        ended
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        let root = body.root();
        gate.facts.model = Some(self.model.clone());
        let edited = match answered(root)? {
            Some(api) => self.reader(api).map_or(Ok(None), |mut reader| reader.whole(body, gate))?,
            None => {
                plain::check(root)?;
                None
            }
        };
        metrics(root, &mut gate.facts.usage)?;
        Ok(edited)
    }

    fn is_in_call(&self) -> bool {
        self.inner.as_ref().is_some_and(|(_, reader)| reader.is_in_call())
    }

    /// The model's part is in base64: bytes that cannot be decoded may be anything.
    fn suspects(&self, unread: &[u8]) -> bool {
        let Some((_, encoded)) =
            std::str::from_utf8(unread).ok().and_then(|text| text.split_once("\"bytes\""))
        else {
            return may_hold_call(unread);
        };
        let encoded = encoded.trim_start_matches([' ', ':', '"']).split('"').next().unwrap_or_default();
        may_hold_call(unread) || BASE64_STANDARD.decode(encoded).map_or(true, |plain| may_hold_call(&plain))
    }

    fn skipped(&mut self) {
        if let Some((_, reader)) = &mut self.inner {
            reader.skipped();
        }
    }

    fn held(&self) -> usize {
        self.inner.as_ref().map_or(0, |(_, reader)| reader.held())
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Nothing
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        break_off(message, out);
    }
}

/// The API of a part of a stream; none where it shows none.
fn streamed(json: Value<'_>) -> Result<Option<InvokeApi>, BrokenAnswer> {
    if json.kind() != Kind::Object {
        return Ok(None);
    }
    if let Some(duplicate) = json.duplicate() {
        return Err(BrokenAnswer::ambiguous(format!("a part of the answer: {duplicate}")));
    }
    let is_event = |kind: &str| {
        kind.starts_with("message_") || kind.starts_with("content_block_") || matches!(kind, "ping" | "error")
    };
    let is_messages = text(json, "type")?.is_some_and(|kind| is_event(&kind));
    let is_nova = converse::KNOWN.iter().any(|event| matches!(json.get(event), Ok(Some(_))));
    let is_chat = present(json, "choices")?.is_some();
    match (is_messages, is_nova, is_chat) {
        (true, false, false) => Ok(Some(InvokeApi::Messages)),
        (false, true, false) => Ok(Some(InvokeApi::Nova)),
        (false, false, true) => Ok(Some(InvokeApi::Chat)),
        (false, false, false) => Ok(None),
        (_, _, _) => Err(BrokenAnswer::ambiguous("a part of the answer is of several APIs")),
    }
}

/// The API of an answer that came whole; none where it shows none.
fn answered(root: Value<'_>) -> Result<Option<InvokeApi>, BrokenAnswer> {
    if root.kind() != Kind::Object {
        return Ok(None);
    }
    if let Some(duplicate) = root.duplicate() {
        return Err(BrokenAnswer::ambiguous(format!("the answer: {duplicate}")));
    }
    let output = present(root, "output")?.filter(|output| output.kind() == Kind::Object);
    let is_nova = output.map_or(Ok(None), |output| present(output, "message"))?.is_some();
    let is_messages = present(root, "content")?.is_some();
    let is_chat = present(root, "choices")?.is_some();
    match (is_messages, is_nova, is_chat) {
        (true, false, false) => Ok(Some(InvokeApi::Messages)),
        (false, true, false) => Ok(Some(InvokeApi::Nova)),
        (false, false, true) => Ok(Some(InvokeApi::Chat)),
        (false, false, false) => Ok(None),
        (_, _, _) => Err(BrokenAnswer::ambiguous("the answer is of several APIs")),
    }
}

/// Reads the counts that AWS adds, for those that the model's own API does not have.
fn metrics(json: Value<'_>, usage: &mut Usage) -> Result<(), BrokenAnswer> {
    if json.kind() != Kind::Object {
        return Ok(());
    }
    let Some(said) = present(json, METRICS)? else { return Ok(()) };
    let (read, write) = (count(said, "cacheReadInputTokenCount")?, count(said, "cacheWriteInputTokenCount")?);
    if let (None, Some(fresh)) = (usage.input, count(said, "inputTokenCount")?) {
        usage.input = Some(fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0)));
        usage.cache_read = usage.cache_read.or(read);
        usage.cache_write = usage.cache_write.or(write);
    }
    usage.output = usage.output.or(count(said, "outputTokenCount")?);
    Ok(())
}
