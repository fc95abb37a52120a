//! Knows the APIs of LLM providers: which of them is spoken where, and which endpoints only infer. Pure.
//!
//! [`surface`] says what is spoken at which host; one folder per dialect says what that dialect's endpoints are.
//! Policy sees a request's [`crate::call::Service`] and nothing of this.

pub mod adapter;
pub mod answer;
mod compatible;
mod endpoint;
pub mod hosted;
pub mod kind;
pub mod request;

mod anthropic;
mod bedrock;
mod gemini;
mod openai_chat;
mod openai_responses;

pub mod surface;
pub mod translate;

use http::HeaderMap;

use crate::call::{Dialect, Service, Vendor};
use crate::name::host::DnsName;
use adapter::Adapter;
use surface::Surface;

/// Returns the APIs at a host: those of a known host, else those of the dialect that a rule's `provider` names.
pub fn spoken_at(host: Option<&DnsName>, said: Option<Dialect>) -> Option<&'static Surface> {
    host.and_then(surface::surface).or_else(|| said.and_then(surface::of_dialect))
}

/// Returns the implementation of a dialect.
pub fn adapter(dialect: Dialect) -> &'static dyn Adapter {
    match dialect {
        Dialect::Anthropic => &anthropic::Anthropic,
        Dialect::OpenAIChat => &openai_chat::OpenAiChat,
        Dialect::OpenAIResponses => &openai_responses::OpenAiResponses,
        Dialect::Gemini => &gemini::Gemini,
        Dialect::Bedrock => &bedrock::Bedrock,
    }
}

/// Whether the login of a request is that of a person's subscription, with which the provider checks more of the body:
/// only Claude's is known for that. `headers` are the agent's, before a credential is attached.
pub fn is_subscription(headers: &HeaderMap) -> bool {
    anthropic::is_subscription(headers)
}

/// Returns the dialect in whose format errors are written at a provider's host, even if the endpoint belongs to no
/// dialect. None if the host's format is unknown.
pub fn error_format(service: Service) -> Option<&'static dyn Adapter> {
    let spoken = match service.vendor {
        Vendor::Anthropic => Some(Dialect::Anthropic),
        Vendor::Gemini | Vendor::VertexAi => Some(Dialect::Gemini),
        Vendor::Bedrock => Some(Dialect::Bedrock),
        Vendor::OpenAi
        | Vendor::AzureOpenAi
        | Vendor::Copilot
        | Vendor::OpenRouter
        | Vendor::Groq
        | Vendor::DeepSeek
        | Vendor::Mistral
        | Vendor::XAi
        | Vendor::Perplexity
        | Vendor::Ollama
        | Vendor::Cohere => Some(Dialect::OpenAIChat),
        Vendor::Cursor | Vendor::AmazonQ | Vendor::Custom => None,
    };
    service.dialect.or(spoken).map(adapter)
}
