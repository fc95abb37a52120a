//! What users write about tools: rules about calls, hosted tools, and what is kept of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::call;

/// A rule about tool calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a tool rule: {name, kind or tools, action, when, reason}")]
pub struct Rule {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<call::Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    pub action: Option<Action>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Deny,
    Audit,
    Allow,
}

/// A condition: a test of one parameter, or one of `any`, `all` and `not` over further conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a condition: {param, operator, values}, {any: […]}, {all: […]} or {not: {…}}")]
pub struct When {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Scalar>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    Equals,
    NotEquals,
    Matches,
    NotMatches,
    Contains,
    NotContains,
    StartsWith,
    NotStartsWith,
    In,
    NotIn,
    Within,
    NotWithin,
    Exists,
    NotExists,
}

impl Comparison {
    /// Whether it holds where its positive counterpart does not.
    pub fn is_negative(self) -> bool {
        match self {
            Self::NotEquals
            | Self::NotMatches
            | Self::NotContains
            | Self::NotStartsWith
            | Self::NotIn
            | Self::NotWithin
            | Self::NotExists => true,
            Self::Equals
            | Self::Matches
            | Self::Contains
            | Self::StartsWith
            | Self::In
            | Self::Within
            | Self::Exists => false,
        }
    }
}

/// One of a test's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Scalar {
    Text(String),
    Number(serde_json::Number),
    Bool(bool),
}

impl Scalar {
    /// The text: a string's own, of anything else its JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
            Self::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true or false")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Scalar::Number).ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }
}

/// What becomes of tools that would run at the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {action, allow, urlSources}")]
pub struct HostedTools {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<HostedAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_sources: Option<Permission>,
}

/// What is done about a hosted tool; the later is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HostedAction {
    Allow,
    Strip,
    Deny,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Permission {
    Allow,
    Deny,
}

/// What events keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {toolInputs}")]
pub struct Audit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_inputs: Option<call::Inputs>,
}
