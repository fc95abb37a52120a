//! `models`, as users write them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A model of a provider, under a label of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a model: {name, provider, model, …}")]
pub struct WrittenModel {
    /// Its label, in routes and markers: letters, digits, `.`, `_` and `-`, at most 63, and not `origin`. No other policy of
    /// the pod has the same.
    pub name: String,
    /// One of this policy's `modelProviders`.
    pub provider: String,
    /// What the provider calls it. Absent: as the agent asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The most tokens that an answer may have. Absent: as many as the agent asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// What becomes of pictures. Absent: Send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// What becomes of how much thinking the agent asks for. Absent: Drop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// As at the provider, whose list it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transforms: Option<Vec<String>>,
    /// As at the provider, whose fields it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Params>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Images {
    /// They are sent.
    Send,
    /// `[image omitted]` is sent instead: the model takes none.
    Omit,
}

impl Images {
    /// The word, as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "Send",
            Self::Omit => "Omit",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Effort {
    /// It is left out.
    Drop,
    /// It is sent as `reasoning_effort`.
    Map,
}

impl Effort {
    /// The word, as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drop => "Drop",
            Self::Map => "Map",
        }
    }
}

/// Fields of a request's body, as JSON. Keys are sorted, so that the same fields make the same policy however they are
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub struct Params(pub BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
        fields.values_mut().for_each(Value::sort_all_objects);
        Ok(Self(fields))
    }
}
