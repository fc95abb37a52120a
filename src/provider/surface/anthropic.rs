//! Anthropic's own API.

use super::Family;
use crate::call::{Api, Vendor};
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::Call::Get;
use crate::provider::endpoint::{Endpoints, MODELS, Mount};

pub(super) const API: Family = Family {
    vendor: Vendor::Anthropic,
    hosts: &["api.anthropic.com"],
    mounts: &[
        Mount { at: &["/v1"], of: &MESSAGES },
        Mount { at: &["/v1"], of: &MODELS },
        Mount { at: &["/api"], of: &CLAUDE_CODE },
    ],
};

/// What Claude Code reads when it starts. Its telemetry, flags and web look-ups carry data and stay closed.
const CLAUDE_CODE: Endpoints = Endpoints {
    dialect: None,
    rows: &[
        (Get, "/hello", Api::Startup),
        (Get, "/claude_code/settings", Api::Startup),
        (Get, "/claude_code/policy_limits", Api::Startup),
        (Get, "/claude_cli/bootstrap", Api::Startup),
    ],
};

/// The website and the console: logins, keys and people's conversations.
pub(super) const WEBSITE: Family = Family {
    vendor: Vendor::Anthropic,
    hosts: &["console.anthropic.com", "platform.claude.com", "claude.ai"],
    mounts: &[],
};
