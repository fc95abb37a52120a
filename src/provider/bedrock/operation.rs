//! What a request's path asks of Bedrock's runtime: which operation, and of which model.

use crate::call::Api;
use crate::provider::adapter::Asked;
use crate::wire::percent;

/// An operation of the runtime that reads what an agent says to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Converse,
    Invoke,
    CountTokens,
}

/// What the path says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The name of a model or inference profile, or an ARN, as AWS reads it.
    pub(super) model: String,
    pub(super) operation: Operation,
    pub(super) stream: bool,
}

impl Target {
    /// Reads `/model/{modelId}/{operation}`; the model is one label, whatever is escaped in it.
    pub(super) fn of(asked: &Asked<'_>) -> Self {
        let rest = asked.path.strip_prefix("/model/").unwrap_or(asked.path);
        let (label, name) = rest.rsplit_once('/').unwrap_or((rest, ""));
        let decoded = |text: &str| String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned();
        let operation = if asked.service.api == Api::Converse {
            Operation::Converse
        } else if asked.service.api == Api::CountTokens {
            Operation::CountTokens
        } else {
            Operation::Invoke
        };
        Self { model: decoded(label), operation, stream: decoded(name).ends_with("-stream") }
    }

    /// Whether the model is a prompt that is kept at the provider: its text, tools and model are not in the request.
    pub(super) fn is_prompt(&self) -> bool {
        let mut parts = self.model.splitn(6, ':');
        parts.next() == Some("arn") && parts.nth(4).is_some_and(|resource| resource.starts_with("prompt/"))
    }
}
