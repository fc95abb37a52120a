//! Walks `system` and `messages` of Anthropic Messages: everything there that changes tools, has a URL, or was a hosted
//! tool's.

use std::borrow::Cow;
use std::fmt;

use super::offer::{self, MessagesTools};
use super::{catalogue, distinct};
use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// A block that may have to be corrected.
#[derive(Debug)]
pub(super) struct FoundBlock<'d> {
    pub block: Value<'d>,
    pub what: What<'d>,
    /// The message whose content holds it directly.
    pub message: Option<usize>,
}

#[derive(Debug)]
pub(super) enum What<'d> {
    /// `tool_addition` or `tool_removal` of a tool that is named.
    ChangeOf(Cow<'d, str>),
    /// As above, for tools of MCP servers.
    ChangeOfMcp,
    /// `tool_addition` of something that policy does not allow.
    Forbidden,
    /// `tool_reference`: what a search of tools found. In a search's own result it stands in a list of such.
    Reference { name: Cow<'d, str>, listed: bool },
    /// `server_tool_use`.
    ServerCall { name: Cow<'d, str>, id: Cow<'d, str> },
    /// `mcp_tool_use`.
    McpCall { id: Cow<'d, str> },
    /// `mcp_tool_listing`.
    McpListing,
    /// The result of a call that ran at the provider.
    Result { id: Cow<'d, str> },
    /// `container_upload`.
    Upload,
    /// `tool_use` by code that ran at the provider.
    CalledByCode { caller: Value<'d> },
}

/// Reads the whole conversation, and asks about every tool that is offered there. Returns blocks in the body's order.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &mut MessagesTools<'d>,
) -> Result<Vec<FoundBlock<'d>>, Denial> {
    let mut walk = BlockWalk { editor, offer, found: Vec::new(), spot: Spot::System, fetches: false };
    if let Some(system) = walk.editor.get(body, "system")? {
        walk.content(system, None)?;
    }
    let messages = walk.editor.get(body, "messages")?.filter(|messages| !messages.is_null());
    if let Some(messages) = messages {
        let messages = messages.items().ok_or_else(|| Denial::unparseable("messages", "it is no array"))?;
        for (number, message) in messages.enumerate() {
            walk.spot = Spot::Message(number);
            walk.distinct(message)?;
            walk.editor.has_message();
            if let Some(content) = walk.editor.get(message, "content")? {
                walk.content(content, Some(number))?;
            }
        }
    }
    Ok(walk.found)
}

/// The place of the walk, for error messages.
#[derive(Debug, Clone, Copy)]
enum Spot {
    System,
    Message(usize),
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Message(number) => write!(f, "messages[{number}]"),
        }
    }
}

struct BlockWalk<'w, 'd> {
    editor: &'w mut RequestEditor<'d>,
    offer: &'w mut MessagesTools<'d>,
    found: Vec<FoundBlock<'d>>,
    spot: Spot,
    /// Whether policy was asked already about URLs that the provider would fetch.
    fetches: bool,
}

impl<'d> BlockWalk<'_, 'd> {
    /// Content: text, blocks, or one object that has more of them.
    fn content(&mut self, content: Value<'d>, message: Option<usize>) -> Result<(), Denial> {
        if content.kind() == Kind::Object {
            return self.block(content, message);
        }
        content.items().into_iter().flatten().try_for_each(|block| self.block(block, message))
    }

    fn block(&mut self, block: Value<'d>, message: Option<usize>) -> Result<(), Denial> {
        if block.kind() != Kind::Object {
            return Ok(());
        }
        self.distinct(block)?;
        let kind = self.text(block, "type")?.unwrap_or_default();
        if matches!(&*kind, "tool_use" | "tool_result") {
            // The client has tools, declared here or not.
            self.editor.excuse();
        }
        if kind == "image" {
            self.editor.has_image();
        } else if kind.ends_with("tool_result") {
            self.editor.has_tool_result();
        }
        if let Some(what) = self.what(block, &kind)? {
            self.found.push(FoundBlock { block, what, message });
        }
        // The input of a call is data, whatever it looks like.
        if let Some(source) = self.editor.get(block, "source")? {
            self.source(source)?;
        }
        if let Some(content) = self.editor.get(block, "content")? {
            self.content(content, None)?;
        }
        if let Some(listed) = self.editor.get(block, "tool_references")? {
            self.references(listed)?;
        }
        if let Some(changes) = self.editor.get(block, "tool_changes")? {
            self.tool_changes(block, changes)?;
        }
        Ok(())
    }

    /// The correction that a block of this type may need; none for most.
    fn what(&mut self, block: Value<'d>, kind: &str) -> Result<Option<What<'d>>, Denial> {
        Ok(match kind {
            "tool_addition" | "tool_removal" => self.change(block, kind == "tool_addition", false)?,
            "tool_reference" => self.reference(block, false)?,
            "server_tool_use" => {
                let name = self.text(block, "name")?.unwrap_or_default();
                Some(What::ServerCall { name, id: self.text(block, "id")?.unwrap_or_default() })
            }
            "mcp_tool_use" => Some(What::McpCall { id: self.text(block, "id")?.unwrap_or_default() }),
            "mcp_tool_listing" => Some(What::McpListing),
            "container_upload" => Some(What::Upload),
            "tool_use" => self.called_by_code(block)?,
            "tool_result" => None,
            _ if kind.ends_with("_tool_result") => {
                Some(What::Result { id: self.text(block, "tool_use_id")?.unwrap_or_default() })
            }
            _ => None,
        })
    }

    /// A block that adds a tool or takes one away. A definition that it carries is an entry of `tools[]` like any other.
    /// `sealed`: it is inside a block that the provider signed, from which nothing can be removed.
    fn change(&mut self, block: Value<'d>, adds: bool, sealed: bool) -> Result<Option<What<'d>>, Denial> {
        let place = self.spot.to_string();
        let unclear = |why: &str| Denial::unparseable(&place, why);
        let tool =
            self.editor.get(block, "tool")?.ok_or_else(|| unclear("a change of tools without a tool"))?;
        self.distinct(tool)?;
        let kind = self.text(tool, "type")?.ok_or_else(|| unclear("a change of tools without a type"))?;
        match &*kind {
            "tool_reference" => Ok(self.text(tool, "name")?.map(What::ChangeOf)),
            "mcp_tool_reference" | "mcp_toolset_reference" => {
                if adds && sealed {
                    self.editor.refuses(catalogue::MCP_TOOLSET)?;
                } else if adds {
                    self.offer.strips_mcp(self.editor)?;
                }
                Ok(Some(What::ChangeOfMcp))
            }
            "tool_definition" => {
                let definition = self.editor.get(tool, "definition")?;
                let definition = definition.ok_or_else(|| unclear("a definition of a tool is missing"))?;
                let tool = offer::described(self.editor, definition, &place)?;
                if sealed && !catalogue::is_client(&tool.kind) {
                    self.editor.refuses(&tool.kind)?;
                }
                Ok((!self.offer.add(self.editor, tool)?).then_some(What::Forbidden))
            }
            other if sealed => self.editor.refuses(other).map(|()| None),
            other => Ok(self.editor.strips_tool(other)?.then_some(What::Forbidden)),
        }
    }

    /// The changes of tools that a summary of the conversation repeats.
    fn tool_changes(&mut self, block: Value<'d>, changes: Value<'d>) -> Result<(), Denial> {
        let sealed = self.editor.get(block, "signature")?.is_some_and(|signature| !signature.is_null());
        for change in changes.items().into_iter().flatten() {
            self.distinct(change)?;
            let kind = self.text(change, "type")?.unwrap_or_default();
            let what = self.change(change, kind != "tool_removal", sealed)?;
            if let Some(what) = what.filter(|_| !sealed) {
                self.found.push(FoundBlock { block: change, what, message: None });
            }
        }
        Ok(())
    }

    fn references(&mut self, listed: Value<'d>) -> Result<(), Denial> {
        for block in listed.items().into_iter().flatten() {
            self.distinct(block)?;
            if let Some(what) = self.reference(block, true)? {
                self.found.push(FoundBlock { block, what, message: None });
            }
        }
        Ok(())
    }

    fn reference(&self, block: Value<'d>, listed: bool) -> Result<Option<What<'d>>, Denial> {
        Ok(self.text(block, "tool_name")?.map(|name| What::Reference { name, listed }))
    }

    fn called_by_code(&self, block: Value<'d>) -> Result<Option<What<'d>>, Denial> {
        let Some(caller) = self.editor.get(block, "caller")? else { return Ok(None) };
        self.distinct(caller)?;
        let kind = self.text(caller, "type")?.unwrap_or_default();
        Ok(catalogue::is_of(&kind, catalogue::CODE_EXECUTION).then_some(What::CalledByCode { caller }))
    }

    /// Where an image or a document comes from. A file was stored at the provider before, which is an endpoint of its
    /// own and closed by default: naming it sends nothing anywhere. A source of an unknown kind is taken for a URL.
    fn source(&mut self, source: Value<'d>) -> Result<(), Denial> {
        if source.kind() != Kind::Object {
            // A search result says where it is from; nobody fetches it.
            return Ok(());
        }
        self.distinct(source)?;
        let kind = self.text(source, "type")?.unwrap_or_default();
        if !matches!(&*kind, "base64" | "text" | "content" | "file") && !self.fetches {
            self.editor.fetches(&self.spot.to_string())?;
            self.fetches = true;
        }
        match self.editor.get(source, "content")? {
            Some(content) => self.content(content, None),
            None => Ok(()),
        }
    }

    fn text(&self, object: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, Denial> {
        Ok(self.editor.get(object, key)?.and_then(Value::text))
    }

    fn distinct(&self, object: Value<'d>) -> Result<(), Denial> {
        // The place costs an allocation, which most objects need not.
        object.duplicate().map_or(Ok(()), |_| distinct(object, &self.spot.to_string()))
    }
}
