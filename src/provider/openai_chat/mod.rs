//! OpenAI Chat Completions, with the endpoints that whoever speaks it has beside it:
//! <https://platform.openai.com/docs/api-reference/chat>

use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use crate::call::{Api, Dialect};

pub(super) const CHAT: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIChat),
    rows: &[(Post, "/chat/completions", Api::ChatCompletions)],
};

pub(super) const EMBEDDINGS: Endpoints =
    Endpoints { dialect: None, rows: &[(Post, "/embeddings", Api::Embeddings)] };
