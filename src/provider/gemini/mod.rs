//! Gemini's generateContent: <https://ai.google.dev/api/generate-content>

use super::adapter::{Adapter, Asked, ErrorAnswer, Framing, Refusal};
use super::answer::Transcript;
use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use super::request::Draft;
use crate::call::{Api, Denial, Dialect, RequestFacts};

pub(super) const GENERATE_CONTENT: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/models/*:generateContent", Api::GenerateContent),
        (Post, "/models/*:streamGenerateContent", Api::GenerateContent),
        (Post, "/models/*:countTokens", Api::CountTokens),
    ],
};

/// `batchEmbedContents` answers at once, as the official SDKs ask for embeddings; it is no batch job.
pub(super) const EMBED_CONTENT: Endpoints = Endpoints {
    dialect: None,
    rows: &[
        (Post, "/models/*:embedContent", Api::Embeddings),
        (Post, "/models/*:batchEmbedContents", Api::Embeddings),
    ],
};

/// A tuned model of the Gemini API.
pub(super) const TUNED: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/tunedModels/*:generateContent", Api::GenerateContent),
        (Post, "/tunedModels/*:streamGenerateContent", Api::GenerateContent),
    ],
};

/// A model that was deployed to an endpoint of Vertex AI.
pub(super) const DEPLOYED: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/endpoints/*:generateContent", Api::GenerateContent),
        (Post, "/endpoints/*:streamGenerateContent", Api::GenerateContent),
        (Post, "/endpoints/*:countTokens", Api::CountTokens),
    ],
};

/// The login of Gemini's command line, whose bodies wrap the same requests and answers.
pub(super) const CODE_ASSIST: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, ":generateContent", Api::GenerateContent),
        (Post, ":streamGenerateContent", Api::GenerateContent),
        (Post, ":countTokens", Api::CountTokens),
    ],
};

/// The dialect.
pub(super) struct Gemini;

impl Adapter for Gemini {
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
