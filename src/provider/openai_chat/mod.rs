//! OpenAI Chat Completions, with the endpoints that whoever speaks it has beside it:
//! <https://platform.openai.com/docs/api-reference/chat>

mod choice;
mod chunk;
mod edit;
mod extent;
mod hear;
mod hosted;
mod messages;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod recording_tests;
mod request;
#[cfg(test)]
mod request_tests;
mod rewrite;
mod roles;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod testing;
mod tools;
mod transcript;
pub(super) mod transform;
mod usage;
mod whole;
#[cfg(test)]
mod whole_tests;

pub(super) use hear::{ChatReader, ChatTerms};
pub(super) use roles::mark as mark_roles;

use super::adapter::{Adapter, ErrorAnswer, Framing, ModelRequestHead, RefusalMessage};
use super::answer::Transcript;
use super::endpoint::EndpointMethod::Post;
use super::endpoint::{Endpoints, MODELS, Mount};
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Api, Denial, DenialForm, Dialect, RequestFacts};
use crate::wire::sse;

pub(super) const CHAT: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIChat),
    rows: &[(Post, "/chat/completions", Api::ChatCompletions)],
};

pub(super) const EMBEDDINGS: Endpoints =
    Endpoints { dialect: None, rows: &[(Post, "/embeddings", Api::Embeddings)] };

/// The bases at which vendors have OpenAI's APIs.
pub(super) const BASES: &[&str] = &["", "/v1", "/openai/v1", "/api/v1"];

/// At a host of which only a rule says that it speaks this.
const MOUNTS: &[Mount] = &[
    Mount { at: BASES, of: &CHAT },
    Mount { at: BASES, of: &EMBEDDINGS },
    Mount { at: BASES, of: &MODELS },
    Mount { at: &["/openai/deployments/*"], of: &CHAT },
    Mount { at: &["/openai/deployments/*"], of: &EMBEDDINGS },
];

/// The dialect.
pub(super) struct OpenAiChat;

/// No event has a name, vendors keep connections alive with comments, and a marker ends the stream.
const FORM: sse::Form =
    sse::Form { name: sse::NameLine::Absent, comments: true, end: sse::End::Data("[DONE]") };

impl Adapter for OpenAiChat {
    fn mounts(&self) -> &'static [Mount] {
        MOUNTS
    }

    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
        request::read(head, editor)
    }

    fn mark<'d>(&self, _: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>) {
        roles::mark(editor.root(), marks);
    }

    fn framing(&self, _: &ModelRequestHead<'_>, facts: &RequestFacts, content_type: &str) -> Framing {
        match content_type {
            "text/event-stream" => Framing::Events(FORM),
            // Clients read a stream where they asked for one, whatever it is called.
            "application/json" => Framing::Whole,
            _ if facts.stream => Framing::Events(FORM),
            _ => Framing::Whole,
        }
    }

    fn transcript(&self, _: &ModelRequestHead<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        Some(Box::new(transcript::ChatTranscript::default()))
    }

    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer {
        let (status, code) = match refusal.answer {
            DenialForm::Forbidden => (400, "policy_violation"),
            DenialForm::TooLarge => (413, "request_too_large"),
            DenialForm::UnsupportedCoding => (415, "unsupported_content_encoding"),
            // A client hides the message of a 429, and tries again.
            DenialForm::Limited { .. } => (400, "rate_limit_exceeded"),
            DenialForm::Recoverable { status, code } => (status, code),
        };
        ErrorAnswer { status, headers: Vec::new(), body: error(refusal.message, code) }
    }
}

/// An error as the official clients show it: <https://platform.openai.com/docs/guides/error-codes>
fn error(message: &str, code: &str) -> String {
    let message = serde_json::Value::from(message);
    let code = serde_json::Value::from(code);
    format!(
        r#"{{"error":{{"message":{message},"type":"invalid_request_error","param":null,"code":{code}}}}}"#
    )
}
