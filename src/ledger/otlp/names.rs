//! The names of attributes: OpenTelemetry's semantic conventions for generative AI, HTTP and Kubernetes, and our own.
//!
//! The crate with the conventions marks every `gen_ai` name as deprecated, since they moved to a repository of their
//! own (<https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>).

use crate::call::Api;

pub(in crate::ledger) const OPERATION: &str = "gen_ai.operation.name";
pub(in crate::ledger) const PROVIDER: &str = "gen_ai.provider.name";
pub(in crate::ledger) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(in crate::ledger) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(in crate::ledger) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(in crate::ledger) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(in crate::ledger) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(in crate::ledger) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(in crate::ledger) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(in crate::ledger) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(in crate::ledger) const TOOL: &str = "gen_ai.tool.name";
pub(in crate::ledger) const TOOL_CALL: &str = "gen_ai.tool.call.id";

pub(in crate::ledger) const METHOD: &str = "http.request.method";
pub(in crate::ledger) const STATUS: &str = "http.response.status_code";
pub(in crate::ledger) const PATH: &str = "url.path";
pub(in crate::ledger) const HOST: &str = "server.address";
pub(in crate::ledger) const PORT: &str = "server.port";
pub(in crate::ledger) const VERSION: &str = "network.protocol.version";
pub(in crate::ledger) const ERROR: &str = "error.type";
pub(in crate::ledger) const SESSION: &str = "session.id";

pub(in crate::ledger) const NAMESPACE: &str = "k8s.namespace.name";
pub(in crate::ledger) const POD: &str = "k8s.pod.name";
pub(in crate::ledger) const NODE: &str = "k8s.node.name";

pub(in crate::ledger) const EVENT: &str = "postern.event.id";
pub(in crate::ledger) const SEQUENCE: &str = "postern.sequence";
pub(in crate::ledger) const COUNT: &str = "postern.count";
pub(in crate::ledger) const REASON: &str = "postern.reason";
pub(in crate::ledger) const ENFORCEMENT: &str = "postern.enforcement";
pub(in crate::ledger) const FAILURE: &str = "postern.failure";
pub(in crate::ledger) const INPUT_SHA256: &str = "postern.tool.input_sha256";
pub(in crate::ledger) const BYTES: &str = "postern.payload.bytes";
pub(in crate::ledger) const EXCHANGE: &str = "postern.exchange.id";
pub(in crate::ledger) const CONNECTION: &str = "postern.connection.id";
pub(in crate::ledger) const API: &str = "postern.api";
pub(in crate::ledger) const KIND: &str = "postern.kind";
pub(in crate::ledger) const VERDICT: &str = "postern.verdict";
pub(in crate::ledger) const ROUTE_RULE: &str = "postern.route.rule";
pub(in crate::ledger) const ROUTE_LABEL: &str = "postern.route.label";
pub(in crate::ledger) const ATTEMPT_CLASS: &str = "postern.attempt.class";
pub(in crate::ledger) const ATTEMPT_MS: &str = "postern.attempt.ms";
pub(in crate::ledger) const RULE: &str = "postern.rule";
pub(in crate::ledger) const TRANSFORM: &str = "postern.transform";

/// The operation of an API, as the conventions call it where they do.
pub(in crate::ledger) fn operation(api: &str) -> &'static str {
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
