//! Reads the tokens that a server reports.

use crate::call::Usage;
use crate::wire::json::Value;

/// Reads a `usage`. What a server does not say is `None`.
pub(super) fn read(usage: Value<'_>) -> Usage {
    let of = |key: &str| usage.get(key).ok().flatten().filter(|value| !value.is_null());
    let (prompt, completion) = (of("prompt_tokens_details"), of("completion_tokens_details"));
    let top = Some(usage);
    let input = count(top, "prompt_tokens");
    let output = count(top, "completion_tokens");
    let reasoning = count(completion, "reasoning_tokens").or_else(|| count(top, "reasoning_tokens"));
    // In the order of OpenAI, DeepSeek, Mistral.
    let cached = count(prompt, "cached_tokens")
        .or_else(|| count(top, "prompt_cache_hit_tokens"))
        .or_else(|| count(top, "num_cached_tokens"));
    Usage {
        input,
        output: all_output(input, output, reasoning, count(top, "total_tokens")),
        cache_read: cached,
        cache_write: count(prompt, "cache_write_tokens"),
        reasoning,
    }
}

/// xAI's `completion_tokens` are without reasoning, which the total has; everybody else's have it.
fn all_output(
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
) -> Option<u64> {
    match (input, output, reasoning, total) {
        (Some(read), Some(wrote), Some(thought), Some(total))
            if total == read.saturating_add(wrote).saturating_add(thought) =>
        {
            Some(wrote.saturating_add(thought))
        }
        _ => output,
    }
}

fn count(object: Option<Value<'_>>, key: &str) -> Option<u64> {
    object?.get(key).ok()??.number_text()?.parse().ok()
}
