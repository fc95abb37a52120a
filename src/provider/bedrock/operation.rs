//! Reads the path of a request to Bedrock's runtime: the operation and the model.

use crate::call::Api;
use crate::provider::adapter::ModelRequestHead;
use crate::wire::percent;

/// An operation of the runtime that reads what an agent says to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuntimeOperation {
    Converse,
    Invoke,
    CountTokens,
}

/// The operation and the model in a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RuntimeTarget {
    /// The name of a model or inference profile, or an ARN, as AWS reads it.
    pub(super) model: String,
    pub(super) operation: RuntimeOperation,
    pub(super) stream: bool,
}

impl RuntimeTarget {
    /// Reads `/model/{modelId}/{operation}`; the model is one label, whatever is escaped in it.
    pub(super) fn of(head: &ModelRequestHead<'_>) -> Self {
        let rest = head.path.strip_prefix("/model/").unwrap_or(head.path);
        let (label, name) = rest.rsplit_once('/').unwrap_or((rest, ""));
        let decoded = |text: &str| String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned();
        let operation = if head.service.api == Api::Converse {
            RuntimeOperation::Converse
        } else if head.service.api == Api::CountTokens {
            RuntimeOperation::CountTokens
        } else {
            RuntimeOperation::Invoke
        };
        Self { model: decoded(label), operation, stream: decoded(name).ends_with("-stream") }
    }

    /// Whether the model is a prompt that is kept at the provider: its text, tools and model are not in the request.
    pub(super) fn is_prompt(&self) -> bool {
        let mut parts = self.model.splitn(6, ':');
        parts.next() == Some("arn") && parts.nth(4).is_some_and(|resource| resource.starts_with("prompt/"))
    }
}
