//! The tools that a request of Anthropic Messages offers, and which of them are taken out.

use std::borrow::Cow;

use super::{catalogue, distinct, spelled};
use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// A tool that is offered, in `tools[]` or by a block of a message.
#[derive(Debug)]
pub(super) struct OfferedTool<'d> {
    pub value: Value<'d>,
    /// Its type; `custom` where it has none.
    pub kind: Cow<'d, str>,
    /// None of a toolset.
    pub name: Option<Cow<'d, str>>,
    /// Whether it is an entry of `tools[]`.
    pub declared: bool,
    pub kept: bool,
}

/// All that is offered.
#[derive(Debug, Default)]
pub(super) struct MessagesTools<'d> {
    tools: Vec<OfferedTool<'d>>,
    /// Whether MCP servers are removed; none until policy was asked.
    mcp: Option<bool>,
    /// Whether containers without code execution are removed; none until policy was asked.
    container: Option<bool>,
}

/// Reads `tools` and `mcp_servers`, and asks about everything that the client does not execute.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &mut MessagesTools<'d>,
) -> Result<(), Denial> {
    if let Some(tools) = editor.get(body, "tools")?.filter(|tools| !tools.is_null()) {
        let tools = tools.items().ok_or_else(|| Denial::unparseable("tools", "it is no array"))?;
        for (number, tool) in tools.enumerate() {
            let tool =
                OfferedTool { declared: true, ..described(editor, tool, &format!("tools[{number}]"))? };
            offer.add(editor, tool)?;
        }
    }
    let servers = editor.get(body, "mcp_servers")?.filter(|servers| !servers.is_null());
    // The oldest beta connects to them without any tool that names them.
    let connects = |servers: &Value<'d>| servers.items().is_none_or(|mut items| items.next().is_some());
    if let Some(servers) = servers.filter(connects)
        && offer.strips_mcp(editor)?
    {
        editor.remove(servers)?;
        editor.changed("mcp_servers");
    }
    Ok(())
}

/// Reads an entry of `tools[]`, or a definition in a message.
pub(super) fn described<'d>(
    editor: &RequestEditor<'d>,
    value: Value<'d>,
    place: &str,
) -> Result<OfferedTool<'d>, Denial> {
    if value.kind() != Kind::Object {
        return Err(Denial::unparseable(place, "it is no object"));
    }
    distinct(value, place)?;
    spelled(value, &["type"])?;
    let kind = match editor.get(value, "type")?.filter(|kind| !kind.is_null()) {
        None => Cow::Borrowed("custom"),
        Some(kind) => kind.text().ok_or_else(|| Denial::unparseable(place, "its type is no string"))?,
    };
    let name = editor.get(value, "name")?.and_then(Value::text);
    Ok(OfferedTool { value, kind, name, declared: false, kept: true })
}

impl<'d> MessagesTools<'d> {
    /// Adds a tool, and asks policy about it. Returns whether it stays.
    pub(super) fn add(
        &mut self,
        editor: &mut RequestEditor<'d>,
        tool: OfferedTool<'d>,
    ) -> Result<bool, Denial> {
        let kept = catalogue::is_client(&tool.kind) || !editor.strips_tool(&tool.kind)?;
        if tool.kind == catalogue::MCP_TOOLSET {
            self.mcp = Some(!kept);
        }
        self.tools.push(OfferedTool { kept, ..tool });
        Ok(kept)
    }

    /// Whether MCP servers are removed. Policy is asked once, however many entries name them.
    pub(super) fn strips_mcp(&mut self, editor: &mut RequestEditor<'d>) -> Result<bool, Denial> {
        let strips = match self.mcp {
            Some(strips) => strips,
            None => editor.strips_tool(catalogue::MCP_TOOLSET)?,
        };
        self.mcp = Some(strips);
        Ok(strips)
    }

    /// Whether a container is taken out, with the skills and files in it: where no code execution is left, and where
    /// there was none, unless policy allows it.
    pub(super) fn strips_container(&mut self, editor: &mut RequestEditor<'d>) -> Result<bool, Denial> {
        if self.has(catalogue::CODE_EXECUTION) {
            return Ok(false);
        }
        let strips = match self.container {
            Some(strips) => strips,
            None => self.lost(catalogue::CODE_EXECUTION) || editor.strips(catalogue::CONTAINER)?,
        };
        self.container = Some(strips);
        Ok(strips)
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = &OfferedTool<'d>> {
        self.tools.iter().filter(|tool| tool.kept)
    }

    /// The entries of `tools[]`, in order.
    pub(super) fn declared(&self) -> impl Iterator<Item = &OfferedTool<'d>> {
        self.tools.iter().filter(|tool| tool.declared)
    }

    /// Whether anything is taken out.
    pub(super) fn loses_any(&self) -> bool {
        self.loses_mcp() || self.tools.iter().any(|tool| !tool.kept)
    }

    pub(super) fn loses_mcp(&self) -> bool {
        self.mcp == Some(true)
    }

    /// Whether a tool of this family is left.
    pub(super) fn has(&self, family: &str) -> bool {
        self.kept().any(|tool| catalogue::is_of(&tool.kind, family))
    }

    /// Whether a family was offered, and none of it is left.
    pub(super) fn lost(&self, family: &str) -> bool {
        let is_lost = |tool: &OfferedTool<'d>| !tool.kept && catalogue::is_of(&tool.kind, family);
        self.tools.iter().any(is_lost) && !self.has(family)
    }

    /// Whether the tool of this name was offered, and is taken out.
    pub(super) fn lost_name(&self, name: &str) -> bool {
        let is_named = |tool: &&OfferedTool<'d>| tool.name.as_deref() == Some(name);
        self.tools.iter().any(|tool| !tool.kept && is_named(&tool))
            && !self.kept().any(|tool| is_named(&tool))
    }

    /// Whether what a `server_tool_use` of this name called is taken out.
    pub(super) fn lost_call(&self, name: &str) -> bool {
        self.lost_name(name) || self.lost(catalogue::family(name))
    }
}
