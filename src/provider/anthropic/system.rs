//! Takes blocks out of `system` of a Messages body, and keeps the rest valid.

use super::prompt::BILLING;
use crate::call::turn::Text;
use crate::wire::json::{EditError, Edits, Kind, Value};

/// The blocks of text of `system`, each with its text: the whole of it where it is a string.
pub(super) fn texts(system: Value<'_>) -> impl Iterator<Item = (Value<'_>, Value<'_>)> {
    let is_string = |value: &Value<'_>| value.kind() == Kind::String;
    let whole = Some(system).filter(is_string).map(|text| (text, text));
    let blocks = system.items().into_iter().flatten().filter_map(move |block| {
        let is_text = block.get("type").ok().flatten().is_some_and(|kind| kind.says("text"));
        let text = block.get("text").ok().flatten().filter(is_string);
        text.filter(|_| is_text).map(|text| (block, text))
    });
    whole.into_iter().chain(blocks)
}

/// Removes these blocks, or the whole where they are all there is: servers refuse empty ones. A breakpoint of a cache on
/// a block that goes moves to the block before it, so that as much as before is cached.
pub(super) fn remove<'d>(
    edits: &mut Edits<'d>,
    system: Value<'d>,
    blocks: &[Value<'d>],
) -> Result<(), EditError> {
    let goes = |block: Value<'d>| blocks.iter().any(|gone| gone.span() == block.span());
    let mut all = system.items().into_iter().flatten();
    if !blocks.is_empty() && all.all(goes) {
        return edits.remove(system);
    }
    let mut before: Option<Value<'d>> = None;
    for block in system.items().into_iter().flatten() {
        if !goes(block) {
            before = Some(block);
            continue;
        }
        if let (Some(breakpoint), Some(kept)) = (breakpoint(block), before) {
            match kept.get("cache_control").ok().flatten() {
                None => edits.insert(kept, "cache_control", breakpoint.raw())?,
                Some(none) if none.is_null() => edits.replace(none, breakpoint.raw())?,
                Some(_) => {}
            }
            // The next one that goes must not add it again.
            before = None;
        }
        edits.remove(block)?;
    }
    Ok(())
}

fn breakpoint(block: Value<'_>) -> Option<Value<'_>> {
    block.get("cache_control").ok().flatten().filter(|value| !value.is_null())
}

/// Takes the billing line out: the block that begins with it, or the line where `system` is one text. Returns whether
/// there was one.
pub(super) fn remove_billing<'d>(edits: &mut Edits<'d>, system: Value<'d>) -> Result<bool, EditError> {
    let is_billing = |text: Value<'d>| Text::of(text).is_some_and(|text| text.escaped().starts_with(BILLING));
    if is_billing(system) {
        let line = system.text().and_then(|text| text.find('\n'));
        match line {
            Some(line) => edits.replace_within(system, 0..line + 1, "")?,
            None => edits.remove(system)?,
        }
        return Ok(true);
    }
    let found: Vec<Value<'d>> =
        texts(system).filter(|(_, text)| is_billing(*text)).map(|(block, _)| block).collect();
    remove(edits, system, &found)?;
    Ok(!found.is_empty())
}
