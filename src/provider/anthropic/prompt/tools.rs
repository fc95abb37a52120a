//! Gathers the tools of a request of Anthropic Messages: those of `tools`, and what the conversation changes of them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::members::{Members, kind, members, text};
use super::schema;
use crate::call::turn::prompt::{OfferedTool, ToolSchema, Unsayable};
use crate::call::turn::{Notes, Text};
use crate::provider::anthropic::catalogue;
use crate::wire::json::{Kind, Value};

/// The most tools of a request.
const MOST: usize = 4096;

const MALFORMED: Unsayable = Unsayable::new("a tool without a name or a schema");

/// Tools by their names, in the order in which they were declared.
#[derive(Default)]
pub(super) struct ToolSet<'d> {
    entries: Vec<Entry<'d>>,
    by_name: HashMap<Cow<'d, str>, usize>,
    /// How many blocks change tools that are not the client's.
    foreign_changes: usize,
}

struct Entry<'d> {
    tool: OfferedTool<'d>,
    /// Whether it is loaded only once a search has found it.
    is_deferred: bool,
    is_removed: bool,
}

impl<'d> ToolSet<'d> {
    /// Reads `tools`.
    pub(super) fn declare(&mut self, tools: Value<'d>, notes: &mut Notes) -> Result<(), Unsayable> {
        for tool in tools.items().ok_or(Unsayable::new("tools is no list"))? {
            if let Some(entry) = entry(tool, notes)? {
                self.add(entry, false)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry<'d>, replaces: bool) -> Result<(), Unsayable> {
        if let Some(known) = self.by_name.get(&entry.tool.name).and_then(|at| self.entries.get_mut(*at)) {
            if !replaces {
                return Err(Unsayable::new("two tools have one name"));
            }
            *known = entry;
            return Ok(());
        }
        if self.entries.len() >= MOST {
            return Err(Unsayable::new("more than 4096 tools"));
        }
        self.by_name.insert(entry.tool.name.clone(), self.entries.len());
        self.entries.push(entry);
        Ok(())
    }

    /// A search found the tool of this name.
    pub(super) fn refer(&mut self, name: &str) {
        if let Some(entry) = self.entry(name) {
            entry.is_deferred = false;
        }
    }

    fn entry(&mut self, name: &str) -> Option<&mut Entry<'d>> {
        self.entries.get_mut(*self.by_name.get(name)?)
    }

    /// Reads a `tool_addition` or `tool_removal`: `{type, tool: {type, name | definition}}`.
    pub(super) fn change(&mut self, block: Value<'d>, notes: &mut Notes) -> Result<(), Unsayable> {
        const UNKNOWN: Unsayable = Unsayable::new("a change of tools of an unknown type");
        let Members { known: [change, tool, cache], others } =
            members(block, ["type", "tool", "cache_control"]);
        notes.add_some("block_field", others);
        notes.add_some("cache_control", usize::from(cache.is_some()));
        let adds = match text(change).as_deref() {
            Some("tool_addition") => true,
            Some("tool_removal") => false,
            Some(_) | None => return Err(UNKNOWN),
        };
        let Members { known: [kind, name, definition], .. } =
            members(tool.ok_or(UNKNOWN)?, ["type", "name", "definition"]);
        match text(kind).as_deref() {
            Some("tool_reference") => {
                let name = text(name).ok_or(UNKNOWN)?;
                match self.entry(&name) {
                    Some(entry) => {
                        entry.is_removed = !adds;
                        entry.is_deferred &= !adds;
                    }
                    // A hosted tool, which is gone.
                    None => notes.add("tool_change"),
                }
            }
            Some("tool_definition") => {
                if let Some(entry) = entry(definition.ok_or(UNKNOWN)?, notes)? {
                    self.add(Entry { is_deferred: false, is_removed: !adds, ..entry }, true)?;
                }
            }
            Some("mcp_tool_reference" | "mcp_toolset_reference") => self.foreign_changes += 1,
            Some(_) | None => return Err(UNKNOWN),
        }
        Ok(())
    }

    /// The tools that the model is told of.
    pub(super) fn offered(self, notes: &mut Notes) -> Result<Vec<OfferedTool<'d>>, Unsayable> {
        notes.add_some("tool_change", self.foreign_changes);
        let mut tools = Vec::with_capacity(self.entries.len());
        for entry in self.entries.into_iter().filter(|entry| !entry.is_removed) {
            if entry.is_deferred {
                notes.add("deferred_tool");
            } else {
                tools.push(entry.tool);
            }
        }
        Ok(tools)
    }
}

/// The changes of tools that a summary repeats.
pub(super) fn changes(block: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let Members { known: [changes], .. } = members(block, ["tool_changes"]);
    changes.and_then(Value::items).into_iter().flatten()
}

/// Reads an entry of `tools`, or a definition in the conversation; none for a tool that the provider executes.
fn entry<'d>(value: Value<'d>, notes: &mut Notes) -> Result<Option<Entry<'d>>, Unsayable> {
    if value.kind() != Kind::Object {
        return Err(Unsayable::new("a tool that is no object"));
    }
    let tool_type = kind(value);
    match &*tool_type {
        "" | "custom" => custom(value, notes).map(Some),
        client if !catalogue::is_client(client) => {
            notes.add("hosted_tool");
            Ok(None)
        }
        client => match schema::known(client) {
            Some(known) => own(value, known, notes).map(Some),
            None if client.starts_with("computer_2") => Err(Unsayable::new("a computer tool")),
            None => Err(Unsayable::new("a toolset")),
        },
    }
}

fn custom<'d>(value: Value<'d>, notes: &mut Notes) -> Result<Entry<'d>, Unsayable> {
    let Members { known: [_, name, description, schema, deferred, cache], others } =
        members(value, ["type", "name", "description", "input_schema", "defer_loading", "cache_control"]);
    notes.add_some("tool_field", others);
    notes.add_some("cache_control", usize::from(cache.is_some()));
    let schema = schema.filter(|schema| schema.kind() == Kind::Object).ok_or(MALFORMED)?;
    let tool = OfferedTool {
        name: text(name).ok_or(MALFORMED)?,
        description: description.and_then(Text::of),
        schema: ToolSchema::Given(schema),
    };
    Ok(Entry { tool, is_deferred: is_true(deferred), is_removed: false })
}

/// Reads one of Anthropic's own client tools.
fn own<'d>(
    value: Value<'d>,
    known: &'static schema::KnownTool,
    notes: &mut Notes,
) -> Result<Entry<'d>, Unsayable> {
    let Members { known: [_, name, deferred, cache], others } =
        members(value, ["type", "name", "defer_loading", "cache_control"]);
    notes.add_some("tool_field", others);
    notes.add_some("cache_control", usize::from(cache.is_some()));
    let tool = OfferedTool {
        name: text(name).ok_or(MALFORMED)?,
        description: Some(Text::fixed(known.description)),
        schema: ToolSchema::Known(known.schema),
    };
    Ok(Entry { tool, is_deferred: is_true(deferred), is_removed: false })
}

fn is_true(value: Option<Value<'_>>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}
