//! Anthropic Messages: <https://platform.claude.com/docs/en/api/messages>

use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use crate::call::{Api, Dialect};

pub(super) const MESSAGES: Endpoints = Endpoints {
    dialect: Some(Dialect::Anthropic),
    rows: &[(Post, "/messages", Api::Messages), (Post, "/messages/count_tokens", Api::CountTokens)],
};

/// The same in Google's spelling, where the model is in the path; tokens are counted by the model `count-tokens`.
pub(super) const RAW_PREDICT: Endpoints = Endpoints {
    dialect: Some(Dialect::Anthropic),
    rows: &[
        (Post, "/models/count-tokens:rawPredict", Api::CountTokens),
        (Post, "/models/*:rawPredict", Api::Messages),
        (Post, "/models/*:streamRawPredict", Api::Messages),
    ],
};
