//! `destinations`, as users write them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::Dialect;

/// A rule about hosts or address ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a destination: {name, hosts or cidrs, ports, action, …}")]
pub struct Destination {
    /// Unique in the policy, tools included: lower-case letters, digits, `-` and `.`, at most 63. The rule's id is
    /// `namespace/policy/name`.
    pub name: String,
    /// Names, or addresses that are connected to without a name: `api.example.com`, `*.example.com` (exactly one
    /// label before it), `**.example.com` (one or more), `**` (every name). Either `hosts` or `cidrs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Ranges of addresses, for connections that name no host: `10.20.0.0/16`. The rule is then Deny, or Tunnel with
    /// `ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
    /// Absent: 443, for Inspect also plain HTTP on 80, for Deny every port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<i64>>,
    /// What becomes of a connection.
    pub action: Option<Action>,
    /// With Inspect: the methods and paths that are allowed. Absent: everything, at an LLM provider its inference
    /// endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// With Inspect: the LLM API that speaks there, at a host that is not known. Absent: recognised by host and path,
    /// and at a host that is not known a request that looks like inference is denied. None: nothing speaks there, and
    /// nothing is guarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// With Inspect: whether WebSockets are allowed. Absent: Deny. At an LLM provider `providerState` decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// With Inspect: whether the host is reached at all. Absent: Origin. Routes if any of several rules that decide
    /// together says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    /// With Tunnel: whether a TLS handshake that hides its name (ECH) passes. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_ech: Option<bool>,
    /// With Tunnel and `ports`: Opaque passes any bytes, not TLS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Action {
    /// TLS is ended, or plain HTTP read, and each request is decided.
    Inspect,
    /// The bytes pass as they are; Postern sees the name and how many, no more.
    Tunnel,
    /// It is refused, whatever another rule says.
    Deny,
}

impl Action {
    /// The word, as users write it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Inspect => "Inspect",
            Self::Tunnel => "Tunnel",
            Self::Deny => "Deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What speaks at a host that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAIChat,
    /// OpenAI Responses.
    OpenAIResponses,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Bedrock's Converse and InvokeModel.
    Bedrock,
    /// No LLM API: whatever looks like one passes unguarded.
    None,
}

impl Provider {
    /// The dialect that is guarded there.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Anthropic => Some(Dialect::Anthropic),
            Self::OpenAIChat => Some(Dialect::OpenAIChat),
            Self::OpenAIResponses => Some(Dialect::OpenAIResponses),
            Self::Gemini => Some(Dialect::Gemini),
            Self::Bedrock => Some(Dialect::Bedrock),
            Self::None => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Upgrade {
    /// WebSockets are allowed.
    Allow,
    /// They are refused.
    Deny,
}

/// Who answers requests to a host; the later is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Reach {
    /// The host itself, where no route takes a request.
    Origin,
    /// Models of `routes` alone: the host's name is never resolved, and nothing is connected to it.
    Routes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// Any bytes.
    Opaque,
}

/// One entry of a method and path allow-list; what is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "an endpoint: {methods, path}")]
pub struct Endpoint {
    /// In upper case; GET includes HEAD. Absent: every method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Without the query: `*` is one segment, `**` any number, as in `/acme/**`. Absent: every path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}
