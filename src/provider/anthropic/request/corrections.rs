//! Keeps a request of Anthropic Messages valid whose tools were taken out: what named them, or depended on them.

use super::offer::{MessagesTools, OfferedTool};
use super::{catalogue, distinct};
use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// Takes out what is not kept of `tools[]`, and corrects what is left beside it. Where nothing is taken out, nothing is
/// changed.
pub(super) fn make<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &MessagesTools<'d>,
) -> Result<(), Denial> {
    if !offer.loses_any() {
        return Ok(());
    }
    take_out(editor, body, offer)?;
    tool_choice(editor, body, offer)?;
    breakpoints(editor, offer)?;
    // Both look at every tool.
    let (loses_search, loses_code) = (loses_search(offer), offer.lost(catalogue::CODE_EXECUTION));
    for tool in offer.kept() {
        if loses_search {
            load(editor, tool)?;
        }
        if loses_code {
            call_directly(editor, tool)?;
        }
        if catalogue::is_of(&tool.kind, catalogue::WEB_FETCH) {
            url_sources(editor, tool, offer)?;
        }
    }
    Ok(())
}

/// Not every endpoint takes an empty list of tools: where none is left the key is removed too.
fn take_out<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &MessagesTools<'d>,
) -> Result<(), Denial> {
    let Some(tools) = editor.get(body, "tools")? else { return Ok(()) };
    let goes = || offer.declared().filter(|tool| !tool.kept);
    if goes().next().is_some() && offer.declared().all(|tool| !tool.kept) {
        return editor.remove(tools);
    }
    goes().try_for_each(|tool| editor.remove(tool.value))
}

/// Replaces the choice of a removed tool by `auto`, and removes the choice if no tool is left.
fn tool_choice<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &MessagesTools<'d>,
) -> Result<(), Denial> {
    let Some(choice) = editor.get(body, "tool_choice")?.filter(|choice| choice.kind() == Kind::Object) else {
        return Ok(());
    };
    distinct(choice, "tool_choice")?;
    if offer.kept().next().is_none() {
        editor.changed("tool_choice");
        return editor.remove(choice);
    }
    let named = editor.get(choice, "name")?.and_then(Value::text);
    let names_a_tool = editor.get(choice, "type")?.is_some_and(|kind| kind.says("tool"));
    if !names_a_tool || !named.is_some_and(|name| offer.lost_name(&name)) {
        return Ok(());
    }
    let auto = match editor.get(choice, "disable_parallel_tool_use")? {
        None => r#"{"type":"auto"}"#.to_owned(),
        Some(parallel) => format!(r#"{{"type":"auto","disable_parallel_tool_use":{}}}"#, parallel.raw()),
    };
    editor.changed("tool_choice");
    editor.replace(choice, auto)
}

/// Moves the cache breakpoint of a removed tool to the tool before it that stays. There are never more than before.
fn breakpoints<'d>(editor: &mut RequestEditor<'d>, offer: &MessagesTools<'d>) -> Result<(), Denial> {
    let mut before: Option<Value<'d>> = None;
    let loses_search = loses_search(offer);
    for tool in offer.declared() {
        if tool.kept {
            // A tool whose loading is deferred can have none.
            let takes_one = loses_search || !is_deferred(editor, tool.value)?;
            before = if takes_one { Some(tool.value) } else { before };
            continue;
        }
        let breakpoint = editor.get(tool.value, "cache_control")?.filter(|value| !value.is_null());
        let Some((breakpoint, before)) = breakpoint.and_then(|breakpoint| Some((breakpoint, before.take()?)))
        else {
            continue;
        };
        match editor.get(before, "cache_control")? {
            None => editor.insert(before, "cache_control", breakpoint.raw())?,
            Some(none) if none.is_null() => editor.replace(none, breakpoint.raw())?,
            Some(_) => continue,
        }
        editor.changed("cache_control");
    }
    Ok(())
}

fn loses_search(offer: &MessagesTools<'_>) -> bool {
    offer.lost(catalogue::TOOL_SEARCH)
}

fn is_deferred<'d>(editor: &RequestEditor<'d>, object: Value<'d>) -> Result<bool, Denial> {
    Ok(editor.get(object, "defer_loading")?.and_then(Value::as_bool) == Some(true))
}

/// Without a search nothing would load a tool whose loading is deferred.
fn load<'d>(editor: &mut RequestEditor<'d>, tool: &OfferedTool<'d>) -> Result<(), Denial> {
    load_now(editor, tool.value)?;
    if tool.kind != catalogue::MCP_TOOLSET {
        return Ok(());
    }
    if let Some(every) = editor.get(tool.value, "default_config")? {
        load_now(editor, every)?;
    }
    let configs = editor.get(tool.value, "configs")?;
    for one in configs.and_then(Value::entries).into_iter().flatten() {
        load_now(editor, one.value)?;
    }
    Ok(())
}

fn load_now<'d>(editor: &mut RequestEditor<'d>, object: Value<'d>) -> Result<(), Denial> {
    let deferred = editor.get(object, "defer_loading")?.filter(|value| value.as_bool() == Some(true));
    let Some(deferred) = deferred else { return Ok(()) };
    editor.changed("defer_loading");
    editor.replace(deferred, "false")
}

/// Without code execution, what only code may call could never be called.
fn call_directly<'d>(editor: &mut RequestEditor<'d>, tool: &OfferedTool<'d>) -> Result<(), Denial> {
    let Some(callers) = editor.get(tool.value, "allowed_callers")? else { return Ok(()) };
    let is_code = |caller: Value<'d>| {
        caller.text().is_some_and(|name| catalogue::is_of(&name, catalogue::CODE_EXECUTION))
    };
    if !callers.items().into_iter().flatten().any(is_code) {
        return Ok(());
    }
    editor.changed("allowed_callers");
    editor.replace(callers, r#"["direct"]"#)
}

/// Removes the names of removed tools from the sources from which web fetch may take URLs.
fn url_sources<'d>(
    editor: &mut RequestEditor<'d>,
    tool: &OfferedTool<'d>,
    offer: &MessagesTools<'d>,
) -> Result<(), Denial> {
    let Some(sources) = editor.get(tool.value, "url_sources")? else { return Ok(()) };
    for results in ["client_tool_results", "server_tool_results"] {
        let Some(filter) = editor.get(sources, results)? else { continue };
        let Some(tools) = editor.get(filter, "tools")?.and_then(Value::items) else { continue };
        let mut gone = Vec::new();
        for named in tools.clone() {
            let name = editor.get(named, "name")?.and_then(Value::text);
            if name.is_some_and(|name| offer.lost_name(&name)) {
                gone.push(named);
            }
        }
        if gone.is_empty() {
            continue;
        }
        editor.changed("url_sources");
        if gone.len() < tools.count() {
            gone.into_iter().try_for_each(|named| editor.remove(named))?;
            continue;
        }
        let is_only = editor.get(filter, "type")?.is_some_and(|kind| kind.says("only"));
        editor.replace(filter, if is_only { r#"{"type":"none"}"# } else { r#"{"type":"all"}"# })?;
    }
    Ok(())
}
