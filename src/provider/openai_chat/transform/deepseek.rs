//! `deepseek`: DeepSeek's own server, and those that are like it.

use std::borrow::Cow;

use crate::provider::openai_chat::ask::draft::Draft;
use crate::provider::translate::exceeds;

/// The most tokens of an answer that its chat model gives: <https://api-docs.deepseek.com/quick_start/pricing>
const MOST: u64 = 8192;

// The request.

/// Asks for `max_tokens`, and for no more than the server gives unless policy names a number of its own.
pub(super) fn request(draft: &mut Draft<'_>, max_tokens: Option<u64>) {
    let Some(limit) = &mut draft.limit else { return };
    limit.of_completion = false;
    if max_tokens.is_none() && exceeds(&limit.tokens, MOST) {
        limit.tokens = Cow::Owned(MOST.to_string());
        limit.is_lowered = true;
    }
}
