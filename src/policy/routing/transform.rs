//! The names of transforms, by which policies choose them.

/// The beginning of those that rewrite the schemas of tools; a list has at most one.
const SCHEMA: &str = "schema:";

/// Every transform, in the words of policies.
pub const TRANSFORMS: [&str; 14] = [
    "reasoning",
    "extrathinktag",
    "forcereasoning",
    "enhancetool",
    "tooluse",
    "deepseek",
    "openrouter",
    "groq",
    "mistral",
    "gemini",
    "schema:generic",
    "schema:ollama",
    "schema:openai",
    "schema:gemini",
];

/// Whether a transform rewrites the schemas of tools.
pub(in crate::policy) fn is_schema(name: &str) -> bool {
    name.starts_with(SCHEMA)
}
