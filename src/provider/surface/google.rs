//! Google: the Gemini API, Vertex AI with Anthropic's models, Firebase, and the login of Gemini's command line.

use super::HostFamily;
use crate::call::{Api, Vendor};
use crate::provider::anthropic::{MESSAGES, RAW_PREDICT};
use crate::provider::endpoint::EndpointMethod::Post;
use crate::provider::endpoint::{Endpoints, MODELS, Mount};
use crate::provider::gemini::{CODE_ASSIST, DEPLOYED, EMBED_CONTENT, GENERATE_CONTENT, TUNED};
use crate::provider::openai_chat::{CHAT, EMBEDDINGS};

const VERSIONS: &[&str] = &["/v1", "/v1beta", "/v1alpha"];

pub(super) const GEMINI: HostFamily = HostFamily {
    vendor: Vendor::Gemini,
    hosts: &["generativelanguage.googleapis.com", "generativelanguage.mtls.googleapis.com"],
    mounts: &[
        Mount { at: VERSIONS, of: &GENERATE_CONTENT },
        Mount { at: VERSIONS, of: &TUNED },
        Mount { at: VERSIONS, of: &EMBED_CONTENT },
        Mount { at: VERSIONS, of: &MODELS },
        Mount { at: &["/v1beta/openai"], of: &CHAT },
        Mount { at: &["/v1beta/openai"], of: &EMBEDDINGS },
        Mount { at: &["/v1beta/openai"], of: &MODELS },
    ],
};

const PROJECTS: &[&str] = &["/v1/projects/*/locations/*", "/v1beta1/projects/*/locations/*"];

/// Google's models by project, and in express mode without one.
const GOOGLE_MODELS: &[&str] = &[
    "/v1/projects/*/locations/*/publishers/google",
    "/v1beta1/projects/*/locations/*/publishers/google",
    "/v1/publishers/google",
    "/v1beta1/publishers/google",
];

/// One host per region, and others for all of them.
pub(super) const VERTEX: HostFamily = HostFamily {
    vendor: Vendor::VertexAi,
    hosts: &[
        "aiplatform.googleapis.com",
        "*-aiplatform.googleapis.com",
        "aiplatform.*.rep.googleapis.com",
        "aiplatform.mtls.googleapis.com",
        "*-aiplatform.mtls.googleapis.com",
    ],
    mounts: &[
        Mount { at: GOOGLE_MODELS, of: &GENERATE_CONTENT },
        Mount { at: GOOGLE_MODELS, of: &EMBED_CONTENT },
        Mount { at: GOOGLE_MODELS, of: &MODELS },
        Mount { at: PROJECTS, of: &DEPLOYED },
        Mount {
            at: &[
                "/v1/projects/*/locations/*/publishers/anthropic",
                "/v1beta1/projects/*/locations/*/publishers/anthropic",
            ],
            of: &RAW_PREDICT,
        },
        Mount {
            at: &[
                "/v1/projects/*/locations/*/endpoints/openapi",
                "/v1beta1/projects/*/locations/*/endpoints/openapi",
            ],
            of: &CHAT,
        },
    ],
};

/// Claude on Google Cloud, which Anthropic manages.
pub(super) const CLAUDE: HostFamily = HostFamily {
    vendor: Vendor::Anthropic,
    hosts: &["claude.googleapis.com", "claude.mtls.googleapis.com"],
    mounts: &[
        Mount { at: &["/v1/projects/*/locations/*/workspaces/*/invoke/v1"], of: &MESSAGES },
        Mount { at: &["/v1/projects/*/locations/*/workspaces/*/invoke/v1"], of: &MODELS },
    ],
};

pub(super) const FIREBASE: HostFamily = HostFamily {
    vendor: Vendor::Gemini,
    hosts: &["firebasevertexai.googleapis.com"],
    mounts: &[Mount {
        at: &["/v1beta/projects/*", "/v1beta/projects/*/locations/*/publishers/google"],
        of: &GENERATE_CONTENT,
    }],
};

/// `loadCodeAssist` says which project and tier a login has; the command line does not start without.
const LOAD: Endpoints = Endpoints { dialect: None, rows: &[(Post, ":loadCodeAssist", Api::Startup)] };

pub(super) const CODE_ASSIST_LOGIN: HostFamily = HostFamily {
    vendor: Vendor::Gemini,
    hosts: &[
        "cloudcode-pa.googleapis.com",
        "daily-cloudcode-pa.googleapis.com",
        "*-cloudcode-pa.sandbox.googleapis.com",
        "cloudcode-pa.sandbox.googleapis.com",
    ],
    mounts: &[Mount { at: &["/v1internal"], of: &CODE_ASSIST }, Mount { at: &["/v1internal"], of: &LOAD }],
};
