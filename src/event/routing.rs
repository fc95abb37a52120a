//! What an event tells of a request that a route of the policy took.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A route, the model that answers by it, and those that were asked before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Route {
    /// The rule that took the request.
    pub rule: Arc<str>,
    /// The label of the model that was asked last; `origin` is where the agent sent the request.
    pub label: Arc<str>,
    /// Who serves its host, in the words of `provider.name`.
    pub vendor: Cow<'static, str>,
    /// Which API is asked there.
    pub api: Cow<'static, str>,
    /// The model as its provider calls it.
    pub model: Arc<str>,
    /// Where it is asked.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// Who was asked, in this order, and what came of it. Of the event of a request, those before the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// One model that was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Attempt {
    /// The label of the model, or `origin`.
    pub label: Arc<str>,
    /// `Answered`, `PassedOver` since it had failed before, or the class of the failure.
    pub class: Cow<'static, str>,
    /// The status of its answer, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}
