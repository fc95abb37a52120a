//! What an exchange with an LLM provider was about: models, tokens, tools, no content.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Route;
use crate::call::{self, Service};

/// Which LLM provider was asked, and for what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Who serves the host, in the words of OpenTelemetry's `gen_ai.provider.name` where it has one.
    pub name: Cow<'static, str>,
    /// Which API was asked for; `other` is no inference endpoint.
    pub api: Cow<'static, str>,
    /// The model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Every model that the request could use, where that is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// What the provider calls the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether the answer was asked for as a stream; of requests that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How many tokens the request lets the model write at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The organization of the provider's customers: what the answer says in `openai-organization` or
    /// `anthropic-organization-id`, until then what the request says in `openai-organization`. At most 256 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization: Option<Arc<str>>,
    /// How well the answer was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalization: Option<Cow<'static, str>>,
    /// Where policy sent the request instead, and who was asked; of requests that a route took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<Route>>,
    /// The tools that the request offers; of requests, the first 128.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
}

impl From<Service> for Provider {
    fn from(service: Service) -> Self {
        Self { name: service.vendor.as_str().into(), api: service.api.as_str().into(), ..Self::default() }
    }
}

/// How much a conversation holds, as its request has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Conversation {
    /// Its messages, whoever wrote them.
    pub messages: u64,
    /// The images in it.
    pub images: u64,
    /// The results of tools in it.
    pub tool_results: u64,
}

impl From<call::Conversation> for Conversation {
    fn from(of: call::Conversation) -> Self {
        Self { messages: of.messages, images: of.images, tool_results: of.tool_results }
    }
}

/// A tool that a request offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolDefinition {
    /// At most 256 characters.
    pub name: String,
    /// Of the definition as it stands in the request, in hex.
    pub sha256: String,
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// All that the model read, from caches too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All that it wrote, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input, read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input, written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of the output, reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl From<&call::Usage> for Option<Usage> {
    fn from(usage: &call::Usage) -> Self {
        (*usage != call::Usage::default()).then_some(Usage {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
        })
    }
}

/// A tool call of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCall {
    /// As the provider calls it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// As the model wrote it, with its namespace in front; at most 256 characters.
    pub name: String,
    /// The namespace that stands in front of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The input is a text, that of a custom tool, and no JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub custom: bool,
    /// How the kinds by which it was judged are known: `Catalogue` or `Inferred`. None of a tool without a kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds_by: Option<Cow<'static, str>>,
    /// What it may do: `Shell`, `Read`, `Write`, `Fetch`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Cow<'static, str>>,
    /// Of the input as it was sent, in hex; none where the call was denied before its input came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// What came of the input.
    pub input_bytes: u64,
    /// As the model wrote it, or what `audit.toolInputs: Redacted` leaves of it: its SHA-256 is another then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The simple command by which a Shell call is denied, as far as `audit.toolInputs` lets events have inputs: its words
    /// without quotes, or its program and options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the workspace said of the files that it edits, where a policy asks: `Fits`, `Misses`; or that nothing was
    /// judged: `NoText` (no such text is there), `Pending` (an earlier call of the answer changes it), `Unavailable` (the
    /// workspace did not answer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Cow<'static, str>>,
    /// It had run at the provider already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hosted: bool,
    /// The answer ended before the call did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// It stands inside another call: in a script, or in a list of calls. That one has an event of its own before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// A script would compute the input, so that nobody knew it when the call was judged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub computed: bool,
}

/// The longest id and name of a call that an event has, in characters.
const SHOWN: usize = 256;

impl From<call::CallNote> for ToolCall {
    fn from(note: call::CallNote) -> Self {
        let name = match &note.namespace {
            Some(namespace) => format!("{namespace}.{}", note.name),
            None => note.name,
        };
        Self {
            id: shortened(note.id),
            name: shortened(name),
            namespace: note.namespace.map(shortened),
            custom: note.custom,
            kinds_by: note.kinds_by.map(|by| by.as_str().into()),
            kinds: note.kinds.iter().map(|kind| kind.as_str().into()).collect(),
            input_sha256: note.input_sha256,
            input_bytes: note.input_bytes,
            input: note.input,
            command: note.command,
            workspace: note.verdict.edit.map(|check| check.as_str().into()),
            hosted: note.hosted,
            incomplete: note.incomplete,
            inside: note.inside,
            computed: note.computed,
        }
    }
}

fn shortened(text: String) -> String {
    if text.chars().nth(SHOWN).is_none() { text } else { text.chars().take(SHOWN).collect() }
}
