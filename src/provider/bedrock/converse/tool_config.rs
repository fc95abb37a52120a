//! Reads `toolConfig`: which tools a request offers, which of them go, and what is left of it then.

use std::collections::BTreeSet;

use crate::call::Denial;
use crate::provider::request::{RequestEditor, definition};
use crate::wire::json::{Entry, Value};

/// What stands in the place of a `toolConfig` whose tools are all gone: AWS refuses a conversation in which a tool was
/// called ("The toolConfig field must be defined when using toolUse and toolResult content blocks"), and an empty list.
const STUB: &str = r#"{"tools":[{"toolSpec":{"name":"not_available","description":"Not available here. Do not call it.","inputSchema":{"json":{"type":"object","properties":{}}}}}]}"#;

/// The tools that a request offers.
#[derive(Default)]
pub(super) struct ConverseTools<'d> {
    config: Option<Value<'d>>,
    choice: Option<Value<'d>>,
    members: Vec<ToolItem<'d>>,
    /// The names of the tools that go.
    removed: BTreeSet<String>,
}

/// An item of the list.
struct ToolItem<'d> {
    item: Value<'d>,
    kind: ToolItemKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolItemKind {
    Tool,
    CachePoint,
    /// A tool that is removed.
    Removed,
}

/// Asks about every tool; nothing is edited yet.
pub(super) fn read<'d>(editor: &mut RequestEditor<'d>, body: Value<'d>) -> Result<ConverseTools<'d>, Denial> {
    let config = editor.get(body, "toolConfig")?.filter(|config| !config.is_null());
    let Some(config) = config else { return Ok(ConverseTools::default()) };
    let mut offer = ConverseTools {
        config: Some(config),
        choice: editor.get(config, "toolChoice")?,
        ..ConverseTools::default()
    };
    let Some(tools) = editor.get(config, "tools")?.filter(|tools| !tools.is_null()) else { return Ok(offer) };
    let items = tools.items().ok_or_else(|| Denial::unparseable("toolConfig.tools", "it is no array"))?;
    for item in items {
        let kind = offer.judge(editor, item)?;
        editor.facts.writes |= kind == ToolItemKind::Tool;
        offer.members.push(ToolItem { item, kind });
    }
    Ok(offer)
}

impl<'d> ConverseTools<'d> {
    /// Whether the tool of this name is removed.
    pub(super) fn is_removed(&self, name: &str) -> bool {
        self.removed.contains(name)
    }

    fn judge(&mut self, editor: &mut RequestEditor<'d>, item: Value<'d>) -> Result<ToolItemKind, Denial> {
        let refuse = |why: &str| Denial::unparseable("toolConfig.tools", why);
        if let Some(duplicate) = item.duplicate() {
            return Err(Denial::unparseable("toolConfig.tools", duplicate));
        }
        let entries = item.entries().ok_or_else(|| refuse("an entry is no object"))?;
        let mut kind = ToolItemKind::CachePoint;
        for Entry { key, value } in entries.filter(|entry| !entry.value.is_null()) {
            if key.says("cachePoint") {
                continue;
            }
            let name = editor.get(value, "name")?.and_then(Value::text);
            if key.says("toolSpec") {
                let name = name.ok_or_else(|| refuse("a toolSpec has no name"))?;
                editor.facts.tools.push(definition(&name, item));
                kind = if kind == ToolItemKind::Removed { kind } else { ToolItemKind::Tool };
                continue;
            }
            // Every other member is a tool of the provider's; `systemTool` is known by its name.
            let member = key.text().unwrap_or_default();
            let tool_type = name.as_deref().filter(|_| key.says("systemTool")).unwrap_or(&member);
            if editor.strips_tool(tool_type)? {
                self.removed.insert(name.as_deref().unwrap_or(&member).to_owned());
                kind = ToolItemKind::Removed;
            } else {
                editor.facts.tools.push(definition(tool_type, item));
                kind = if kind == ToolItemKind::Removed { kind } else { ToolItemKind::Tool };
            }
        }
        Ok(kind)
    }

    /// Removes the tools that policy denies. `calls` says whether the conversation holds calls of tools or their results.
    pub(super) fn settle(self, editor: &mut RequestEditor<'d>, calls: bool) -> Result<(), Denial> {
        let Some(config) = self.config.filter(|_| !self.removed.is_empty()) else { return Ok(()) };
        if !self.members.iter().any(|member| member.kind == ToolItemKind::Tool) {
            if !calls {
                editor.changed("toolConfig removed with its last tool");
                return editor.remove(config);
            }
            editor.changed("toolConfig replaced by one of a tool that is not available");
            return editor.replace(config, STUB);
        }
        let mut follows_tool = false;
        for ToolItem { item, kind } in &self.members {
            // A cache point stands after a tool, or it is none.
            let goes = *kind == ToolItemKind::Removed || (*kind == ToolItemKind::CachePoint && !follows_tool);
            if goes {
                editor.remove(*item)?;
            } else {
                follows_tool = *kind == ToolItemKind::Tool;
            }
        }
        self.correct_choice(editor)
    }

    /// Replaces the choice of a removed tool by `auto`.
    fn correct_choice(&self, editor: &mut RequestEditor<'d>) -> Result<(), Denial> {
        let Some(choice) = self.choice else { return Ok(()) };
        let Some(tool) = editor.get(choice, "tool")? else { return Ok(()) };
        let name = editor.get(tool, "name")?.and_then(Value::text);
        if name.is_some_and(|name| self.is_removed(&name)) {
            editor.changed("toolChoice of a removed tool left to the model");
            editor.replace(choice, r#"{"auto":{}}"#)?;
        }
        Ok(())
    }
}
