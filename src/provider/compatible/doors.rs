//! What makes a provider act beside `tools`, as data: parameters, and models that search by themselves.
//!
//! A row says where it holds. A host of which nothing is known but that it speaks OpenAI's API has every row.

use crate::call::Vendor;
use crate::call::Vendor::{
    AzureOpenAi, Cohere, Gemini, Groq, Mistral, OpenRouter, Perplexity, VertexAi, XAi,
};

/// A parameter of a request's body. The type by which policy knows it is its key.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) key: &'static str,
    pub(super) at: At,
    pub(super) closed: Closed,
}

/// How a door is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// The entry is removed.
    Removed,
    /// The same, unless it holds nothing but the first object with nothing but these keys.
    RemovedBeside(&'static str, &'static [&'static str]),
    /// It is a list of `{"id":…}`, each of a type of its own: this and the id.
    Items(&'static str),
    /// It stands for configuration that is kept at the provider, without which the request means something else.
    Refused,
    /// It leaves the answer at the provider, to be fetched past whoever looks at answers.
    State,
}

#[derive(Debug)]
pub(super) enum At {
    Everywhere,
    Only(&'static [Vendor]),
}

impl At {
    pub(super) fn covers(&self, vendor: Vendor) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Only(vendors) => vendor == Vendor::Custom || vendors.contains(&vendor),
        }
    }
}

const fn removed(key: &'static str, at: &'static [Vendor]) -> Door {
    Door { key, at: At::Only(at), closed: Closed::Removed }
}

const fn refused(key: &'static str, at: &'static [Vendor]) -> Door {
    Door { key, at: At::Only(at), closed: Closed::Refused }
}

pub(super) const DOORS: &[Door] = &[
    Door { key: "web_search_options", at: At::Everywhere, closed: Closed::Removed },
    Door { key: "plugins", at: At::Only(&[OpenRouter]), closed: Closed::Items("openrouter:plugin:") },
    refused("preset", &[OpenRouter, Perplexity]),
    removed("stop_server_tools_when", &[OpenRouter]),
    removed("search_parameters", &[XAi]),
    Door { key: "deferred", at: At::Only(&[XAi]), closed: Closed::State },
    removed("compound_custom", &[Groq]),
    removed("search_settings", &[Groq]),
    removed("include_domains", &[Groq]),
    removed("exclude_domains", &[Groq]),
    removed("documents", &[Groq, Cohere]),
    removed("citation_options", &[Groq, Cohere]),
    removed("connectors", &[Cohere]),
    removed("search_queries_only", &[Cohere]),
    refused("agent_id", &[Mistral]),
    removed("data_sources", &[AzureOpenAi]),
    // Google's form of its own parameters, among them content that is kept there with its tools.
    Door {
        key: "extra_body",
        at: At::Only(&[Gemini, VertexAi]),
        closed: Closed::RemovedBeside(
            "google",
            &["thinking_config", "thinkingConfig", "safety_settings", "safetySettings", "thought_tag_marker"],
        ),
    },
    // DashScope's.
    removed("enable_search", &[]),
    removed("search_options", &[]),
];

/// The type by which policy knows a model that searches by itself, for which there is no edit.
pub(super) const SEARCH_MODEL: &str = "search_model";

/// The plugin for which the ending of a model's name is a short form.
pub(super) const WEB_PLUGIN: &str = "openrouter:plugin:web";

/// Models that search by themselves; `*` is any run of characters.
pub(super) const SEARCH_MODELS: &[(&str, At)] = &[
    ("*-search-preview*", At::Everywhere),
    ("gpt-5-search-api*", At::Everywhere),
    ("sonar*", At::Only(&[Perplexity, OpenRouter])),
    ("groq/compound*", At::Only(&[Groq])),
    ("compound-beta*", At::Only(&[Groq])),
];

/// Endings of a model's name that stand for a plugin.
pub(super) const PLUGIN_SUFFIXES: &[(&str, At)] = &[("online", At::Only(&[OpenRouter]))];

/// Whoever searches unless this parameter is true.
pub(super) const SEARCH_DISABLED: (&str, At) = ("disable_search", At::Only(&[Perplexity]));

/// Keys that are read by name wherever OpenAI's API is spoken, beside those of [`DOORS`].
pub(super) const KEYS: &[&str] = &[
    "model",
    "models",
    "stream",
    "store",
    "messages",
    "input",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "previous_response_id",
    "conversation",
    "prompt",
    "background",
    "disable_search",
    "mcp_servers",
    "container",
];
