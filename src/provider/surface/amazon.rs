//! Amazon Bedrock in its forms, Claude Platform on AWS, and the agents behind Amazon Q.

use super::HostFamily;
use crate::call::Vendor;
use crate::provider::anthropic::MESSAGES;
use crate::provider::bedrock::{CATALOGUE, RUNTIME};
use crate::provider::endpoint::{MODELS, Mount};
use crate::provider::openai_chat::CHAT;
use crate::provider::openai_responses::RESPONSES;

/// With the endpoints of FIPS, dual stack and private links; beside Bedrock's own API it has OpenAI's.
pub(super) const BEDROCK: HostFamily = HostFamily {
    vendor: Vendor::Bedrock,
    hosts: &[
        "bedrock-runtime.*.amazonaws.com",
        "bedrock-runtime-fips.*.amazonaws.com",
        "bedrock-runtime.*.amazonaws.com.cn",
        "bedrock-runtime.*.api.aws",
        "bedrock-runtime-fips.*.api.aws",
        "**.bedrock-runtime.*.vpce.amazonaws.com",
    ],
    mounts: &[
        Mount { at: &[""], of: &RUNTIME },
        Mount { at: &["/openai/v1"], of: &CHAT },
        Mount { at: &["/openai/v1"], of: &RESPONSES },
        Mount { at: &["/openai/v1"], of: &MODELS },
    ],
};

/// The control plane: customization jobs, batch inference and guardrails beside the lists of models.
pub(super) const BEDROCK_CONTROL: HostFamily = HostFamily {
    vendor: Vendor::Bedrock,
    hosts: &[
        "bedrock.*.amazonaws.com",
        "bedrock-fips.*.amazonaws.com",
        "bedrock.*.amazonaws.com.cn",
        "bedrock.*.api.aws",
        "**.bedrock.*.vpce.amazonaws.com",
    ],
    mounts: &[Mount { at: &[""], of: &CATALOGUE }],
};

/// Agents, flows and retrieval that run at the provider.
pub(super) const BEDROCK_AGENTS: HostFamily = HostFamily {
    vendor: Vendor::Bedrock,
    hosts: &[
        "bedrock-agent-runtime.*.amazonaws.com",
        "bedrock-agent-runtime-fips.*.amazonaws.com",
        "bedrock-agent-runtime.*.api.aws",
        "**.bedrock-agent-runtime.*.vpce.amazonaws.com",
        "bedrock-agent.*.amazonaws.com",
        "bedrock-agentcore.*.amazonaws.com",
    ],
    mounts: &[],
};

pub(super) const BEDROCK_MANTLE: HostFamily = HostFamily {
    vendor: Vendor::Bedrock,
    hosts: &["bedrock-mantle.*.api.aws", "**.bedrock-mantle.*.vpce.amazonaws.com"],
    mounts: &[
        Mount { at: &["/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/openai/v1"], of: &CHAT },
        Mount { at: &["/openai/v1"], of: &RESPONSES },
        Mount { at: &["/openai/v1"], of: &MODELS },
    ],
};

pub(super) const CLAUDE: HostFamily = HostFamily {
    vendor: Vendor::Anthropic,
    hosts: &["aws-external-anthropic.*.api.aws"],
    mounts: &[Mount { at: &["/v1"], of: &MESSAGES }, Mount { at: &["/v1"], of: &MODELS }],
};

/// Their protocols cannot be looked into: open as a whole or not at all.
pub(super) const Q: HostFamily = HostFamily {
    vendor: Vendor::AmazonQ,
    hosts: &["codewhisperer.*.amazonaws.com", "q.*.amazonaws.com", "runtime.*.kiro.dev"],
    mounts: &[],
};
