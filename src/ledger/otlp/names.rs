//! The names of attributes: OpenTelemetry's semantic conventions for generative AI, HTTP and Kubernetes, and our own.
//!
//! The crate with the conventions marks every `gen_ai` name as deprecated, since they moved to a repository of their
//! own (<https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>).

use crate::call::Api;

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";

pub(super) const METHOD: &str = "http.request.method";
pub(super) const STATUS: &str = "http.response.status_code";
pub(super) const PATH: &str = "url.path";
pub(super) const HOST: &str = "server.address";
pub(super) const PORT: &str = "server.port";
pub(super) const VERSION: &str = "network.protocol.version";
pub(super) const ERROR: &str = "error.type";
pub(super) const SESSION: &str = "session.id";

pub(super) const NAMESPACE: &str = "k8s.namespace.name";
pub(super) const POD: &str = "k8s.pod.name";
pub(super) const NODE: &str = "k8s.node.name";

pub(super) const EXCHANGE: &str = "postern.exchange.id";
pub(super) const CONNECTION: &str = "postern.connection.id";
pub(super) const API: &str = "postern.api";
pub(super) const KIND: &str = "postern.kind";
pub(super) const VERDICT: &str = "postern.verdict";
pub(super) const RULE: &str = "postern.rule";
pub(super) const TRANSFORM: &str = "postern.transform";

/// The operation of an API, as the conventions call it where they do.
pub(super) fn operation(api: &str) -> &'static str {
    let api = Api::ALL.iter().find(|known| known.as_str() == api);
    match api {
        Some(Api::Messages | Api::ChatCompletions | Api::Responses | Api::Converse | Api::InvokeModel) => {
            "chat"
        }
        Some(Api::GenerateContent) => "generate_content",
        Some(Api::Embeddings) => "embeddings",
        Some(Api::CountTokens) => "count_tokens",
        Some(Api::Models) => "list_models",
        Some(Api::Startup | Api::Other) | None => "other",
    }
}
