//! GitHub Copilot.

use super::HostFamily;
use crate::call::Vendor;
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::{MODELS, Mount};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

pub(super) const COPILOT: HostFamily = HostFamily {
    vendor: Vendor::Copilot,
    hosts: &["api.githubcopilot.com", "**.githubcopilot.com", "copilot-api.*.ghe.com"],
    mounts: &[
        Mount { at: &[""], of: &CHAT },
        Mount { at: &[""], of: &RESPONSES },
        Mount { at: &[""], of: &EMBEDDINGS },
        Mount { at: &[""], of: &MODELS },
        Mount { at: &["/v1"], of: &MESSAGES },
    ],
};
