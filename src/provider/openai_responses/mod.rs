//! OpenAI Responses, over HTTP and WebSocket: <https://platform.openai.com/docs/api-reference/responses>

mod answer;
mod request;

use serde_json::{Value, json};

use super::adapter::{Adapter, Asked, ErrorAnswer, Framing, Refusal};
use super::answer::Transcript;
use super::endpoint::Call::{Post, WebSocket};
use super::endpoint::Endpoints;
use super::request::Draft;
use crate::call::{Answer, Api, Denial, Dialect, RequestFacts};
use crate::wire::json::{self, Document};
use crate::wire::sse::{End, Form, NameLine};

pub(super) const RESPONSES: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIResponses),
    rows: &[
        (Post, "/responses", Api::Responses),
        (Post, "/responses/compact", Api::Responses),
        (Post, "/responses/input_tokens", Api::CountTokens),
        (WebSocket, "/responses", Api::Responses),
    ],
};

/// The dialect.
pub(super) struct OpenAiResponses;

/// How its streams look.
const EVENTS: Form = Form { name: NameLine::Required, comments: true, end: End::Name(&answer::ENDS) };

impl Adapter for OpenAiResponses {
    fn request(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<(), Denial> {
        request::read(asked, draft)
    }

    fn framing(&self, _: &Asked<'_>, facts: &RequestFacts, content_type: &str) -> Framing {
        match content_type {
            "text/event-stream" => Framing::Events(EVENTS),
            "" if facts.stream => Framing::Events(EVENTS),
            _ => Framing::Whole,
        }
    }

    fn transcript(&self, asked: &Asked<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        let has_answer = asked.service.api == Api::Responses;
        has_answer.then(|| Box::new(answer::Responses::default()) as Box<dyn Transcript>)
    }

    fn refusal(&self, refusal: &Refusal<'_>) -> ErrorAnswer {
        let (status, code) = status_and_code(refusal.answer);
        let error = json!({"message": refusal.message, "type": "invalid_request_error", "code": code});
        let mut body = json!({"error": error});
        body["error"]["param"] = Value::Null;
        ErrorAnswer { status, headers: Vec::new(), body: body.to_string() }
    }

    fn refused_message(&self, refusal: &Refusal<'_>, document: &Document<'_>) -> Option<String> {
        let stream = document.root().get("stream_id").ok().flatten().and_then(json::Value::text);
        Some(match refusal.answer {
            // The form from which clients that chain responses send all of the conversation.
            Answer::Recoverable { status, code } => {
                let error =
                    json!({"type": "invalid_request_error", "code": code, "message": refusal.message});
                let mut message = json!({"type": "error", "status": status, "error": error});
                if let Some(stream) = stream {
                    message["stream_id"] = json!(stream);
                }
                message.to_string()
            }
            Answer::Forbidden | Answer::TooLarge | Answer::UnsupportedCoding | Answer::Limited { .. } => {
                answer::refused(refusal.message, stream.as_deref())
            }
        })
    }
}

/// 400 is the one status that every client shows once and does not try again.
fn status_and_code(answer: Answer) -> (u16, &'static str) {
    match answer {
        Answer::Forbidden => (400, "policy_violation"),
        Answer::TooLarge => (413, "policy_violation"),
        Answer::UnsupportedCoding => (415, "policy_violation"),
        Answer::Limited { .. } => (400, "rate_limit_exceeded"),
        Answer::Recoverable { status, code } => (status, code),
    }
}
