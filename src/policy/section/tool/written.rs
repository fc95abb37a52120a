//! `tools`, as users write them: rules about the tool calls in a model's answers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::call;

/// A rule about tool calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a tool rule: {name, kind or tools, action, when, reason}")]
pub struct ToolRule {
    /// Unique in the policy, destinations included: lower-case letters, digits, `-` and `.`, at most 63.
    pub name: String,
    /// What the tool does, in every dialect and agent. `kind`, `tools` or both must be there; either is enough for a
    /// call to be meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<call::Kind>,
    /// Names of tools; `*` stands for any run of characters. Compared in every spelling that agents make of a name in
    /// Deny and Audit rules, exactly in Allow rules. Tools of MCP servers are mostly called `mcp__SERVER__TOOL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What becomes of the call.
    pub action: Option<ToolAction>,
    /// A condition on the input. Absent: every call of the tool is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// One line that the agent reads, and events keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum ToolAction {
    /// It is replaced by a text before the agent sees it.
    Deny,
    /// It is recorded, and goes on if nothing else denies it.
    Audit,
    /// It goes on, unless a rule denies it.
    Allow,
}

impl ToolAction {
    /// The word, as users write it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Audit => "Audit",
            Self::Allow => "Allow",
        }
    }
}

/// A condition: a test of one parameter, or one of `any`, `all` and `not` over further conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a condition: {param, operator, values}, {any: […]}, {all: […]} or {not: {…}}")]
pub struct When {
    /// At least one of these holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Self>>,
    /// All of these hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Self>>,
    /// This does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Self>>,
    /// A dotted path into the tool's input (`options.recursive`, `files.0.path`), or `$` for the whole input as
    /// text. With `kind` also `command`, `paths` and `url`, whatever the agent calls them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// How the parameter is compared with the values. In Deny and Audit rules a test holds if any element of a list
    /// satisfies it, and a negative one on what is missing; in Allow rules every element must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Comparison>,
    /// Texts, numbers or booleans, any of which is enough; none with Exists and NotExists. A regular expression has
    /// at most 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Scalar>>,
}

impl When {
    /// Whether it compares paths with directories, at any depth.
    pub fn judges_paths(&self) -> bool {
        let nested = self.any.iter().flatten().chain(self.all.iter().flatten()).chain(self.not.as_deref());
        matches!(self.operator, Some(Comparison::Within | Comparison::NotWithin))
            || nested.into_iter().any(Self::judges_paths)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Comparison {
    Equals,
    NotEquals,
    /// A regular expression (Rust's syntax, linear time) is found in its text.
    Matches,
    NotMatches,
    Contains,
    NotContains,
    StartsWith,
    NotStartsWith,
    In,
    NotIn,
    /// It is an absolute path under one of these directories, or one of them. A relative one that does not climb meets
    /// neither this nor its negative in Deny and Audit rules.
    Within,
    NotWithin,
    /// It is a URL whose host is one of these, by the patterns of `hosts`. A URL that clients read differently meets
    /// both this and its negative in Deny and Audit rules, and neither in Allow rules.
    HostIn,
    NotHostIn,
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
            | Self::NotHostIn
            | Self::NotExists => true,
            Self::Equals
            | Self::Matches
            | Self::Contains
            | Self::StartsWith
            | Self::In
            | Self::Within
            | Self::HostIn
            | Self::Exists => false,
        }
    }
}

/// One of a test's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
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
