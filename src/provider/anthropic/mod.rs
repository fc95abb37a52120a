//! Anthropic Messages: <https://platform.claude.com/docs/en/api/messages>

use super::adapter::{Adapter, Asked, ErrorAnswer, Framing, Refusal};
use super::answer::Transcript;
use super::endpoint::Call::Post;
use super::endpoint::Endpoints;
use super::request::Draft;
use crate::call::{Api, Denial, Dialect, RequestFacts};

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

/// The dialect.
pub(super) struct Anthropic;

impl Adapter for Anthropic {
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
