//! The tools of a request: which of them the client runs, and what has to follow where others are taken out.

use crate::call::Denial;
use crate::provider::request::{RequestEditor, definition, hosted, may_write};
use crate::wire::json::{Kind, Value};

/// The types of tools that the client runs; the provider runs every other, and whatever is not known yet.
const CLIENT: &[&str] = &["function", "custom"];

/// One entry of `tools`, of `allowed_tools`, or a `tool_choice`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolEntry {
    /// As it is written.
    kind: String,
    /// Its name, if it has one.
    name: Option<String>,
}

/// The tools of a request that stay, and those that are removed.
#[derive(Debug, Default)]
struct ToolEdits {
    kept: Vec<ToolEntry>,
    removed: Vec<ToolEntry>,
}

/// Asks about every tool, takes out those that policy does not open, and says those that stay as facts.
///
/// # Errors
/// If the request is to be refused for a tool, or a tool cannot be understood.
pub(super) fn read(editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    let root = editor.root();
    if let Some(list) = editor.get(root, "tools")?.filter(|list| !list.is_null()) {
        let tools = strip(editor, list)?;
        if !tools.removed.is_empty() {
            follow(editor, &tools)?;
        }
    }
    functions(editor)?;
    if editor.has_lost_all() && editor.get(root, "tool_choice")?.is_some_and(|choice| choice.says("none")) {
        editor.excuse();
    }
    editor.facts.writes = editor.facts.tools.iter().any(may_write);
    Ok(())
}

fn strip<'d>(editor: &mut RequestEditor<'d>, list: Value<'d>) -> Result<ToolEdits, Denial> {
    let items = list.items().ok_or_else(|| Denial::unparseable("tools", "it is not a list"))?;
    let (mut tools, mut stripped) = (ToolEdits::default(), Vec::new());
    for item in items {
        let entry = read_entry(editor, item)?;
        let is_hosted = !CLIENT.contains(&entry.kind.as_str());
        if is_hosted && editor.strips_tool(&entry.kind)? {
            tools.removed.push(entry);
            stripped.push(item);
            continue;
        }
        let describe = if is_hosted { hosted } else { definition };
        editor.facts.tools.push(describe(entry.name.as_deref().unwrap_or(&entry.kind), item));
        editor.facts.models.extend(asked_by(editor, item)?);
        tools.kept.push(entry);
    }
    // An empty list is an error to most providers (`empty_array`).
    if tools.kept.is_empty() && !stripped.is_empty() {
        editor.remove(list)?;
    } else {
        stripped.into_iter().try_for_each(|item| editor.remove(item))?;
    }
    Ok(tools)
}

fn read_entry<'d>(editor: &RequestEditor<'d>, item: Value<'d>) -> Result<ToolEntry, Denial> {
    if item.kind() != Kind::Object {
        return Err(Denial::unparseable("tools", "an entry is not an object"));
    }
    let kind = match editor.get(item, "type")? {
        // There are vendors whose own clients leave it out.
        None if is_function_alone(item) => Some("function".into()),
        kind => kind.and_then(Value::text),
    };
    let kind = kind.ok_or_else(|| Denial::unparseable("tools", "an entry has no type"))?.into_owned();
    Ok(ToolEntry { name: name_of(editor, item, &kind)?, kind })
}

/// Whether an object is the definition of a function, or the choice of one, and can be nothing else.
fn is_function_alone(item: Value<'_>) -> bool {
    let mut entries = item.entries().into_iter().flatten().filter(|entry| !entry.value.is_null());
    let first =
        entries.next().filter(|entry| entry.key.says("function") && entry.value.kind() == Kind::Object);
    first.is_some() && entries.next().is_none()
}

/// The name stands in an object that is called like the type (`function.name`), or beside the type.
fn name_of<'d>(editor: &RequestEditor<'d>, item: Value<'d>, kind: &str) -> Result<Option<String>, Denial> {
    for key in [kind, "function"] {
        if let Some(inner) = editor.get(item, key)?
            && let Some(name) = editor.get(inner, "name")?.and_then(Value::text)
        {
            return Ok(Some(name.into_owned()));
        }
    }
    Ok(editor.get(item, "name")?.and_then(Value::text).map(std::borrow::Cow::into_owned))
}

/// The model that a tool of the provider's asks for advice.
fn asked_by<'d>(editor: &RequestEditor<'d>, item: Value<'d>) -> Result<Option<String>, Denial> {
    let Some(parameters) = editor.get(item, "parameters")? else { return Ok(None) };
    let model = editor.get(parameters, "model")?.and_then(Value::text).map(std::borrow::Cow::into_owned);
    Ok(model.filter(|model| !editor.facts.models.contains(model)))
}

/// The functions of the time before tools: the client runs them all.
fn functions(editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    let Some(list) = editor.get(editor.root(), "functions")?.filter(|list| !list.is_null()) else {
        return Ok(());
    };
    let items = list.items().ok_or_else(|| Denial::unparseable("functions", "it is not a list"))?;
    for item in items {
        let name = editor.get(item, "name")?.and_then(Value::text);
        let name = name.ok_or_else(|| Denial::unparseable("functions", "an entry has no name"))?;
        editor.facts.tools.push(definition(&name, item));
    }
    Ok(())
}

/// Corrects the places that name tools: none may name a removed tool, and all are removed if no tool is left.
fn follow(editor: &mut RequestEditor<'_>, tools: &ToolEdits) -> Result<(), Denial> {
    let root = editor.root();
    let choice = editor.get(root, "tool_choice")?;
    if tools.kept.is_empty() {
        if let Some(choice) = choice {
            editor.remove(choice)?;
            editor.changed("tool_choice: removed");
        }
        if let Some(parallel) = editor.get(root, "parallel_tool_calls")? {
            editor.remove(parallel)?;
            editor.changed("parallel_tool_calls: removed");
        }
        return Ok(());
    }
    choice.map_or(Ok(()), |choice| correct(editor, choice, tools))
}

fn correct<'d>(editor: &mut RequestEditor<'d>, choice: Value<'d>, tools: &ToolEdits) -> Result<(), Denial> {
    let kind = match editor.get(choice, "type")? {
        None if is_function_alone(choice) => Some("function".into()),
        kind => kind.and_then(Value::text),
    };
    let Some(kind) = kind else { return Ok(()) };
    if kind == "allowed_tools" {
        return prune(editor, choice, tools);
    }
    let chosen = ToolEntry { name: name_of(editor, choice, &kind)?, kind: kind.into_owned() };
    if tools.lost(&chosen) {
        editor.replace(choice, "\"auto\"")?;
        editor.changed("tool_choice: auto");
    }
    Ok(())
}

/// Takes what is gone out of the tools to which the model is restricted; where nothing else is among them, it may
/// call none.
fn prune<'d>(editor: &mut RequestEditor<'d>, choice: Value<'d>, tools: &ToolEdits) -> Result<(), Denial> {
    let inner = editor.get(choice, "allowed_tools")?.unwrap_or(choice);
    let Some(items) = editor.get(inner, "tools")?.and_then(Value::items) else { return Ok(()) };
    let (mut lost, mut left) = (Vec::new(), false);
    for item in items {
        if tools.lost(&read_entry(editor, item)?) {
            lost.push(item);
        } else {
            left = true;
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    if !left {
        editor.replace(choice, "\"none\"")?;
        editor.changed("tool_choice: none");
        return Ok(());
    }
    editor.changed("tool_choice: pruned");
    lost.into_iter().try_for_each(|item| editor.remove(item))
}

impl ToolEdits {
    /// Whether what is named was there, and is not any more.
    fn lost(&self, named: &ToolEntry) -> bool {
        let is = |entry: &ToolEntry| match &named.name {
            Some(name) => entry.name.as_ref() == Some(name) || entry.kind == *name,
            None => entry.kind == named.kind,
        };
        self.removed.iter().any(is) && !self.kept.iter().any(is)
    }
}
