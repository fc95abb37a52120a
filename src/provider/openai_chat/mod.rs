//! OpenAI Chat Completions, with the endpoints that whoever speaks it has beside it:
//! <https://platform.openai.com/docs/api-reference/chat>

use super::adapter::{Adapter, Asked, ErrorAnswer, Framing, Refusal};
use super::answer::Transcript;
use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use super::request::Draft;
use crate::call::{Api, Denial, Dialect, RequestFacts};

pub(super) const CHAT: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIChat),
    rows: &[(Post, "/chat/completions", Api::ChatCompletions)],
};

pub(super) const EMBEDDINGS: Endpoints =
    Endpoints { dialect: None, rows: &[(Post, "/embeddings", Api::Embeddings)] };

/// The dialect.
pub(super) struct OpenAiChat;

impl Adapter for OpenAiChat {
    fn request(&self, _: &Asked<'_>, _: &mut Draft<'_>) -> Result<(), Denial> {
        Ok(())
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
