//! Gemini's generateContent: <https://ai.google.dev/api/generate-content>

use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use crate::call::{Api, Dialect};

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
