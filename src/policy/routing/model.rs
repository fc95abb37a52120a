//! A model that requests are routed to, compiled.

use std::sync::Arc;

use super::{Effort, Images, ModelProvider};
use crate::decision::RuleId;

/// A model of a provider, by its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// `namespace/policy/models/LABEL`
    pub id: RuleId,
    /// `[A-Za-z0-9._-]{1,63}`, never `origin`; unique for a pod.
    pub label: Arc<str>,
    pub provider: Arc<ModelProvider>,
    /// The name that the provider is asked for; none for the one that the agent asked for.
    pub model: Option<Arc<str>>,
    /// The most tokens that an answer may have, whatever the agent asks for.
    pub max_tokens: Option<u64>,
    pub images: Images,
    pub effort: Effort,
    /// The model's own, else its provider's: sorted by their names.
    pub params: Vec<Param>,
    /// The model's own, else its provider's, each once and of [`super::TRANSFORMS`]; none for the default of the
    /// provider's host.
    pub transforms: Option<Vec<&'static str>>,
}

/// A field that is put into a body that has no such field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    /// The value, as compact JSON.
    pub json: String,
}
