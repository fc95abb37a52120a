//! Extensions by which a provider acts without an entry of `tools`, as data: parameters, and models that search.
//!
//! A row says where it holds. A host of which nothing is known but that it speaks OpenAI's API has every row.

use crate::call::Vendor;
use crate::call::Vendor::{
    AzureOpenAi, Cohere, Gemini, Groq, Mistral, OpenRouter, Perplexity, VertexAi, XAi,
};

/// A parameter of a request's body. The type by which policy knows it is its key.
#[derive(Debug)]
pub(super) struct VendorExtension {
    pub(super) key: &'static str,
    pub(super) at: VendorScope,
    pub(super) closed: WhenDenied,
}

/// What is done about an extension that policy denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenDenied {
    /// The entry is removed.
    Removed,
    /// The entry is removed, unless it holds nothing but the first object with nothing but these keys.
    RemovedBeside(&'static str, &'static [&'static str]),
    /// It is a list of `{"id":…}`, each of a type of its own: this and the id.
    Items(&'static str),
    /// The request is refused: the entry names configuration at the provider, and the request means little without it.
    Refused,
    /// It leaves the answer at the provider, to be fetched past whoever looks at answers.
    State,
}

#[derive(Debug)]
pub(super) enum VendorScope {
    Everywhere,
    Only(&'static [Vendor]),
}

impl VendorScope {
    pub(super) fn covers(&self, vendor: Vendor) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Only(vendors) => vendor == Vendor::Custom || vendors.contains(&vendor),
        }
    }
}

const fn removed(key: &'static str, at: &'static [Vendor]) -> VendorExtension {
    VendorExtension { key, at: VendorScope::Only(at), closed: WhenDenied::Removed }
}

const fn refused(key: &'static str, at: &'static [Vendor]) -> VendorExtension {
    VendorExtension { key, at: VendorScope::Only(at), closed: WhenDenied::Refused }
}

pub(super) const EXTENSIONS: &[VendorExtension] = &[
    VendorExtension { key: "web_search_options", at: VendorScope::Everywhere, closed: WhenDenied::Removed },
    VendorExtension {
        key: "plugins",
        at: VendorScope::Only(&[OpenRouter]),
        closed: WhenDenied::Items("openrouter:plugin:"),
    },
    refused("preset", &[OpenRouter, Perplexity]),
    removed("stop_server_tools_when", &[OpenRouter]),
    removed("search_parameters", &[XAi]),
    VendorExtension { key: "deferred", at: VendorScope::Only(&[XAi]), closed: WhenDenied::State },
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
    VendorExtension {
        key: "extra_body",
        at: VendorScope::Only(&[Gemini, VertexAi]),
        closed: WhenDenied::RemovedBeside(
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
pub(super) const SEARCH_MODELS: &[(&str, VendorScope)] = &[
    ("*-search-preview*", VendorScope::Everywhere),
    ("gpt-5-search-api*", VendorScope::Everywhere),
    ("sonar*", VendorScope::Only(&[Perplexity, OpenRouter])),
    ("groq/compound*", VendorScope::Only(&[Groq])),
    ("compound-beta*", VendorScope::Only(&[Groq])),
];

/// Endings of a model's name that stand for a plugin.
pub(super) const PLUGIN_SUFFIXES: &[(&str, VendorScope)] = &[("online", VendorScope::Only(&[OpenRouter]))];

/// The parameter without which these vendors search.
pub(super) const SEARCH_DISABLED: (&str, VendorScope) = ("disable_search", VendorScope::Only(&[Perplexity]));

/// Keys that are read by name wherever OpenAI's API is spoken, beside those of [`EXTENSIONS`].
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
