//! Vendors whose API is OpenAI's at a base of their own, some with Anthropic's beside it.

use super::HostFamily;
use crate::call::{Api, Vendor};
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::EndpointMethod::{Get, Post};
use crate::provider::endpoint::{Endpoints, MODELS, Mount};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

/// Presets are configuration that is kept there, and may add tools: they stay closed.
pub(super) const OPENROUTER: HostFamily = HostFamily {
    vendor: Vendor::OpenRouter,
    hosts: &["openrouter.ai", "**.openrouter.ai"],
    mounts: &[
        Mount { at: &["/api/v1"], of: &CHAT },
        Mount { at: &["/api/v1"], of: &RESPONSES },
        Mount { at: &["/api/v1"], of: &MESSAGES },
        Mount { at: &["/api/v1"], of: &EMBEDDINGS },
        Mount { at: &["/api/v1"], of: &MODELS },
    ],
};

pub(super) const GROQ: HostFamily = HostFamily {
    vendor: Vendor::Groq,
    hosts: &["api.groq.com"],
    mounts: &[
        Mount { at: &["/openai/v1"], of: &CHAT },
        Mount { at: &["/openai/v1"], of: &RESPONSES },
        Mount { at: &["/openai/v1"], of: &EMBEDDINGS },
        Mount { at: &["/openai/v1"], of: &MODELS },
    ],
};

pub(super) const DEEPSEEK: HostFamily = HostFamily {
    vendor: Vendor::DeepSeek,
    hosts: &["api.deepseek.com"],
    mounts: &[
        Mount { at: &["", "/v1", "/beta"], of: &CHAT },
        Mount { at: &["", "/v1"], of: &RESPONSES },
        Mount { at: &["", "/v1"], of: &MODELS },
        Mount { at: &["/anthropic/v1"], of: &MESSAGES },
    ],
};

pub(super) const MISTRAL: HostFamily = HostFamily {
    vendor: Vendor::Mistral,
    hosts: &["api.mistral.ai", "api.*.mistral.ai", "codestral.mistral.ai"],
    mounts: &[
        Mount { at: &["/v1"], of: &CHAT },
        Mount { at: &["/v1"], of: &EMBEDDINGS },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

pub(super) const XAI: HostFamily = HostFamily {
    vendor: Vendor::XAi,
    hosts: &["api.x.ai", "*.api.x.ai"],
    mounts: &[
        Mount { at: &["/v1"], of: &CHAT },
        Mount { at: &["/v1"], of: &RESPONSES },
        Mount { at: &["/v1"], of: &MESSAGES },
        Mount { at: &["/v1"], of: &EMBEDDINGS },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

pub(super) const PERPLEXITY: HostFamily = HostFamily {
    vendor: Vendor::Perplexity,
    hosts: &["api.perplexity.ai"],
    mounts: &[Mount { at: &[""], of: &CHAT }],
};

/// Its own API (`/api/chat`) is no dialect that is guarded, and so stays closed.
pub(super) const OLLAMA: HostFamily = HostFamily {
    vendor: Vendor::Ollama,
    hosts: &["ollama.com"],
    mounts: &[
        Mount { at: &["/v1"], of: &CHAT },
        Mount { at: &["/v1"], of: &RESPONSES },
        Mount { at: &["/v1"], of: &MESSAGES },
        Mount { at: &["/v1"], of: &EMBEDDINGS },
        Mount { at: &["/v1"], of: &MODELS },
        Mount { at: &["/api"], of: &Endpoints { dialect: None, rows: &[(Get, "/tags", Api::Models)] } },
    ],
};

/// Its own chat (`/v2/chat`) is no dialect that is guarded, and so stays closed.
pub(super) const COHERE: HostFamily = HostFamily {
    vendor: Vendor::Cohere,
    hosts: &["api.cohere.com", "api.cohere.ai"],
    mounts: &[
        Mount { at: &["/compatibility/v1"], of: &CHAT },
        Mount { at: &["/compatibility/v1"], of: &EMBEDDINGS },
        Mount {
            at: &["/v1", "/v2"],
            of: &Endpoints { dialect: None, rows: &[(Post, "/embed", Api::Embeddings)] },
        },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

/// Its protocol cannot be looked into: open as a whole or not at all.
pub(super) const CURSOR: HostFamily =
    HostFamily { vendor: Vendor::Cursor, hosts: &["**.cursor.sh"], mounts: &[] };
