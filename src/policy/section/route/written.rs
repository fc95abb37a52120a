//! `routes`, as users write them.

use serde::{Deserialize, Serialize};

use crate::call::FailureClass;

/// A rule that says which models answer a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a route: {name, match, to, fallback, on}")]
pub struct WrittenRoute {
    /// Unique in the policy, like the names of destinations, tools and rules. The route's id is `namespace/policy/name`.
    pub name: String,
    /// Which requests it is about: by a marker in the system prompt, or by the model that is asked for.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<WrittenMatch>,
    /// Labels of `models` of this policy or of a cluster policy, or `origin`: where the agent sent the request. With a
    /// marker 1 to 16, from which it chooses; else one.
    pub to: Vec<String>,
    /// What is asked next, one after the other, if the first gives no answer: at most 3 labels, or `origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<String>>,
    /// With `fallback`: the failures after which the next one is asked. Absent: all but ContextLength and Rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<FailureClass>>,
}

/// What a route looks for: `marker` or `models`, and beside it `hosts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a match: {marker or models, hosts}")]
pub struct WrittenMatch {
    /// The token of a marker in the system prompt, `<!-- @proxy-local-route:TOKEN model=LABEL -->`: 4 to 32 lower-case
    /// letters and digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    /// Names of models, with `*` for any run of characters; case matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Exact hosts that the request was sent to. Absent: every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}
