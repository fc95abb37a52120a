//! What names tools beside `tools`: corrected where what it names is gone.

use super::super::super::request::Draft;
use super::present;
use super::tools::Offered;
use crate::call::Denial;
use crate::wire::json::Value;

const AUTO: &str = "\"auto\"";

/// Corrects a `tool_choice` that names, or demands, what was taken out.
///
/// # Errors
/// Where it cannot be read.
pub(super) fn correct<'d>(draft: &mut Draft<'d>, root: Value<'d>, offered: &Offered) -> Result<(), Denial> {
    let Some(choice) = present(draft, root, "tool_choice")? else { return Ok(()) };
    if !offered.is_less() {
        return Ok(());
    }
    let is_word = choice.text().is_some();
    if offered.is_nothing() {
        // `auto` and `none` may stand without tools.
        if !is_word || choice.says("required") {
            draft.remove(choice)?;
            draft.changed("tool_choice");
        }
        return Ok(());
    }
    if is_word {
        return Ok(());
    }
    if draft.get(choice, "type")?.is_some_and(|kind| kind.says("allowed_tools")) {
        return prune_allowed(draft, choice, offered);
    }
    if offered.has_lost(draft, choice)? {
        draft.replace(choice, AUTO)?;
        draft.changed("tool_choice");
    }
    Ok(())
}

fn prune_allowed<'d>(draft: &mut Draft<'d>, choice: Value<'d>, offered: &Offered) -> Result<(), Denial> {
    // Chat Completions has the list one object deeper; some that speak both take either.
    let inner = draft.get(choice, "allowed_tools")?.unwrap_or(choice);
    let Some(items) = draft.get(inner, "tools")?.and_then(Value::items) else { return Ok(()) };
    let (mut lost, mut left) = (Vec::new(), 0);
    for name in items {
        if offered.has_lost(draft, name)? { lost.push(name) } else { left += 1 }
    }
    if lost.is_empty() {
        return Ok(());
    }
    draft.changed("tool_choice");
    if left == 0 {
        return draft.replace(choice, AUTO);
    }
    lost.into_iter().try_for_each(|name| draft.remove(name))
}

/// Takes out of `include` what only a tool that is gone could have answered.
///
/// # Errors
/// Where it cannot be read.
pub(super) fn prune_include<'d>(
    draft: &mut Draft<'d>,
    root: Value<'d>,
    offered: &Offered,
) -> Result<(), Denial> {
    let Some(include) = present(draft, root, "include")? else { return Ok(()) };
    let is_lost = |entry: &Value<'d>| {
        let text = entry.text();
        let family = text.as_deref().and_then(|text| text.split_once("_call"));
        family.is_some_and(|(family, _)| offered.has_lost_family(family))
    };
    let entries: Vec<Value<'d>> = include.items().into_iter().flatten().collect();
    let lost: Vec<Value<'d>> = entries.iter().copied().filter(is_lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    draft.changed("include");
    if lost.len() == entries.len() {
        return draft.remove(include);
    }
    lost.into_iter().try_for_each(|entry| draft.remove(entry))
}
