//! `gemini`: Google's server of this API: <https://ai.google.dev/gemini-api/docs/openai>

use crate::provider::openai_chat::ask::draft::Draft;

// The request.

/// Excuses calls of the conversation from the signature that Gemini 3 gives its own calls and wants back:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>
pub(super) fn request(draft: &mut Draft<'_>) {
    draft.skips_signatures = true;
}
