//! Vendors of whom no more is known than where they speak OpenAI's or Anthropic's API: each row with its source.
//!
//! What they add to these APIs nobody has looked at, so that every addition that is known of any vendor is closed there
//! ([`Vendor::Custom`]). A host that serves a website beside its API is not listed: the rest of it would be closed.

use super::HostFamily;
use crate::call::Vendor;
use crate::provider::anthropic::MESSAGES;
use crate::provider::endpoint::{MODELS, Mount};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

/// One base for everything, some with Anthropic's API at the same base or below `/anthropic`.
pub(super) const AT_V1: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &[
        // platform.moonshot.ai/docs: `https://api.moonshot.ai/v1`, `https://api.moonshot.ai/anthropic`.
        "api.moonshot.ai",
        "api.moonshot.cn",
        // docs.together.ai/docs/openai-api-compatibility; the second is the newer name.
        "api.together.xyz",
        "api.together.ai",
        // inference-docs.cerebras.ai/resources/openai.
        "api.cerebras.ai",
        // docs.sambanova.ai, "OpenAI compatibility".
        "api.sambanova.ai",
        // docs.api.nvidia.com/nim/reference.
        "integrate.api.nvidia.com",
        // docs.baseten.co/development/model-apis: `https://inference.baseten.co/v1`.
        "inference.baseten.co",
        // replicate.com/docs, the OpenAI-compatible proxy.
        "openai-proxy.replicate.com",
        // vercel.com/docs/ai-gateway: Chat Completions, Responses and Messages at `/v1`.
        "ai-gateway.vercel.sh",
        // vercel.com/docs/v0/api.
        "api.v0.dev",
        // platform.minimax.io/docs: `/v1` and `/anthropic`.
        "api.minimax.io",
        "api.minimaxi.com",
        // docs.tokenfactory.nebius.com, and its name before.
        "api.tokenfactory.nebius.com",
        "api.studio.nebius.com",
        // models.dev: chutes, inception, siliconflow, modelscope, wandb, requesty, stepfun, hyperbolic.
        "llm.chutes.ai",
        "api.inceptionlabs.ai",
        "api.siliconflow.com",
        "api.siliconflow.cn",
        "api-inference.modelscope.cn",
        "api.inference.wandb.ai",
        "router.requesty.ai",
        "api.stepfun.com",
        "api.hyperbolic.xyz",
    ],
    mounts: &[
        Mount { at: &["/v1"], of: &CHAT },
        Mount { at: &["/v1"], of: &RESPONSES },
        Mount { at: &["/v1", "/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/v1"], of: &EMBEDDINGS },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

/// docs.z.ai/guides/develop/openai and docs.z.ai/devpack: the general base, that of the coding plan, its Responses at
/// `/api/v1`, and `https://api.z.ai/api/anthropic`. The other host is the same platform in China.
pub(super) const Z_AI: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["api.z.ai", "open.bigmodel.cn"],
    mounts: &[
        Mount { at: &["/api/paas/v4", "/api/coding/paas/v4"], of: &CHAT },
        Mount { at: &["/api/paas/v4", "/api/coding/paas/v4", "/api/v1"], of: &RESPONSES },
        Mount { at: &["/api/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/api/paas/v4"], of: &EMBEDDINGS },
        Mount { at: &["/api/paas/v4", "/api/coding/paas/v4"], of: &MODELS },
    ],
};

/// docs.fireworks.ai: `https://api.fireworks.ai/inference/v1`, and Messages below `/inference`. Deployments and
/// fine-tuning are at `/v1` of the same host, and stay closed.
pub(super) const FIREWORKS: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["api.fireworks.ai"],
    mounts: &[
        Mount { at: &["/inference/v1"], of: &CHAT },
        Mount { at: &["/inference/v1"], of: &RESPONSES },
        Mount { at: &["/inference/v1"], of: &MESSAGES },
        Mount { at: &["/inference/v1"], of: &EMBEDDINGS },
        Mount { at: &["/inference/v1"], of: &MODELS },
    ],
};

/// alibabacloud.com/help/en/model-studio: the compatible mode by region, the coding plan's hosts at `/v1`, and
/// `/apps/anthropic`. DashScope's own API (`/api/v1/services`) is no dialect that is guarded.
pub(super) const DASHSCOPE: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &[
        "dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "dashscope-us.aliyuncs.com",
        "coding.dashscope.aliyuncs.com",
        "coding-intl.dashscope.aliyuncs.com",
    ],
    mounts: &[
        Mount { at: &["/compatible-mode/v1", "/v1"], of: &CHAT },
        Mount {
            at: &["/compatible-mode/v1", "/api/v2/apps/protocols/compatible-mode/v1", "/v1"],
            of: &RESPONSES,
        },
        Mount { at: &["/apps/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/compatible-mode/v1"], of: &EMBEDDINGS },
        Mount { at: &["/compatible-mode/v1", "/v1"], of: &MODELS },
    ],
};

/// volcengine.com/docs/82379 and docs.byteplus.com/en/docs/ModelArk: `https://ark.REGION.volces.com/api/v3`, the coding
/// plan at `/api/coding/v3`, and Messages below `/api/coding` and `/api/compatible`.
pub(super) const VOLCENGINE: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["ark.*.volces.com", "ark.*.bytepluses.com"],
    mounts: &[
        Mount { at: &["/api/v3", "/api/coding/v3"], of: &CHAT },
        Mount { at: &["/api/v3", "/api/coding/v3"], of: &RESPONSES },
        Mount { at: &["/api/coding/v1", "/api/compatible/v1"], of: &MESSAGES },
        Mount { at: &["/api/v3"], of: &EMBEDDINGS },
        Mount { at: &["/api/v3", "/api/coding/v3"], of: &MODELS },
    ],
};

/// replicate.com/docs/reference/http: predictions are jobs that are kept there, in no dialect that is guarded.
pub(super) const REPLICATE: HostFamily =
    HostFamily { vendor: Vendor::Custom, hosts: &["api.replicate.com"], mounts: &[] };

/// huggingface.co/docs/inference-providers: `https://router.huggingface.co/v1`, and each provider below its own name.
pub(super) const HUGGING_FACE: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["router.huggingface.co", "api-inference.huggingface.co"],
    mounts: &[
        Mount {
            at: &[
                "/v1",
                "/*/v1",
                "/*/openai/v1",
                "/*/inference/v1",
                "/*/v1/openai",
                "/*/v3/openai",
                "/hf-inference/models/*/*/v1",
                "/models/*/*/v1",
            ],
            of: &CHAT,
        },
        Mount { at: &["/v1"], of: &RESPONSES },
        Mount { at: &["/v1"], of: &MODELS },
    ],
};

/// kimi.com/code/docs: `https://api.kimi.com/coding/v1`, and Messages below `/coding`.
pub(super) const KIMI: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["api.kimi.com"],
    mounts: &[
        Mount { at: &["/coding/v1"], of: &CHAT },
        Mount { at: &["/coding/v1"], of: &MESSAGES },
        Mount { at: &["/coding/v1"], of: &MODELS },
    ],
};

/// deepinfra.com/docs/openai_api: `https://api.deepinfra.com/v1/openai`.
pub(super) const DEEPINFRA: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["api.deepinfra.com"],
    mounts: &[
        Mount { at: &["/v1/openai"], of: &CHAT },
        Mount { at: &["/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/v1/openai"], of: &EMBEDDINGS },
        Mount { at: &["/v1/openai"], of: &MODELS },
    ],
};

/// docs.github.com/en/rest/models/inference, and the host before it.
pub(super) const GITHUB_MODELS: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["models.github.ai", "models.inference.ai.azure.com"],
    mounts: &[
        Mount { at: &["/inference", "/orgs/*/inference", ""], of: &CHAT },
        Mount { at: &["/inference", "/orgs/*/inference", ""], of: &EMBEDDINGS },
        Mount { at: &["/catalog", ""], of: &MODELS },
    ],
};

/// Bases of their own: docs.venice.ai, llama.developer.meta.com/docs, novita.ai/docs, friendli.ai/docs.
pub(super) const OTHER_BASES: HostFamily = HostFamily {
    vendor: Vendor::Custom,
    hosts: &["api.venice.ai", "api.llama.com", "api.novita.ai", "api.friendli.ai"],
    mounts: &[
        Mount { at: &["/api/v1", "/compat/v1", "/openai/v1", "/v3/openai", "/serverless/v1"], of: &CHAT },
        Mount { at: &["/api/v1", "/compat/v1", "/openai/v1"], of: &RESPONSES },
        Mount { at: &["/anthropic/v1"], of: &MESSAGES },
        Mount { at: &["/api/v1", "/compat/v1", "/openai/v1", "/v3/openai", "/serverless/v1"], of: &MODELS },
    ],
};
