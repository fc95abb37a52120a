//! Azure OpenAI and Azure AI Foundry, one host per resource.

use super::HostFamily;
use crate::call::Vendor;
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::{MODELS, Mount};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

/// The API with a version in the query has deployments in the path; the one called v1 does not. Foundry has
/// Anthropic's models beside them.
pub(super) const FOUNDRY: HostFamily = HostFamily {
    vendor: Vendor::AzureOpenAi,
    hosts: &[
        "**.openai.azure.com",
        "**.openai.azure.us",
        "**.cognitiveservices.azure.com",
        "**.cognitiveservices.azure.us",
        "**.services.ai.azure.com",
    ],
    mounts: &[
        Mount { at: &["/openai/deployments/*", "/openai/v1"], of: &CHAT },
        Mount { at: &["/openai/deployments/*", "/openai/v1"], of: &EMBEDDINGS },
        Mount { at: &["/openai", "/openai/v1"], of: &RESPONSES },
        Mount { at: &["/openai", "/openai/v1"], of: &MODELS },
        Mount { at: &["/anthropic/v1"], of: &MESSAGES },
    ],
};
