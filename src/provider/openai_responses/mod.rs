//! OpenAI Responses, over HTTP and WebSocket: <https://platform.openai.com/docs/api-reference/responses>

mod request;

use super::adapter::{Adapter, Asked, ErrorAnswer, Framing, Refusal};
use super::answer::Transcript;
use super::endpoint::Call::{Post, WebSocket};
use super::endpoint::Endpoints;
use super::request::Draft;
use crate::call::{Api, Denial, Dialect, RequestFacts};

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

impl Adapter for OpenAiResponses {
    fn request(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<(), Denial> {
        request::read(asked, draft)
    }

    fn framing(&self, _: &Asked<'_>, _: &RequestFacts, _: &str) -> Framing {
        Framing::Whole
    }

    fn transcript(&self, _: &Asked<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        None
    }

    fn refusal(&self, refusal: &Refusal<'_>) -> ErrorAnswer {
        ErrorAnswer { status: 403, headers: Vec::new(), body: refusal.message.to_owned() }
    }
}
