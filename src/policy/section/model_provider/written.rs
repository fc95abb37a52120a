//! `modelProviders`, as users write them.

use serde::{Deserialize, Serialize};

use crate::call::Dialect;
use crate::policy::section::model::written::Params;

/// A server of models that routes send requests to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a provider of models: {name, endpoint, dialect, credential, …}")]
pub struct WrittenModelProvider {
    /// Unique among the policy's providers: lower-case letters, digits, `-` and `.`, at most 63.
    pub name: String,
    /// Where it is reached: `https://vllm.models.svc.cluster.local:8443/v1`. The name is complete, and the API's own path
    /// (`/chat/completions`, `/messages`, `/responses`) is appended. `http` only without `credential`. It needs no
    /// destination: requests that are routed reach it, and nothing else that the agent sends.
    pub endpoint: String,
    /// The API that it speaks. Messages are translated to OpenAIChat; else an agent is answered in its own API alone.
    pub dialect: Option<ModelDialect>,
    /// One of this policy's credentials, whose hosts and ports hold the endpoint's. Absent: no key is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// With `credential`: which field has the key. Absent: XApiKey for Anthropic, else Authorization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_in: Option<KeyIn>,
    /// Ranges of the gateway's `upstream.denyAddresses` that are dialled for this provider alone; on a laptop also
    /// loopback. Never metadata or link-local addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_addresses: Option<Vec<String>>,
    /// With OpenAIChat: what is done about the quirks of its models. Absent: by the endpoint's host. A model's own replace
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transforms: Option<Vec<String>>,
    /// Fields that are put into bodies without them, as JSON of at most 4 KiB. A model's own replace them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Params>,
    /// How long the first piece of an answer may take, hidden reasoning included: `1s` to `15m`. Absent: `2m` where another
    /// model follows, else as long as the gateway waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_event: Option<String>,
}

/// The API of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum ModelDialect {
    /// OpenAI Chat Completions.
    OpenAIChat,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    OpenAIResponses,
}

impl ModelDialect {
    /// The dialect in the words of the rest.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::OpenAIChat => Dialect::OpenAIChat,
            Self::Anthropic => Dialect::Anthropic,
            Self::OpenAIResponses => Dialect::OpenAIResponses,
        }
    }

    /// Where the key stands if nobody says it.
    pub(super) fn key_in(self) -> KeyIn {
        match self {
            Self::OpenAIChat | Self::OpenAIResponses => KeyIn::Authorization,
            Self::Anthropic => KeyIn::XApiKey,
        }
    }
}

/// Which field of a request has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum KeyIn {
    /// `authorization: Bearer KEY`.
    Authorization,
    /// `x-api-key: KEY`, as Anthropic has it.
    XApiKey,
    /// `api-key: KEY`, as Azure has it.
    ApiKey,
}
