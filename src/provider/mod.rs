//! Knows the APIs of LLM providers: which of them is spoken where, and which endpoints only infer. Pure.
//!
//! [`surface`] says what is spoken at which host; one folder per dialect says what that dialect's endpoints are.
//! Policy is told of a request by [`crate::call::Service`] and knows nothing of this.

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

use crate::call::{Dialect, Service, Vendor};
use crate::name::host::DnsName;
use adapter::Adapter;
use surface::Surface;

/// What is spoken at a host: what is known of it, else what a rule's `provider` says. None: no LLM provider's API.
pub fn spoken_at(host: Option<&DnsName>, said: Option<Dialect>) -> Option<&'static Surface> {
    host.and_then(surface::surface).or_else(|| said.and_then(surface::of_dialect))
}

/// What reads requests and answers of a dialect.
pub fn adapter(dialect: Dialect) -> &'static dyn Adapter {
    match dialect {
        Dialect::Anthropic => &anthropic::Anthropic,
        Dialect::OpenAIChat => &openai_chat::OpenAiChat,
        Dialect::OpenAIResponses => &openai_responses::OpenAiResponses,
        Dialect::Gemini => &gemini::Gemini,
        Dialect::Bedrock => &bedrock::Bedrock,
    }
}

/// In whose words a refusal is said at a provider's host, also where an endpoint belongs to no dialect. None where
/// the host speaks nothing that is known.
pub fn voice(service: Service) -> Option<&'static dyn Adapter> {
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
