//! Reads the facts of an answer: its id, the model, tokens.

use super::chunk::{ChunkChoice, entry};
use crate::call::{AnswerFacts, Usage};
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{Kind, Value};

/// Takes up what a chunk or a whole answer says; what comes later counts.
///
/// # Errors
/// If a key stands twice.
pub(super) fn read(
    root: Value<'_>,
    choices: &[ChunkChoice<'_>],
    facts: &mut AnswerFacts,
) -> Result<(), BrokenAnswer> {
    if root.kind() != Kind::Object {
        return Ok(());
    }
    for (fact, key) in [(&mut facts.model, "model"), (&mut facts.id, "id")] {
        if fact.is_none() {
            let text = entry(root, key)?.and_then(Value::text).filter(|text| !text.is_empty());
            *fact = text.map(std::borrow::Cow::into_owned);
        }
    }
    let of_groq = entry(root, "x_groq")?.map_or(Ok(None), |own| entry(own, "usage"))?;
    let mut said = vec![of_groq];
    // Moonshot's place for it.
    for choice in choices {
        said.push(entry(choice.value, "usage")?);
    }
    said.push(entry(root, "usage")?);
    for usage in said.into_iter().flatten() {
        tokens(usage, &mut facts.usage)?;
    }
    Ok(())
}

fn tokens(usage: Value<'_>, facts: &mut Usage) -> Result<(), BrokenAnswer> {
    let count = |object: Option<Value<'_>>, key: &str| -> Result<Option<u64>, BrokenAnswer> {
        let value = object.map_or(Ok(None), |object| entry(object, key))?;
        Ok(value.and_then(Value::number_text).and_then(|text| text.parse().ok()))
    };
    let prompt = entry(usage, "prompt_tokens_details")?;
    let completion = entry(usage, "completion_tokens_details")?;
    let top = Some(usage);
    let input = count(top, "prompt_tokens")?;
    let reasoning = count(completion, "reasoning_tokens")?.or(count(top, "reasoning_tokens")?);
    let cached = [
        count(prompt, "cached_tokens")?,
        count(top, "prompt_cache_hit_tokens")?,
        count(top, "num_cached_tokens")?,
    ];
    let mut output = count(top, "completion_tokens")?;
    if let (Some(read), Some(wrote), Some(thought), Some(total)) =
        (input, output, reasoning, count(top, "total_tokens")?)
        && thought > 0
        && total == read.saturating_add(wrote).saturating_add(thought)
    {
        // xAI's count of what was written is without reasoning.
        output = Some(wrote.saturating_add(thought));
    }
    let updates = [
        (&mut facts.input, input),
        (&mut facts.output, output),
        (&mut facts.cache_read, cached.into_iter().flatten().next()),
        (&mut facts.cache_write, count(prompt, "cache_write_tokens")?),
        (&mut facts.reasoning, reasoning),
    ];
    for (fact, said) in updates {
        *fact = said.or(*fact);
    }
    Ok(())
}
