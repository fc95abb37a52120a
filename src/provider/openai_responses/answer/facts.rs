//! Reads the facts of a response: the model, the id, the usage.

use super::called::{number, text};
use crate::call::AnswerFacts;
use crate::provider::answer::BrokenAnswer;
use crate::provider::answer::member::get;
use crate::wire::json::{Kind, Value};

/// Reads a response object. Returns its tokens, input and output; 0 where it does not say.
///
/// # Errors
/// If a key stands twice.
pub(super) fn read(response: Value<'_>, facts: &mut AnswerFacts) -> Result<u64, BrokenAnswer> {
    if facts.id.is_none() {
        facts.id = text(response, "id")?.map(Into::into);
    }
    if let Some(model) = text(response, "model")? {
        facts.model = Some(model.into());
    }
    let Some(usage) = object(response, "usage")? else { return Ok(0) };
    let said = |object: Option<Value<'_>>, key: &str| {
        object.and_then(|object| number(object, key).unwrap_or_default())
    };
    let (input, output) = (object(usage, "input_tokens_details")?, object(usage, "output_tokens_details")?);
    let (read, wrote) = (said(Some(usage), "input_tokens"), said(Some(usage), "output_tokens"));
    facts.usage.input = read.or(facts.usage.input);
    facts.usage.output = wrote.or(facts.usage.output);
    facts.usage.cache_read = said(input, "cached_tokens").or(facts.usage.cache_read);
    facts.usage.cache_write = said(input, "cache_write_tokens").or(facts.usage.cache_write);
    facts.usage.reasoning = said(output, "reasoning_tokens").or(facts.usage.reasoning);
    Ok(read.unwrap_or(0).saturating_add(wrote.unwrap_or(0)))
}

fn object<'d>(value: Value<'d>, key: &str) -> Result<Option<Value<'d>>, BrokenAnswer> {
    Ok(get(value, key)?.filter(|value| value.kind() == Kind::Object))
}
