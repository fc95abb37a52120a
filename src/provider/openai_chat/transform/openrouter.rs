//! `openrouter`: OpenRouter passes the breakpoints of a cache on to Claude:
//! <https://openrouter.ai/docs/features/prompt-caching>

use crate::provider::openai_chat::ask::draft::Draft;

// The request.

/// Keeps `cache_control` on texts for models of Anthropic's.
pub(super) fn request(draft: &mut Draft<'_>, model: &str) {
    draft.keeps_cache = model.contains("claude");
}
