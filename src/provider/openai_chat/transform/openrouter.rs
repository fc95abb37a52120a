//! `openrouter`: OpenRouter passes the breakpoints of a cache on to Claude, and tells reasoning as a list of details, too:
//! <https://openrouter.ai/docs/features/prompt-caching>

use crate::call::turn::said::JsonText;
use crate::provider::openai_chat::ask::draft::Draft;
use crate::wire::json::Value;

// The request.

/// Keeps `cache_control` on texts for models of Anthropic's.
pub(super) fn request(draft: &mut Draft<'_>, model: &str) {
    draft.keeps_cache = model.contains("claude");
}

// The side of answers.

/// The texts of `reasoning_details`, in their order: `text` of `reasoning.text`, `summary` of `reasoning.summary`.
/// Encrypted details have none. <https://openrouter.ai/docs/use-cases/reasoning-tokens>
pub(in crate::provider::openai_chat) fn reasoning_texts(
    details: Value<'_>,
) -> impl Iterator<Item = JsonText<'_>> {
    details.items().into_iter().flatten().filter_map(|detail| {
        let text_of = |key: &str| detail.get(key).ok().flatten().and_then(JsonText::of);
        text_of("text").or_else(|| text_of("summary"))
    })
}
