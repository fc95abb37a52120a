//! OpenAI's API, and the login of ChatGPT that Codex uses.

use super::HostFamily;
use crate::call::{Api, Vendor};
use crate::provider::endpoint::EndpointMethod::Get;
use crate::provider::endpoint::{Endpoints, MODELS, Mount};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

/// With its regional hosts, `us.` and `eu.`.
pub(super) const API: HostFamily = HostFamily {
    vendor: Vendor::OpenAi,
    hosts: &["api.openai.com", "*.api.openai.com"],
    mounts: &[
        Mount { at: &["/v1"], of: &CHAT },
        Mount { at: &["/v1"], of: &RESPONSES },
        Mount { at: &["/v1"], of: &EMBEDDINGS },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

pub(super) const CHATGPT: HostFamily = HostFamily {
    vendor: Vendor::OpenAi,
    hosts: &["chatgpt.com"],
    mounts: &[
        Mount { at: &["/backend-api/codex"], of: &RESPONSES },
        Mount { at: &["/backend-api/codex"], of: &MODELS },
        Mount { at: &["/backend-api/wham"], of: &CODEX },
    ],
};

/// Codex with a login asks for its account, and with a company's also for its configuration, or does not start.
const CODEX: Endpoints = Endpoints {
    dialect: None,
    rows: &[(Get, "/accounts/check", Api::Startup), (Get, "/config/bundle", Api::Startup)],
};
