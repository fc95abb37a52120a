//! Hosts of which a rule's `provider` says what speaks there: at each base where a vendor of that API has it.

use super::Family;
use crate::call::{Dialect, Vendor};
use crate::provider::anthropic::{MESSAGES, RAW_PREDICT};
use crate::provider::bedrock::RUNTIME;
use crate::provider::endpoint::{MODELS, Mount};
use crate::provider::gemini::{EMBED_CONTENT, GENERATE_CONTENT};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};
use crate::provider::openai_responses::RESPONSES;

pub(super) const CUSTOM: &[(Dialect, Family)] = &[
    (Dialect::Anthropic, family(ANTHROPIC)),
    (Dialect::OpenAIChat, family(CHAT_COMPLETIONS)),
    (Dialect::OpenAIResponses, family(OPENAI_RESPONSES)),
    (Dialect::Gemini, family(GEMINI)),
    (Dialect::Bedrock, family(BEDROCK)),
];

const fn family(mounts: &'static [Mount]) -> Family {
    Family { vendor: Vendor::Custom, hosts: &[], mounts }
}

const ANTHROPIC: &[Mount] = &[
    Mount { at: &["/v1", "/anthropic/v1", "/api/v1"], of: &MESSAGES },
    Mount { at: &["/v1", "/anthropic/v1", "/api/v1"], of: &MODELS },
    Mount { at: &["/v1/projects/*/locations/*/publishers/anthropic"], of: &RAW_PREDICT },
];

const OPENAI: &[&str] = &["", "/v1", "/openai/v1", "/api/v1"];

const CHAT_COMPLETIONS: &[Mount] = &[
    Mount { at: OPENAI, of: &CHAT },
    Mount { at: OPENAI, of: &EMBEDDINGS },
    Mount { at: OPENAI, of: &MODELS },
    Mount { at: &["/openai/deployments/*"], of: &CHAT },
    Mount { at: &["/openai/deployments/*"], of: &EMBEDDINGS },
];

const OPENAI_RESPONSES: &[Mount] = &[
    Mount { at: OPENAI, of: &RESPONSES },
    Mount { at: OPENAI, of: &EMBEDDINGS },
    Mount { at: OPENAI, of: &MODELS },
    Mount { at: &["/openai"], of: &RESPONSES },
];

const GOOGLE: &[&str] = &[
    "/v1",
    "/v1beta",
    "/v1alpha",
    "/v1/projects/*/locations/*/publishers/google",
    "/v1beta1/projects/*/locations/*/publishers/google",
];

const GEMINI: &[Mount] = &[
    Mount { at: GOOGLE, of: &GENERATE_CONTENT },
    Mount { at: GOOGLE, of: &EMBED_CONTENT },
    Mount { at: GOOGLE, of: &MODELS },
];

const BEDROCK: &[Mount] = &[Mount { at: &[""], of: &RUNTIME }];
