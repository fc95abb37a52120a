//! Reads what hosted tools did earlier in a conversation: each call and each result becomes a text.

use super::content::lines;
use super::members::{Members, kind, members};
use crate::call::turn::prompt::{Content, TextPart};
use crate::call::turn::{Notes, Text, escape};
use crate::wire::json::Value;

/// Members that say something to a reader, in the results of hosted tools at any depth. Everything else is encrypted, an
/// id, a number, or a word of the dialect.
const SPOKEN: [&str; 8] =
    ["title", "url", "source", "text", "stdout", "stderr", "error_code", "error_message"];

/// Whether a block of this type was made by a tool that the provider ran, or by the provider itself.
pub(super) fn is_hosted(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use" | "mcp_tool_listing" | "compaction" | "fallback")
        || kind.ends_with("_tool_result")
}

/// Reads a block for which [`is_hosted`] holds.
pub(super) fn read<'d>(block: Value<'d>, notes: &mut Notes) -> Vec<Content<'d>> {
    let Members { known: [name, input, content, cache], .. } =
        members(block, ["name", "input", "content", "cache_control"]);
    notes.add_some("cache_control", usize::from(cache.is_some()));
    let mut said = Vec::new();
    let word = match &*kind(block) {
        "server_tool_use" | "mcp_tool_use" => {
            let name = name.and_then(Text::of);
            let input = input.map_or("{}", Value::raw);
            let mut text = name.as_ref().map_or("", Text::escaped).to_owned();
            text.push(' ');
            escape(input, &mut text);
            said.push(plain(Text::joined(&[&text])));
            "hosted_call"
        }
        "compaction" => {
            collect(content, &mut said);
            "compaction_block"
        }
        "mcp_tool_listing" => "mcp_tool_listing",
        "fallback" => "fallback_block",
        _ => {
            collect(content, &mut said);
            "hosted_result"
        }
    };
    notes.add(word);
    joined(said)
}

fn plain(text: Text<'_>) -> Content<'_> {
    Content::Text(TextPart::of(text))
}

/// Gathers the texts of a result, in their order.
fn collect<'d>(content: Option<Value<'d>>, said: &mut Vec<Content<'d>>) {
    let Some(content) = content else { return };
    if let Some(text) = Text::of(content) {
        said.extend((!text.is_empty()).then(|| plain(text)));
    }
    content.items().into_iter().flatten().for_each(|item| collect(Some(item), said));
    let is_text = content.entries().is_some() && kind(content) == "text";
    for entry in content.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        match &*key {
            "tool_name" => said.extend(entry.value.text().map(Content::Available)),
            // A text document inside of a result. Other data is in base64.
            "data" if is_text => collect(Some(entry.value), said),
            key if SPOKEN.contains(&key) => collect(Some(entry.value), said),
            _ if !matches!(entry.value.kind(), crate::wire::json::Kind::String) => {
                collect(Some(entry.value), said);
            }
            "content" => collect(Some(entry.value), said),
            _ => {}
        }
    }
}

/// Joins the texts of one block in one text. Names of tools stay apart.
fn joined(said: Vec<Content<'_>>) -> Vec<Content<'_>> {
    let mut out = Vec::new();
    let mut texts = Vec::new();
    for content in said {
        match content {
            Content::Text(part) => texts.push(part.text),
            other @ (Content::Image(_) | Content::Pdf(_) | Content::Available(_)) => {
                flush(&mut texts, &mut out);
                out.push(other);
            }
        }
    }
    flush(&mut texts, &mut out);
    out
}

fn flush<'d>(texts: &mut Vec<Text<'d>>, out: &mut Vec<Content<'d>>) {
    if !texts.is_empty() {
        out.push(plain(lines(texts.drain(..))));
    }
}
