//! Tools that the provider has run: Groq lists them as `executed_tools`, with what came of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::chunk::entry;
use super::edit::broken;
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate};
use crate::wire::json::{Edits, Kind, Value};

const LIST: &str = "executed_tools";

/// Asks about every tool that a delta or message reports, once. Returns whether one of them is to be taken out.
///
/// # Errors
/// If the list cannot be understood.
pub(super) fn ask(
    said: Value<'_>,
    fates: &mut BTreeMap<u64, CallOutcome>,
    gate: &mut Gate,
) -> Result<bool, BrokenAnswer> {
    let mut cut = false;
    for (number, item) in items(said)? {
        if let std::collections::btree_map::Entry::Vacant(vacant) = fates.entry(number) {
            let name = match text(item, "name")? {
                Some(name) => Some(name),
                None => text(item, "type")?,
            };
            let input = text(item, "arguments")?.unwrap_or_default();
            let id = text(item, "id")?.unwrap_or_default();
            vacant.insert(gate.whole(&CallHead::hosted(&id, &name.unwrap_or_default()), &input));
        }
        cut |= matches!(fates.get(&number), Some(CallOutcome::Denied(_)));
    }
    Ok(cut)
}

/// Removes the denied entries. Returns the texts that replace them, each once.
///
/// # Errors
/// As for [`ask`].
pub(super) fn cut<'d>(
    edits: &mut Edits<'d>,
    said: Value<'d>,
    fates: &mut BTreeMap<u64, CallOutcome>,
) -> Result<Vec<String>, BrokenAnswer> {
    let mut texts = Vec::new();
    for (number, item) in items(said)? {
        if let Some(CallOutcome::Denied(text)) = fates.get_mut(&number) {
            edits.remove(item).map_err(broken)?;
            texts.push(std::mem::take(text));
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

fn items(said: Value<'_>) -> Result<Vec<(u64, Value<'_>)>, BrokenAnswer> {
    let Some(list) = entry(said, LIST)? else { return Ok(Vec::new()) };
    let items = list.items().ok_or_else(|| BrokenAnswer::ambiguous("`executed_tools` is no list"))?;
    items
        .enumerate()
        .map(|(position, item)| {
            if item.kind() != Kind::Object {
                return Err(BrokenAnswer::ambiguous("an entry of `executed_tools` is no object"));
            }
            let index = entry(item, "index")?.and_then(Value::number_text).and_then(|text| text.parse().ok());
            Ok((index.unwrap_or(position as u64), item))
        })
        .collect()
}

fn text<'d>(item: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
    Ok(entry(item, key)?.and_then(Value::text))
}

/// Groq's error for a call that it could not read has what the model wrote: nobody executes it, but it says of a
/// denied call what the agent was not to have. Returns the document with the refusal in its place.
///
/// # Errors
/// If a key stands twice.
pub(super) fn failed_generation(
    document: &crate::wire::json::Document<'_>,
    gate: &mut Gate,
) -> Result<Option<Vec<u8>>, BrokenAnswer> {
    let root = document.root();
    let Some(error) = failed(root)? else { return Ok(None) };
    let Some(generation) = entry(error, "failed_generation")? else { return Ok(None) };
    let Some(wrote) = generation.text() else { return Ok(None) };
    let Some((name, input)) = call(&wrote) else { return Ok(None) };
    let CallOutcome::Denied(refusal) = gate.whole(&CallHead::new("", &name), &input) else { return Ok(None) };
    let mut edits = Edits::new(document);
    edits.replace(generation, super::edit::quoted(&refusal)).map_err(broken)?;
    Ok(Some(edits.apply()))
}

/// The `error` of an answer or an event.
pub(super) fn failed(root: Value<'_>) -> Result<Option<Value<'_>>, BrokenAnswer> {
    if root.kind() != Kind::Object {
        return Ok(None);
    }
    Ok(entry(root, "error")?.filter(|error| error.kind() == Kind::Object))
}

/// `{"name":…,"arguments":…}`, or `<function=NAME>INPUT`.
fn call(wrote: &str) -> Option<(String, String)> {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(wrote) {
        let call = json.get(0).unwrap_or(&json);
        let name = call.get("name")?.as_str()?.to_owned();
        let input = call.get("arguments").or_else(|| call.get("parameters"));
        let text =
            |input: &serde_json::Value| input.as_str().map_or_else(|| input.to_string(), str::to_owned);
        return Some((name, input.map_or_else(String::new, text)));
    }
    let (_, rest) = wrote.split_once("<function=")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && !"_-.:/$".contains(c))?;
    let (name, rest) = rest.split_at(end);
    let input = rest.trim_start_matches(['>', ' ', '(']);
    let input = input.split("</function>").next().unwrap_or(input).trim_end_matches([')', ' ', '>']);
    Some((name.to_owned(), input.to_owned()))
}
