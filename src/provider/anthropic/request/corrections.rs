//! Keeps a request of Anthropic Messages valid whose tools were taken out: what named them, or depended on them.

use super::offer::{Offer, Tool};
use super::{catalogue, distinct};
use crate::call::Denial;
use crate::provider::request::Draft;
use crate::wire::json::{Kind, Value};

/// Takes out what is not kept of `tools[]`, and corrects what is left beside it. Where nothing is taken out, nothing is
/// changed.
pub(super) fn make<'d>(draft: &mut Draft<'d>, body: Value<'d>, offer: &Offer<'d>) -> Result<(), Denial> {
    if !offer.loses_any() {
        return Ok(());
    }
    take_out(draft, body, offer)?;
    tool_choice(draft, body, offer)?;
    breakpoints(draft, offer)?;
    // Both look at every tool.
    let (loses_search, loses_code) = (loses_search(offer), offer.lost(catalogue::CODE_EXECUTION));
    for tool in offer.kept() {
        if loses_search {
            load(draft, tool)?;
        }
        if loses_code {
            call_directly(draft, tool)?;
        }
        if catalogue::is_of(&tool.kind, catalogue::WEB_FETCH) {
            url_sources(draft, tool, offer)?;
        }
    }
    Ok(())
}

/// Not every front door takes an empty list of tools: where none is left the key goes too.
fn take_out<'d>(draft: &mut Draft<'d>, body: Value<'d>, offer: &Offer<'d>) -> Result<(), Denial> {
    let Some(tools) = draft.get(body, "tools")? else { return Ok(()) };
    let goes = || offer.declared().filter(|tool| !tool.kept);
    if goes().next().is_some() && offer.declared().all(|tool| !tool.kept) {
        return draft.remove(tools);
    }
    goes().try_for_each(|tool| draft.remove(tool.value))
}

/// A choice of a tool that is gone becomes the model's own; without tools there is nothing to choose.
fn tool_choice<'d>(draft: &mut Draft<'d>, body: Value<'d>, offer: &Offer<'d>) -> Result<(), Denial> {
    let Some(choice) = draft.get(body, "tool_choice")?.filter(|choice| choice.kind() == Kind::Object) else {
        return Ok(());
    };
    distinct(choice, "tool_choice")?;
    if offer.kept().next().is_none() {
        draft.changed("tool_choice");
        return draft.remove(choice);
    }
    let named = draft.get(choice, "name")?.and_then(Value::text);
    let names_a_tool = draft.get(choice, "type")?.is_some_and(|kind| kind.says("tool"));
    if !names_a_tool || !named.is_some_and(|name| offer.lost_name(&name)) {
        return Ok(());
    }
    let auto = match draft.get(choice, "disable_parallel_tool_use")? {
        None => r#"{"type":"auto"}"#.to_owned(),
        Some(parallel) => format!(r#"{{"type":"auto","disable_parallel_tool_use":{}}}"#, parallel.raw()),
    };
    draft.changed("tool_choice");
    draft.replace(choice, auto)
}

/// Moves the cache breakpoint of a tool that goes to the one before it that stays. There are never more than before.
fn breakpoints<'d>(draft: &mut Draft<'d>, offer: &Offer<'d>) -> Result<(), Denial> {
    let mut before: Option<Value<'d>> = None;
    let loses_search = loses_search(offer);
    for tool in offer.declared() {
        if tool.kept {
            // A tool whose loading is deferred can have none.
            let takes_one = loses_search || !is_deferred(draft, tool.value)?;
            before = if takes_one { Some(tool.value) } else { before };
            continue;
        }
        let breakpoint = draft.get(tool.value, "cache_control")?.filter(|value| !value.is_null());
        let Some((breakpoint, before)) = breakpoint.and_then(|breakpoint| Some((breakpoint, before.take()?)))
        else {
            continue;
        };
        match draft.get(before, "cache_control")? {
            None => draft.insert(before, "cache_control", breakpoint.raw())?,
            Some(none) if none.is_null() => draft.replace(none, breakpoint.raw())?,
            Some(_) => continue,
        }
        draft.changed("cache_control");
    }
    Ok(())
}

fn loses_search(offer: &Offer<'_>) -> bool {
    offer.lost(catalogue::TOOL_SEARCH)
}

fn is_deferred<'d>(draft: &Draft<'d>, object: Value<'d>) -> Result<bool, Denial> {
    Ok(draft.get(object, "defer_loading")?.and_then(Value::as_bool) == Some(true))
}

/// Without a search nothing would load a tool whose loading is deferred.
fn load<'d>(draft: &mut Draft<'d>, tool: &Tool<'d>) -> Result<(), Denial> {
    load_now(draft, tool.value)?;
    if tool.kind != catalogue::MCP_TOOLSET {
        return Ok(());
    }
    if let Some(every) = draft.get(tool.value, "default_config")? {
        load_now(draft, every)?;
    }
    let configs = draft.get(tool.value, "configs")?;
    for one in configs.and_then(Value::entries).into_iter().flatten() {
        load_now(draft, one.value)?;
    }
    Ok(())
}

fn load_now<'d>(draft: &mut Draft<'d>, object: Value<'d>) -> Result<(), Denial> {
    let deferred = draft.get(object, "defer_loading")?.filter(|value| value.as_bool() == Some(true));
    let Some(deferred) = deferred else { return Ok(()) };
    draft.changed("defer_loading");
    draft.replace(deferred, "false")
}

/// Without code execution, what only code may call could never be called.
fn call_directly<'d>(draft: &mut Draft<'d>, tool: &Tool<'d>) -> Result<(), Denial> {
    let Some(callers) = draft.get(tool.value, "allowed_callers")? else { return Ok(()) };
    let is_code = |caller: Value<'d>| {
        caller.text().is_some_and(|name| catalogue::is_of(&name, catalogue::CODE_EXECUTION))
    };
    if !callers.items().into_iter().flatten().any(is_code) {
        return Ok(());
    }
    draft.changed("allowed_callers");
    draft.replace(callers, r#"["direct"]"#)
}

/// Takes the names of tools that are gone out of what web fetch may take URLs from.
fn url_sources<'d>(draft: &mut Draft<'d>, tool: &Tool<'d>, offer: &Offer<'d>) -> Result<(), Denial> {
    let Some(sources) = draft.get(tool.value, "url_sources")? else { return Ok(()) };
    for results in ["client_tool_results", "server_tool_results"] {
        let Some(filter) = draft.get(sources, results)? else { continue };
        let Some(tools) = draft.get(filter, "tools")?.and_then(Value::items) else { continue };
        let mut gone = Vec::new();
        for named in tools.clone() {
            let name = draft.get(named, "name")?.and_then(Value::text);
            if name.is_some_and(|name| offer.lost_name(&name)) {
                gone.push(named);
            }
        }
        if gone.is_empty() {
            continue;
        }
        draft.changed("url_sources");
        if gone.len() < tools.count() {
            gone.into_iter().try_for_each(|named| draft.remove(named))?;
            continue;
        }
        let is_only = draft.get(filter, "type")?.is_some_and(|kind| kind.says("only"));
        draft.replace(filter, if is_only { r#"{"type":"none"}"# } else { r#"{"type":"all"}"# })?;
    }
    Ok(())
}
