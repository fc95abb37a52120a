//! Reads `toolConfig`: which tools a request offers, which of them go, and what is left of it then.

use std::collections::BTreeSet;

use crate::call::Denial;
use crate::provider::request::{Draft, definition};
use crate::wire::json::{Entry, Value};

/// What stands in the place of a `toolConfig` whose tools are all gone: AWS refuses a conversation in which a tool was
/// called ("The toolConfig field must be defined when using toolUse and toolResult content blocks"), and an empty list.
const STUB: &str = r#"{"tools":[{"toolSpec":{"name":"not_available","description":"Not available here. Do not call it.","inputSchema":{"json":{"type":"object","properties":{}}}}}]}"#;

/// The tools that a request offers.
#[derive(Default)]
pub(super) struct Offer<'d> {
    config: Option<Value<'d>>,
    choice: Option<Value<'d>>,
    members: Vec<Member<'d>>,
    /// The names of the tools that go.
    removed: BTreeSet<String>,
}

/// An item of the list.
struct Member<'d> {
    item: Value<'d>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    CachePoint,
    /// A tool that goes.
    Removed,
}

/// Asks about every tool; nothing is edited yet.
pub(super) fn read<'d>(draft: &mut Draft<'d>, body: Value<'d>) -> Result<Offer<'d>, Denial> {
    let config = draft.get(body, "toolConfig")?.filter(|config| !config.is_null());
    let Some(config) = config else { return Ok(Offer::default()) };
    let mut offer =
        Offer { config: Some(config), choice: draft.get(config, "toolChoice")?, ..Offer::default() };
    let Some(tools) = draft.get(config, "tools")?.filter(|tools| !tools.is_null()) else { return Ok(offer) };
    let items = tools.items().ok_or_else(|| Denial::unparseable("toolConfig.tools", "it is no array"))?;
    for item in items {
        let kind = offer.judge(draft, item)?;
        draft.facts.writes |= kind == Kind::Tool;
        offer.members.push(Member { item, kind });
    }
    Ok(offer)
}

impl<'d> Offer<'d> {
    /// Whether the tool of this name goes.
    pub(super) fn is_removed(&self, name: &str) -> bool {
        self.removed.contains(name)
    }

    fn judge(&mut self, draft: &mut Draft<'d>, item: Value<'d>) -> Result<Kind, Denial> {
        let refuse = |why: &str| Denial::unparseable("toolConfig.tools", why);
        if let Some(duplicate) = item.duplicate() {
            return Err(Denial::unparseable("toolConfig.tools", duplicate));
        }
        let entries = item.entries().ok_or_else(|| refuse("an entry is no object"))?;
        let mut kind = Kind::CachePoint;
        for Entry { key, value } in entries.filter(|entry| !entry.value.is_null()) {
            if key.says("cachePoint") {
                continue;
            }
            let name = draft.get(value, "name")?.and_then(Value::text);
            if key.says("toolSpec") {
                let name = name.ok_or_else(|| refuse("a toolSpec has no name"))?;
                draft.facts.tools.push(definition(&name, item));
                kind = if kind == Kind::Removed { kind } else { Kind::Tool };
                continue;
            }
            // Every other member is a tool of the provider's; `systemTool` is known by its name.
            let member = key.text().unwrap_or_default();
            let tool_type = name.as_deref().filter(|_| key.says("systemTool")).unwrap_or(&member);
            if draft.strips_tool(tool_type)? {
                self.removed.insert(name.as_deref().unwrap_or(&member).to_owned());
                kind = Kind::Removed;
            } else {
                draft.facts.tools.push(definition(tool_type, item));
                kind = if kind == Kind::Removed { kind } else { Kind::Tool };
            }
        }
        Ok(kind)
    }

    /// Takes out what goes. `calls` says whether the conversation holds calls of tools or their results.
    pub(super) fn settle(self, draft: &mut Draft<'d>, calls: bool) -> Result<(), Denial> {
        let Some(config) = self.config.filter(|_| !self.removed.is_empty()) else { return Ok(()) };
        if !self.members.iter().any(|member| member.kind == Kind::Tool) {
            if !calls {
                draft.changed("toolConfig removed with its last tool");
                return draft.remove(config);
            }
            draft.changed("toolConfig replaced by one of a tool that is not available");
            return draft.replace(config, STUB);
        }
        let mut follows_tool = false;
        for Member { item, kind } in &self.members {
            // A cache point stands after a tool, or it is none.
            let goes = *kind == Kind::Removed || (*kind == Kind::CachePoint && !follows_tool);
            if goes {
                draft.remove(*item)?;
            } else {
                follows_tool = *kind == Kind::Tool;
            }
        }
        self.correct_choice(draft)
    }

    /// A choice of a tool that goes leaves the choice to the model.
    fn correct_choice(&self, draft: &mut Draft<'d>) -> Result<(), Denial> {
        let Some(choice) = self.choice else { return Ok(()) };
        let Some(tool) = draft.get(choice, "tool")? else { return Ok(()) };
        let name = draft.get(tool, "name")?.and_then(Value::text);
        if name.is_some_and(|name| self.is_removed(&name)) {
            draft.changed("toolChoice of a removed tool left to the model");
            draft.replace(choice, r#"{"auto":{}}"#)?;
        }
        Ok(())
    }
}
