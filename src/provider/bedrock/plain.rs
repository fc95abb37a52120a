//! Parts of answers that nobody here knows: they pass, unless something like a call is in them.

use crate::fold::fold;
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::Value;

/// Looks through a part of an answer, or all of it.
///
/// # Errors
/// If it may hold a call of a tool in an unknown form.
pub(super) fn check(value: Value<'_>) -> Result<(), BrokenAnswer> {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        rest.extend(value.items().into_iter().flatten());
        for entry in value.entries().into_iter().flatten() {
            if is_of_tools(entry.key) && !is_nothing(entry.value) {
                return Err(BrokenAnswer::ambiguous(
                    "the answer may hold a tool call, in a form that is not known",
                ));
            }
            rest.push(entry.value);
        }
    }
    Ok(())
}

fn is_of_tools(key: Value<'_>) -> bool {
    key.text().is_some_and(|key| {
        let key = fold(&key);
        key.starts_with("tool") || key == "function_call"
    })
}

fn is_nothing(value: Value<'_>) -> bool {
    let is_empty = value.items().is_some_and(|mut items| items.next().is_none())
        || value.entries().is_some_and(|mut entries| entries.next().is_none());
    value.is_null() || is_empty || value.says("")
}
