//! Anthropic's own API.

use super::HostFamily;
use crate::call::{Api, Vendor};
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::EndpointMethod::Get;
use crate::provider::endpoint::{Endpoints, MODELS, Mount};

pub(super) const API: HostFamily = HostFamily {
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

/// The console: logins and keys. Claude Code 2.1.330 does not start before one path of it answers.
pub(super) const PLATFORM: HostFamily = HostFamily {
    vendor: Vendor::Anthropic,
    hosts: &["platform.claude.com"],
    mounts: &[Mount { at: &["/v1/oauth"], of: &HELLO }],
};

const HELLO: Endpoints = Endpoints { dialect: None, rows: &[(Get, "/hello", Api::Startup)] };

/// The website, and the console by its older name: logins, keys and people's conversations.
pub(super) const WEBSITE: HostFamily =
    HostFamily { vendor: Vendor::Anthropic, hosts: &["console.anthropic.com", "claude.ai"], mounts: &[] };
