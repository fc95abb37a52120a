//! Reads the token counts of Converse.

use crate::call::Usage;
use crate::provider::answer::BrokenAnswer;
use crate::provider::answer::member::{count, present};
use crate::wire::json::Value;

/// Reads `usage`. AWS counts tokens read from a cache and written to one beside `inputTokens`.
pub(super) fn read(body: Value<'_>, usage: &mut Usage) -> Result<(), BrokenAnswer> {
    let Some(said) = present(body, "usage")? else { return Ok(()) };
    let (read, write) = (count(said, "cacheReadInputTokens")?, count(said, "cacheWriteInputTokens")?);
    if let Some(fresh) = count(said, "inputTokens")? {
        usage.input = Some(fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0)));
    }
    usage.output = count(said, "outputTokens")?.or(usage.output);
    usage.cache_read = read.or(usage.cache_read);
    usage.cache_write = write.or(usage.cache_write);
    Ok(())
}

/// The model that a prompt router chose.
pub(super) fn routed_model(body: Value<'_>) -> Result<Option<String>, BrokenAnswer> {
    let Some(trace) = present(body, "trace")? else { return Ok(None) };
    let Some(router) = present(trace, "promptRouter")? else { return Ok(None) };
    Ok(present(router, "invokedModelId")?.and_then(Value::text).map(std::borrow::Cow::into_owned))
}
