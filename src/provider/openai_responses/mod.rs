//! OpenAI Responses, over HTTP and WebSocket: <https://platform.openai.com/docs/api-reference/responses>

use super::endpoint::Call::{Post, WebSocket};
use super::endpoint::Endpoints;
use crate::call::{Api, Dialect};

pub(super) const RESPONSES: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIResponses),
    rows: &[
        (Post, "/responses", Api::Responses),
        (Post, "/responses/compact", Api::Responses),
        (Post, "/responses/input_tokens", Api::CountTokens),
        (WebSocket, "/responses", Api::Responses),
    ],
};
