//! Reads one JSON document of an answer: a chunk of a stream, or a whole answer.

use std::borrow::Cow;

use super::same::SameKind;
use crate::call::turn::said::JsonText;
use crate::provider::openai_chat::transform::{groq, reasoning};
use crate::wire::json::{Kind, Value};

/// What a document says. Values that are null count as absent.
#[derive(Default)]
pub(super) struct Chunk<'d> {
    pub(super) id: Option<Cow<'d, str>>,
    pub(super) model: Option<Cow<'d, str>>,
    pub(super) usage: Option<Value<'d>>,
    /// Moonshot's place for it.
    pub(super) choice_usage: Option<Value<'d>>,
    pub(super) groq: Option<Value<'d>>,
    pub(super) error: Option<Value<'d>>,
    /// The first choice is in it.
    pub(super) has_choice: bool,
    /// The choice has a `delta`, and no `message`.
    pub(super) is_delta: bool,
    /// By [`reasoning::TEXT_KEYS`].
    pub(super) reasoning: [Option<JsonText<'d>>; 2],
    pub(super) details: Option<Value<'d>>,
    /// A string, or a list of parts.
    pub(super) content: Option<Value<'d>>,
    pub(super) refusal: Option<JsonText<'d>>,
    pub(super) calls: Vec<CallPiece<'d>>,
    pub(super) finish: Option<Finish>,
    /// What no agent can have: stable words.
    pub(super) dropped: Vec<&'static str>,
    /// OpenAI's padding of chunks to one length.
    pub(super) padding: Option<Value<'d>>,
    /// The value of the reasoning that is a string.
    reasoning_value: Option<Value<'d>>,
}

/// An entry about a call: all of it, or the next piece.
#[derive(Default)]
pub(super) struct CallPiece<'d> {
    pub(super) key: Option<CallKey>,
    pub(super) id: Option<Cow<'d, str>>,
    pub(super) name: Option<Cow<'d, str>>,
    pub(super) arguments: Option<JsonText<'d>>,
    /// A custom tool was called, whose input is a text.
    pub(super) is_custom: bool,
}

/// By what pieces of one call are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKey {
    Index(u64),
    /// The one `function_call` of the time before tools.
    Function,
}

/// The end of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finish {
    /// With vLLM's `stop_reason`, if it is a text.
    Done {
        sequence: Option<String>,
    },
    Length,
    Filtered,
    /// OpenRouter's word for an error of the server behind it.
    Failed,
}

/// Why a document cannot be read: a few stable words.
pub(super) type Unreadable = &'static str;

/// Reads a document.
///
/// # Errors
/// If it is no chunk or answer, or a key that matters stands twice.
pub(super) fn read(root: Value<'_>, is_stream: bool) -> Result<Chunk<'_>, Unreadable> {
    let mut chunk = Chunk { error: error_of(root), ..Chunk::default() };
    if chunk.error.is_some() {
        return Ok(chunk);
    }
    let mut is_known = false;
    for (key, value) in entries(root, "a chunk is no object")? {
        match &*key {
            "choices" => choices(value, &mut chunk, is_stream)?,
            "usage" => chunk.usage = Some(value),
            "id" => chunk.id = value.text(),
            "model" => chunk.model = value.text(),
            groq::KEY => chunk.groq = Some(value),
            "obfuscation" => chunk.padding = Some(value),
            "object" => {}
            _ => continue,
        }
        is_known |= !matches!(&*key, "id" | "model" | "obfuscation");
    }
    if is_known { Ok(chunk) } else { Err("a chunk is none of Chat Completions") }
}

/// The error that a document tells: an object, or a text. Google writes a list with an object in it, vLLM's older
/// versions have no `error` around it.
pub(super) fn error_of(root: Value<'_>) -> Option<Value<'_>> {
    let object = match root.kind() {
        Kind::Array => root.items()?.next()?,
        Kind::Object => root,
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => return None,
    };
    let of = |key: &str| object.get(key).ok().flatten().filter(|value| !value.is_null());
    match of("error") {
        Some(error) => Some(error).filter(|error| says(*error)),
        None => of("object").filter(|kind| kind.says("error")).map(|_| object),
    }
}

/// The entries of an object that are not null.
fn entries<'d>(
    object: Value<'d>,
    otherwise: Unreadable,
) -> Result<impl Iterator<Item = (Cow<'d, str>, Value<'d>)>, Unreadable> {
    if object.duplicate().is_some() {
        return Err("a key stands twice in a chunk");
    }
    let entries = object.entries().ok_or(otherwise)?.filter(|entry| !entry.value.is_null());
    Ok(entries.map(|entry| (entry.key.text().unwrap_or_default(), entry.value)))
}

fn choices<'d>(list: Value<'d>, chunk: &mut Chunk<'d>, is_stream: bool) -> Result<(), Unreadable> {
    let items = list.items().ok_or("`choices` is no list")?;
    for (position, value) in items.enumerate() {
        let index = value.get("index").map_err(|_| "a key stands twice in a chunk")?;
        let index = index.filter(|index| !index.is_null()).map_or(Ok(position as u64), number)?;
        if index != 0 {
            chunk.dropped.push("choice");
        } else if chunk.has_choice {
            return Err("a chunk has its first choice twice");
        } else {
            choice(value, chunk, is_stream)?;
        }
    }
    Ok(())
}

fn number(value: Value<'_>) -> Result<u64, Unreadable> {
    value.number_text().and_then(|text| text.parse().ok()).ok_or("an `index` is no number")
}

fn choice<'d>(value: Value<'d>, chunk: &mut Chunk<'d>, is_stream: bool) -> Result<(), Unreadable> {
    chunk.has_choice = true;
    let (mut delta, mut message, mut finish, mut sequence) = (None, None, None, None);
    for (key, value) in entries(value, "a choice is no object")? {
        match &*key {
            "delta" => delta = Some(value),
            "message" => message = Some(value),
            "finish_reason" => finish = value.text(),
            "stop_reason" => sequence = value.text(),
            "usage" => chunk.choice_usage = Some(value),
            "error" if says(value) => chunk.error = Some(value),
            "logprobs" => chunk.dropped.push("logprobs"),
            _ => {}
        }
    }
    let said = if is_stream { delta.or(message) } else { message.or(delta) };
    chunk.is_delta = is_stream && delta.is_some();
    if let Some(said) = said {
        delta_or_message(said, chunk)?;
    }
    chunk.finish = finish.map(|word| match &*word {
        "length" => Finish::Length,
        "content_filter" => Finish::Filtered,
        "error" => Finish::Failed,
        _ => Finish::Done { sequence: sequence.map(Cow::into_owned) },
    });
    Ok(())
}

fn delta_or_message<'d>(said: Value<'d>, chunk: &mut Chunk<'d>) -> Result<(), Unreadable> {
    for (key, value) in entries(said, "what a choice says is no object")? {
        match &*key {
            "content" => chunk.content = Some(value).filter(|value| says(*value)),
            key if reasoning::TEXT_KEYS.contains(&key) => keep_reasoning(key, value, chunk),
            "reasoning_details" => chunk.details = Some(value).filter(|value| says(*value)),
            "refusal" => chunk.refusal = JsonText::of(value),
            "tool_calls" => {
                for item in value.items().ok_or("`tool_calls` is no list")? {
                    chunk.calls.push(call(item)?);
                }
            }
            "function_call" => {
                let mut piece = CallPiece { key: Some(CallKey::Function), ..CallPiece::default() };
                function(value, &mut piece)?;
                chunk.calls.push(piece);
            }
            "annotations" if says(value) => chunk.dropped.push("annotations"),
            "audio" if says(value) => chunk.dropped.push("audio"),
            "images" if says(value) => chunk.dropped.push("images"),
            "executed_tools" if says(value) => chunk.dropped.push("executed_tools"),
            _ => {}
        }
    }
    Ok(())
}

fn keep_reasoning<'d>(key: &str, value: Value<'d>, chunk: &mut Chunk<'d>) {
    let text = JsonText::of(value);
    chunk.reasoning_value = chunk.reasoning_value.or(text.is_some().then_some(value));
    let places = reasoning::TEXT_KEYS.iter().zip(&mut chunk.reasoning);
    for (_, place) in places.filter(|(own, _)| **own == key) {
        *place = text;
    }
}

fn call(item: Value<'_>) -> Result<CallPiece<'_>, Unreadable> {
    let mut piece = CallPiece::default();
    for (key, value) in entries(item, "a tool call is no object")? {
        match &*key {
            "index" => piece.key = Some(CallKey::Index(number(value)?)),
            "id" => piece.id = text(value)?,
            "function" => function(value, &mut piece)?,
            "custom" => piece.is_custom = true,
            "type" => piece.is_custom |= value.says("custom"),
            _ => {}
        }
    }
    Ok(piece)
}

fn function<'d>(value: Value<'d>, piece: &mut CallPiece<'d>) -> Result<(), Unreadable> {
    for (key, value) in entries(value, "the function of a tool call is no object")? {
        match &*key {
            "name" => piece.name = text(value)?,
            // Some servers give an object instead of its text.
            "arguments" if value.kind() != Kind::String => {
                piece.arguments = Some(JsonText::Plain(value.raw()));
            }
            "arguments" => piece.arguments = JsonText::of(value),
            _ => {}
        }
    }
    Ok(())
}

/// A string that says something. Some servers write numbers as ids.
fn text(value: Value<'_>) -> Result<Option<Cow<'_, str>>, Unreadable> {
    let text = value.text().or_else(|| value.number_text().map(Cow::Borrowed));
    let text = text.ok_or("the name or id of a tool call is no string")?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Whether a value says something.
fn says(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::String => !value.says(""),
        Kind::Array => value.items().is_some_and(|mut items| items.next().is_some()),
        Kind::Object => value.entries().is_some_and(|mut entries| entries.next().is_some()),
        Kind::Bool => value.as_bool() == Some(true),
        Kind::Number => true,
    }
}

impl<'d> Chunk<'d> {
    /// The piece of text or reasoning, if nothing else in the chunk has an effect once its id and model are known.
    pub(super) fn alone(&self) -> Option<(SameKind, Value<'d>)> {
        let is_plain = self.has_choice
            && self.is_delta
            && self.usage.is_none()
            && self.choice_usage.is_none()
            && self.groq.is_none()
            && self.error.is_none()
            && self.finish.is_none()
            && self.details.is_none()
            && self.refusal.is_none()
            && self.calls.is_empty()
            && self.dropped.is_empty();
        let text = self.content.filter(|content| content.kind() == Kind::String);
        match (text, self.reasoning) {
            (Some(text), [None, None]) if is_plain => Some((SameKind::Text, text)),
            (None, [Some(_), None] | [None, Some(_)]) if is_plain && self.content.is_none() => {
                self.reasoning_value.map(|value| (SameKind::Reasoning, value))
            }
            _ => None,
        }
    }
}
