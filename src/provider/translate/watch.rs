//! Watches an answer that goes on in its own dialect until it begins: up to there another model can answer instead.

use std::collections::VecDeque;

use bytes::Bytes;

use super::failure_of_error;
use crate::call::turn::AnswerFailure;
use crate::call::{Dialect, FailureClass};
use crate::wire::json::{Document, Limits, Value};
use crate::wire::sse;

/// So much of an answer is held at most before it counts as begun.
const MOST_HELD: usize = 64 << 10;

/// One answer.
pub struct MovedAnswer {
    dialect: Dialect,
    /// None of a whole answer.
    events: Option<sse::Decoder>,
    held: Vec<Bytes>,
    held_bytes: usize,
    state: State,
}

enum State {
    Waiting,
    Begun,
    Failed(AnswerFailure),
}

/// What a part of an answer says about its beginning.
enum Part {
    /// The model has not said anything.
    Before,
    Begins,
    Fails(AnswerFailure),
}

impl MovedAnswer {
    /// An answer of one JSON document.
    pub fn whole(dialect: Dialect) -> Self {
        Self { dialect, events: None, held: Vec::new(), held_bytes: 0, state: State::Waiting }
    }

    /// An answer of events in this form, each within a bound.
    pub fn stream(dialect: Dialect, form: sse::Form, event_bytes: usize) -> Self {
        Self { events: Some(sse::Decoder::new(form, event_bytes)), ..Self::whole(dialect) }
    }

    /// Whether bytes of it have gone on.
    pub fn is_begun(&self) -> bool {
        matches!(self.state, State::Begun)
    }

    /// Why it failed before it began.
    pub fn failure(&self) -> Option<&AnswerFailure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            State::Waiting | State::Begun => None,
        }
    }

    /// Takes a piece of the body; what goes on is added to `out`, unchanged.
    pub fn write(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) {
        match self.state {
            State::Begun => return out.push_back(piece),
            State::Failed(_) => return,
            State::Waiting => {}
        }
        self.held_bytes += piece.len();
        self.held.push(piece.clone());
        let part = match &mut self.events {
            None => Part::Before,
            Some(events) => {
                events.push(piece);
                look(self.dialect, events)
            }
        };
        match part {
            Part::Fails(failure) => self.fail(failure),
            Part::Begins => self.begin(out),
            Part::Before if self.held_bytes > MOST_HELD => self.begin(out),
            Part::Before => {}
        }
    }

    /// The body has ended.
    pub fn finish(&mut self, out: &mut VecDeque<Bytes>) {
        if !matches!(self.state, State::Waiting) {
            return;
        }
        let whole = self.held.concat();
        if self.events.is_some() {
            return self
                .fail(AnswerFailure::new(FailureClass::Unavailable, "the answer ended before it began"));
        }
        match whole_part(self.dialect, &whole) {
            Part::Fails(failure) => self.fail(failure),
            Part::Begins | Part::Before => self.begin(out),
        }
    }

    /// The other side went away.
    pub fn broken_off(&mut self) {
        if matches!(self.state, State::Waiting) {
            let failure =
                AnswerFailure::new(FailureClass::Unavailable, "the answer broke off before it began");
            self.fail(failure);
        }
    }

    /// Lets go what was held, whatever it is.
    pub fn begin(&mut self, out: &mut VecDeque<Bytes>) {
        if matches!(self.state, State::Waiting) {
            self.state = State::Begun;
            self.events = None;
            out.extend(self.held.drain(..));
        }
    }

    fn fail(&mut self, failure: AnswerFailure) {
        self.state = State::Failed(failure);
        self.events = None;
        self.held = Vec::new();
    }
}

/// What the events that are there say.
fn look(dialect: Dialect, events: &mut sse::Decoder) -> Part {
    loop {
        let event = match events.next_item() {
            Ok(Some(sse::Item::Event(event))) => event,
            Ok(Some(sse::Item::Filler(_))) => continue,
            Ok(None) => return Part::Before,
            // The guard says what is wrong.
            Err(_) => return Part::Begins,
        };
        match event_part(dialect, &event) {
            Part::Before => {}
            part @ (Part::Begins | Part::Fails(_)) => return part,
        }
    }
}

fn event_part(dialect: Dialect, event: &sse::Event) -> Part {
    let data = event.data();
    let Ok(document) = Document::parse(data, Limits::default()) else { return Part::Begins };
    let root = document.root();
    let kind = entry(root, "type").and_then(Value::text);
    match dialect {
        Dialect::Anthropic => match kind.as_deref() {
            Some("message_start" | "ping") => Part::Before,
            Some("error") => Part::Fails(failure_of(root)),
            Some(_) | None => Part::Begins,
        },
        Dialect::OpenAIResponses => match kind.as_deref() {
            Some("response.created" | "response.in_progress" | "response.queued") => Part::Before,
            Some("error") => Part::Fails(failure_of(root)),
            Some("response.failed") => Part::Fails(failure_of(entry(root, "response").unwrap_or(root))),
            Some(_) | None => Part::Begins,
        },
        Dialect::OpenAIChat => {
            if entry(root, "error").is_some_and(|error| !error.is_null()) {
                return Part::Fails(failure_of(root));
            }
            let says = |choice: Value<'_>| {
                let delta = entry(choice, "delta").and_then(Value::entries);
                let has_more = delta.into_iter().flatten().any(|member| {
                    !member.key.says("role") && !member.value.is_null() && !member.value.says("")
                });
                has_more || entry(choice, "finish_reason").is_some_and(|reason| !reason.is_null())
            };
            let choices = entry(root, "choices").and_then(Value::items);
            if choices.into_iter().flatten().any(says) { Part::Begins } else { Part::Before }
        }
        Dialect::Gemini | Dialect::Bedrock => Part::Begins,
    }
}

/// What a whole answer with a status of success says.
fn whole_part(dialect: Dialect, body: &[u8]) -> Part {
    let unreadable = || Part::Fails(AnswerFailure::unreadable("the answer is no JSON of this API"));
    let Ok(document) = Document::parse(body, Limits::default()) else { return unreadable() };
    let root = document.root();
    let has = |key: &str| entry(root, key).is_some_and(|value| !value.is_null());
    let said = match dialect {
        Dialect::Anthropic => "content",
        Dialect::OpenAIChat => "choices",
        Dialect::OpenAIResponses => "output",
        Dialect::Gemini | Dialect::Bedrock => return Part::Begins,
    };
    match (has(said), has("error")) {
        (true, _) => Part::Begins,
        (false, true) => Part::Fails(failure_of(root)),
        (false, false) => unreadable(),
    }
}

/// What an error in an answer says.
fn failure_of(root: Value<'_>) -> AnswerFailure {
    let error = entry(root, "error").unwrap_or(root);
    let failure = failure_of_error(error);
    match entry(error, "type").and_then(Value::text).as_deref() {
        Some("timeout_error") => AnswerFailure { class: FailureClass::Timeout, ..failure },
        // What its servers have a status for.
        Some("overloaded_error") => AnswerFailure { status: Some(529), ..failure },
        Some("billing_error") => AnswerFailure { class: FailureClass::Quota, ..failure },
        Some(_) | None => failure,
    }
}

fn entry<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: sse::Form =
        sse::Form { name: sse::NameLine::Absent, comments: true, end: sse::End::Data("[DONE]") };

    fn streamed(dialect: Dialect, pieces: &[&str]) -> (MovedAnswer, String) {
        let mut answer = MovedAnswer::stream(dialect, FORM, 1 << 20);
        let mut out = VecDeque::new();
        for piece in pieces {
            answer.write(Bytes::copy_from_slice(piece.as_bytes()), &mut out);
        }
        let text = out.into_iter().map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect();
        (answer, text)
    }

    #[test]
    fn nothing_goes_on_before_the_model_says_something_and_then_all_of_it() {
        for (dialect, before, begins) in [
            (
                Dialect::Anthropic,
                "data: {\"type\":\"message_start\"}\n\n",
                "data: {\"type\":\"content_block_start\"}\n\n",
            ),
            (
                Dialect::OpenAIChat,
                "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            ),
            (
                Dialect::OpenAIResponses,
                "data: {\"type\":\"response.created\"}\n\n",
                "data: {\"type\":\"response.output_item.added\"}\n\n",
            ),
        ] {
            let (answer, text) = streamed(dialect, &[before]);
            assert!(!answer.is_begun() && text.is_empty() && answer.failure().is_none(), "{dialect:?}");
            let (answer, text) = streamed(dialect, &[before, &begins[..9], &begins[9..]]);
            assert!(answer.is_begun(), "{dialect:?}");
            assert_eq!(text, format!("{before}{begins}"));
        }
    }

    #[test]
    fn an_error_before_that_is_a_failure_with_its_class() {
        for (dialect, event, class) in [
            (
                Dialect::Anthropic,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
                FailureClass::Unavailable,
            ),
            (Dialect::OpenAIChat, r#"{"error":{"message":"busy","code":null}}"#, FailureClass::Unavailable),
            (
                Dialect::OpenAIResponses,
                r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"busy"}}}"#,
                FailureClass::RateLimited,
            ),
            (
                Dialect::OpenAIResponses,
                r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"busy"}}}"#,
                FailureClass::ContextLength,
            ),
            (
                Dialect::OpenAIChat,
                r#"{"error":{"type":"invalid_request_error","code":"insufficient_quota","message":"busy"}}"#,
                FailureClass::Quota,
            ),
        ] {
            let (answer, text) = streamed(dialect, &[&format!("data: {event}\n\n")]);
            let failure = answer.failure().unwrap();
            assert_eq!((failure.class, failure.message.as_str(), text.as_str()), (class, "busy", ""));
        }
    }

    #[test]
    fn a_whole_answer_goes_on_unless_it_is_an_error_or_of_another_api() {
        let whole = |body: &str| {
            let (mut answer, mut out) = (MovedAnswer::whole(Dialect::OpenAIChat), VecDeque::new());
            answer.write(Bytes::copy_from_slice(body.as_bytes()), &mut out);
            answer.finish(&mut out);
            (answer.failure().map(|failure| failure.class), out.len())
        };
        assert_eq!(whole(r#"{"choices":[]}"#), (None, 1));
        assert_eq!(whole(r#"{"error":{"message":"no"}}"#), (Some(FailureClass::Unavailable), 0));
        assert_eq!(whole("<html>"), (Some(FailureClass::Translate), 0));
        assert_eq!(whole(r#"{"content":[]}"#), (Some(FailureClass::Translate), 0));
    }
}
