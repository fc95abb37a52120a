//! The tools of a request: which of them the client runs, and what has to follow where others are taken out.

use crate::call::Denial;
use crate::provider::request::{Draft, definition, hosted, may_write};
use crate::wire::json::{Kind, Value};

/// The types of tools that the client runs; the provider runs every other, and whatever is not known yet.
const CLIENT: &[&str] = &["function", "custom"];

/// One entry of `tools`, of `allowed_tools`, or a `tool_choice`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// As it is written.
    kind: String,
    /// Where it has one.
    name: Option<String>,
}

/// What became of the tools of a request.
#[derive(Debug, Default)]
struct Tools {
    kept: Vec<Entry>,
    removed: Vec<Entry>,
}

/// Asks about every tool, takes out those that policy does not open, and says those that stay as facts.
///
/// # Errors
/// Where the request is to be refused for a tool, or a tool cannot be understood.
pub(super) fn read(draft: &mut Draft<'_>) -> Result<(), Denial> {
    let root = draft.root();
    if let Some(list) = draft.get(root, "tools")?.filter(|list| !list.is_null()) {
        let tools = strip(draft, list)?;
        if !tools.removed.is_empty() {
            follow(draft, &tools)?;
        }
    }
    functions(draft)?;
    if draft.has_lost_all() && draft.get(root, "tool_choice")?.is_some_and(|choice| choice.says("none")) {
        draft.excuse();
    }
    draft.facts.writes = draft.facts.tools.iter().any(may_write);
    Ok(())
}

fn strip<'d>(draft: &mut Draft<'d>, list: Value<'d>) -> Result<Tools, Denial> {
    let items = list.items().ok_or_else(|| Denial::unparseable("tools", "it is not a list"))?;
    let (mut tools, mut stripped) = (Tools::default(), Vec::new());
    for item in items {
        let entry = read_entry(draft, item)?;
        let is_hosted = !CLIENT.contains(&entry.kind.as_str());
        if is_hosted && draft.strips_tool(&entry.kind)? {
            tools.removed.push(entry);
            stripped.push(item);
            continue;
        }
        let describe = if is_hosted { hosted } else { definition };
        draft.facts.tools.push(describe(entry.name.as_deref().unwrap_or(&entry.kind), item));
        draft.facts.models.extend(asked_by(draft, item)?);
        tools.kept.push(entry);
    }
    // An empty list is an error to most providers (`empty_array`).
    if tools.kept.is_empty() && !stripped.is_empty() {
        draft.remove(list)?;
    } else {
        stripped.into_iter().try_for_each(|item| draft.remove(item))?;
    }
    Ok(tools)
}

fn read_entry(draft: &Draft<'_>, item: Value<'_>) -> Result<Entry, Denial> {
    if item.kind() != Kind::Object {
        return Err(Denial::unparseable("tools", "an entry is not an object"));
    }
    let kind = match draft.get(item, "type")? {
        // There are vendors whose own clients leave it out.
        None if is_function_alone(item) => Some("function".into()),
        kind => kind.and_then(Value::text),
    };
    let kind = kind.ok_or_else(|| Denial::unparseable("tools", "an entry has no type"))?.into_owned();
    Ok(Entry { name: name_of(draft, item, &kind)?, kind })
}

/// Whether an object is the definition of a function, or the choice of one, and can be nothing else.
fn is_function_alone(item: Value<'_>) -> bool {
    let mut entries = item.entries().into_iter().flatten().filter(|entry| !entry.value.is_null());
    let first =
        entries.next().filter(|entry| entry.key.says("function") && entry.value.kind() == Kind::Object);
    first.is_some() && entries.next().is_none()
}

/// The name stands in an object that is called like the type (`function.name`), or beside the type.
fn name_of(draft: &Draft<'_>, item: Value<'_>, kind: &str) -> Result<Option<String>, Denial> {
    for key in [kind, "function"] {
        if let Some(inner) = draft.get(item, key)?
            && let Some(name) = draft.get(inner, "name")?.and_then(Value::text)
        {
            return Ok(Some(name.into_owned()));
        }
    }
    Ok(draft.get(item, "name")?.and_then(Value::text).map(std::borrow::Cow::into_owned))
}

/// The model that a tool of the provider's asks for advice.
fn asked_by(draft: &Draft<'_>, item: Value<'_>) -> Result<Option<String>, Denial> {
    let Some(parameters) = draft.get(item, "parameters")? else { return Ok(None) };
    let model = draft.get(parameters, "model")?.and_then(Value::text).map(std::borrow::Cow::into_owned);
    Ok(model.filter(|model| !draft.facts.models.contains(model)))
}

/// The functions of the time before tools: the client runs them all.
fn functions(draft: &mut Draft<'_>) -> Result<(), Denial> {
    let Some(list) = draft.get(draft.root(), "functions")?.filter(|list| !list.is_null()) else {
        return Ok(());
    };
    let items = list.items().ok_or_else(|| Denial::unparseable("functions", "it is not a list"))?;
    for item in items {
        let name = draft.get(item, "name")?.and_then(Value::text);
        let name = name.ok_or_else(|| Denial::unparseable("functions", "an entry has no name"))?;
        draft.facts.tools.push(definition(&name, item));
    }
    Ok(())
}

/// What names tools must not name one that is gone, and nothing may speak of tools where none is left.
fn follow(draft: &mut Draft<'_>, tools: &Tools) -> Result<(), Denial> {
    let root = draft.root();
    let choice = draft.get(root, "tool_choice")?;
    if tools.kept.is_empty() {
        if let Some(choice) = choice {
            draft.remove(choice)?;
            draft.changed("tool_choice: removed");
        }
        if let Some(parallel) = draft.get(root, "parallel_tool_calls")? {
            draft.remove(parallel)?;
            draft.changed("parallel_tool_calls: removed");
        }
        return Ok(());
    }
    choice.map_or(Ok(()), |choice| correct(draft, choice, tools))
}

fn correct<'d>(draft: &mut Draft<'d>, choice: Value<'d>, tools: &Tools) -> Result<(), Denial> {
    let kind = match draft.get(choice, "type")? {
        None if is_function_alone(choice) => Some("function".into()),
        kind => kind.and_then(Value::text),
    };
    let Some(kind) = kind else { return Ok(()) };
    if kind == "allowed_tools" {
        return prune(draft, choice, tools);
    }
    let chosen = Entry { name: name_of(draft, choice, &kind)?, kind: kind.into_owned() };
    if tools.lost(&chosen) {
        draft.replace(choice, "\"auto\"")?;
        draft.changed("tool_choice: auto");
    }
    Ok(())
}

/// Takes what is gone out of the tools to which the model is restricted; where nothing else is among them, it may
/// call none.
fn prune<'d>(draft: &mut Draft<'d>, choice: Value<'d>, tools: &Tools) -> Result<(), Denial> {
    let inner = draft.get(choice, "allowed_tools")?.unwrap_or(choice);
    let Some(items) = draft.get(inner, "tools")?.and_then(Value::items) else { return Ok(()) };
    let (mut lost, mut left) = (Vec::new(), false);
    for item in items {
        if tools.lost(&read_entry(draft, item)?) {
            lost.push(item);
        } else {
            left = true;
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    if !left {
        draft.replace(choice, "\"none\"")?;
        draft.changed("tool_choice: none");
        return Ok(());
    }
    draft.changed("tool_choice: pruned");
    lost.into_iter().try_for_each(|item| draft.remove(item))
}

impl Tools {
    /// Whether what is named was there, and is not any more.
    fn lost(&self, named: &Entry) -> bool {
        let is = |entry: &Entry| match &named.name {
            Some(name) => entry.name.as_ref() == Some(name) || entry.kind == *name,
            None => entry.kind == named.kind,
        };
        self.removed.iter().any(is) && !self.kept.iter().any(is)
    }
}
