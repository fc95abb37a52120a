//! `openrouter`: reasoning also comes as a list of details.

// The side of answers.

use crate::call::turn::said::JsonText;
use crate::wire::json::Value;

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
