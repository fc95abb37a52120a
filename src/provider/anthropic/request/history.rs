//! Corrects the conversation of a request of Anthropic Messages where it speaks of tools that are taken out.
//!
//! What hosted tools did earlier stays in the conversation as it is, unless its tool is taken out of this very request:
//! then the provider may not accept a call without its tool, and each of the two blocks of a call becomes text in its
//! place. Every turn of the conversation is edited in the same way, so that what the provider signed stays bound to the
//! same beginning. Where policy changed in the middle of a conversation, the change of `tools` alone unbinds it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::offer::MessagesTools;
use super::walk::{FoundBlock, What};
use super::{catalogue, text_block};
use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// Edits what was found, and the container.
pub(super) fn correct<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    offer: &mut MessagesTools<'d>,
    blocks: &[FoundBlock<'d>],
) -> Result<(), Denial> {
    let mut rewrite =
        HistoryRewrite { editor, offer, converted: HashSet::new(), end: 0, removed: BTreeMap::new() };
    for block in blocks {
        rewrite.correct(block)?;
    }
    let HistoryRewrite { editor, offer, removed, .. } = rewrite;
    let messages = editor.get(body, "messages")?;
    remove(editor, messages, &removed)?;
    let container = editor.get(body, "container")?.filter(|container| !container.is_null());
    if let Some(container) = container
        && offer.strips_container(editor)?
    {
        editor.remove(container)?;
        editor.changed("container");
    }
    Ok(())
}

struct HistoryRewrite<'w, 'd> {
    editor: &'w mut RequestEditor<'d>,
    offer: &'w mut MessagesTools<'d>,
    /// The calls that became text.
    converted: HashSet<Cow<'d, str>>,
    /// The end of the last block that became text: everything inside it is replaced with it.
    end: usize,
    /// The blocks to be removed from each message's content.
    removed: BTreeMap<usize, Vec<Value<'d>>>,
}

impl<'d> HistoryRewrite<'_, 'd> {
    fn correct(&mut self, found: &FoundBlock<'d>) -> Result<(), Denial> {
        let block = found.block;
        if block.span().start < self.end {
            return Ok(());
        }
        match &found.what {
            What::ChangeOf(name) if self.offer.lost_name(name) => self.remove(found),
            What::ChangeOfMcp if self.offer.loses_mcp() => self.remove(found),
            What::Forbidden => self.remove(found),
            What::Reference { name, listed } if self.offer.lost_name(name) => {
                if *listed {
                    return self.remove(found);
                }
                self.replace(block, "[postern] This tool is not available.")
            }
            What::ServerCall { name, id } if self.offer.lost_call(name) => self.call(block, name, id.clone()),
            What::McpCall { id } if self.offer.loses_mcp() => {
                self.call(block, catalogue::MCP_TOOLSET, id.clone())
            }
            What::McpListing if self.offer.loses_mcp() => {
                self.replace(block, "[postern] These tools are not available any more.")
            }
            What::Result { id } if self.converted.contains(id) => {
                self.replace(block, "[postern] The result of this tool is not shown any more.")
            }
            What::Upload if self.offer.strips_container(self.editor)? => self
                .replace(block, "[postern] A file for a container stood here; containers are not available."),
            What::CalledByCode { caller } if self.offer.lost(catalogue::CODE_EXECUTION) => {
                self.editor.changed("history");
                self.editor.remove(*caller)
            }
            What::ChangeOf(_)
            | What::ChangeOfMcp
            | What::Reference { .. }
            | What::ServerCall { .. }
            | What::McpCall { .. }
            | What::McpListing
            | What::Result { .. }
            | What::Upload
            | What::CalledByCode { .. } => Ok(()),
        }
    }

    fn call(&mut self, block: Value<'d>, name: &str, id: Cow<'d, str>) -> Result<(), Denial> {
        self.converted.insert(id);
        self.replace(
            block,
            &format!("[postern] The tool {name} was used here; it is not available any more."),
        )
    }

    fn replace(&mut self, block: Value<'d>, text: &str) -> Result<(), Denial> {
        let text = text_block(self.editor, block, text)?;
        self.end = block.span().end;
        self.editor.changed("history");
        self.editor.replace(block, text)
    }

    fn remove(&mut self, found: &FoundBlock<'d>) -> Result<(), Denial> {
        self.end = found.block.span().end;
        self.editor.changed("history");
        match found.message {
            None => self.editor.remove(found.block),
            Some(message) => {
                self.removed.entry(message).or_default().push(found.block);
                Ok(())
            }
        }
    }
}

/// Removes blocks from messages, and messages that have no block left.
fn remove<'d>(
    editor: &mut RequestEditor<'d>,
    messages: Option<Value<'d>>,
    removed: &BTreeMap<usize, Vec<Value<'d>>>,
) -> Result<(), Denial> {
    let numbered = messages.and_then(Value::items).into_iter().flatten().enumerate();
    for (message, blocks) in numbered.filter_map(|(number, message)| Some((message, removed.get(&number)?))) {
        let Some(content) = editor.get(message, "content")? else { continue };
        let count = content.items().map_or(1, Iterator::count);
        if blocks.len() < count {
            blocks.iter().try_for_each(|block| editor.remove(*block))?;
        } else if editor.get(message, "output_config")?.is_some() {
            editor.remove(content)?;
        } else {
            editor.remove(message)?;
        }
    }
    Ok(())
}
