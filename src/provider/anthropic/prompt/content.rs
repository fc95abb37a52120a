//! Reads what a user or a tool shows: texts, pictures, documents, search results.

use std::borrow::Cow;

use super::members::{Members, kind, members, text as text_of};
use crate::call::turn::prompt::{Content, Image, Pdf, TextPart, Unsayable};
use crate::call::turn::{Notes, Text};
use crate::wire::json::Value;

/// What of a block's content can have no counterpart.
const STORED: Unsayable = Unsayable::new("a file that is stored at the provider");
const DOCUMENT_URL: Unsayable = Unsayable::new("a document that the provider would fetch");
const UNKNOWN: Unsayable = Unsayable::new("a content block of an unknown type");
const MALFORMED: Unsayable = Unsayable::new("a content block without its content");

/// Reads a text or a list of blocks. A `role: system` message has the blocks of [`text`] alone.
pub(super) fn read<'d>(
    value: Value<'d>,
    notes: &mut Notes,
    out: &mut Vec<Content<'d>>,
) -> Result<(), Unsayable> {
    if let Some(whole) = Text::of(value) {
        out.extend(unless_empty(TextPart::of(whole), notes).map(Content::Text));
        return Ok(());
    }
    let blocks = value.items().ok_or(Unsayable::new("content is neither text nor blocks"))?;
    blocks.into_iter().try_for_each(|item| block(item, notes, out))
}

/// Reads one block of a user or of a tool's result.
pub(super) fn block<'d>(
    block: Value<'d>,
    notes: &mut Notes,
    out: &mut Vec<Content<'d>>,
) -> Result<(), Unsayable> {
    match &*kind(block) {
        "text" => {
            let part = text(block, notes)?.ok_or(MALFORMED)?;
            out.extend(unless_empty(part, notes).map(Content::Text));
            Ok(())
        }
        "image" => image(block, notes).map(|image| out.push(Content::Image(image))),
        "document" => document(block, notes, out),
        "search_result" => search_result(block, notes, out),
        "tool_reference" => available(block, notes).map(|name| out.push(Content::Available(name))),
        "container_upload" => Err(STORED),
        _ => Err(UNKNOWN),
    }
}

/// Reads a block of text; none if it is another block.
pub(super) fn text<'d>(block: Value<'d>, notes: &mut Notes) -> Result<Option<TextPart<'d>>, Unsayable> {
    let Members { known: [kind, text, cache, citations], others } =
        members(block, ["type", "text", "cache_control", "citations"]);
    if !kind.is_some_and(|kind| kind.says("text")) {
        return Ok(None);
    }
    notes.add_some("block_field", others);
    notes.add_some("citations", usize::from(citations.is_some()));
    let text = text.and_then(Text::of).ok_or(MALFORMED)?;
    Ok(Some(TextPart { text, cache: cache.map(Value::raw) }))
}

/// An empty text says nothing, and many servers refuse it.
pub(super) fn unless_empty<'d>(part: TextPart<'d>, notes: &mut Notes) -> Option<TextPart<'d>> {
    if !part.text.is_empty() {
        return Some(part);
    }
    notes.add("empty_text");
    notes.add_some("cache_control", usize::from(part.cache.is_some()));
    None
}

/// Reads the name in a `tool_reference`.
pub(super) fn available<'d>(block: Value<'d>, notes: &mut Notes) -> Result<Cow<'d, str>, Unsayable> {
    let Members { known: [_, name, cache], others } = members(block, ["type", "tool_name", "cache_control"]);
    others_and_cache(others, cache, notes);
    text_of(name).ok_or(MALFORMED)
}

fn others_and_cache(others: usize, cache: Option<Value<'_>>, notes: &mut Notes) {
    notes.add_some("block_field", others);
    notes.add_some("cache_control", usize::from(cache.is_some()));
}

fn image<'d>(block: Value<'d>, notes: &mut Notes) -> Result<Image<'d>, Unsayable> {
    let Members { known: [_, source, cache], others } = members(block, ["type", "source", "cache_control"]);
    others_and_cache(others, cache, notes);
    let source = Source::of(source.ok_or(MALFORMED)?, notes);
    match &*source.kind {
        "base64" => {
            let media_type = source.media_type.and_then(Text::of).ok_or(MALFORMED)?;
            Ok(Image::Data { media_type, data: source.data.and_then(Text::of).ok_or(MALFORMED)? })
        }
        "url" => source.url.and_then(Text::of).map(Image::Url).ok_or(MALFORMED),
        "file" => Err(STORED),
        _ => Err(UNKNOWN),
    }
}

/// The source of a picture or a document.
struct Source<'d> {
    kind: Cow<'d, str>,
    media_type: Option<Value<'d>>,
    data: Option<Value<'d>>,
    url: Option<Value<'d>>,
    content: Option<Value<'d>>,
}

impl<'d> Source<'d> {
    fn of(source: Value<'d>, notes: &mut Notes) -> Self {
        let Members { known: [kind, media_type, data, url, content], others } =
            members(source, ["type", "media_type", "data", "url", "content"]);
        notes.add_some("block_field", others);
        Self { kind: text_of(kind).unwrap_or_default(), media_type, data, url, content }
    }
}

/// Reads a document: its text or its content becomes text behind its title, a PDF stays one.
fn document<'d>(block: Value<'d>, notes: &mut Notes, out: &mut Vec<Content<'d>>) -> Result<(), Unsayable> {
    let Members { known: [_, source, title, context, citations, cache], others } =
        members(block, ["type", "source", "title", "context", "citations", "cache_control"]);
    notes.add_some("block_field", others);
    notes.add_some("document_context", usize::from(context.is_some()));
    notes.add_some("citations", usize::from(citations.is_some()));
    let title = title.and_then(Text::of).filter(|title| !title.is_empty());
    let source = Source::of(source.ok_or(MALFORMED)?, notes);
    let cache = cache.map(Value::raw);
    match &*source.kind {
        "base64" if !source.media_type.is_some_and(|media| media.says("application/pdf")) => {
            return Err(Unsayable::new("a document that is no PDF"));
        }
        "base64" => {
            notes.add_some("cache_control", usize::from(cache.is_some()));
            let data = source.data.and_then(Text::of).ok_or(MALFORMED)?;
            out.push(Content::Pdf(Pdf { title, data }));
        }
        "text" => {
            let data = source.data.and_then(Text::of).ok_or(MALFORMED)?;
            let text = lines(title.into_iter().chain([data]));
            out.extend(unless_empty(TextPart { text, cache }, notes).map(Content::Text));
        }
        "content" => {
            notes.add_some("cache_control", usize::from(cache.is_some()));
            out.extend(title.map(|title| Content::Text(TextPart::of(title))));
            read(source.content.ok_or(MALFORMED)?, notes, out)?;
        }
        "file" => return Err(STORED),
        "url" => return Err(DOCUMENT_URL),
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

/// Reads a search result: its title, its source and its texts.
fn search_result<'d>(
    block: Value<'d>,
    notes: &mut Notes,
    out: &mut Vec<Content<'d>>,
) -> Result<(), Unsayable> {
    let Members { known: [_, title, source, content, citations, cache], others } =
        members(block, ["type", "title", "source", "content", "citations", "cache_control"]);
    notes.add_some("block_field", others);
    notes.add_some("citations", usize::from(citations.is_some()));
    let mut texts: Vec<Text<'d>> = [title, source].into_iter().flatten().filter_map(Text::of).collect();
    for item in content.and_then(Value::items).into_iter().flatten() {
        texts.push(text(item, notes)?.ok_or(UNKNOWN)?.text);
    }
    let text = lines(texts.into_iter().filter(|text| !text.is_empty()));
    let part = TextPart { text, cache: cache.map(Value::raw) };
    out.extend(unless_empty(part, notes).map(Content::Text));
    Ok(())
}

/// Joins texts, each in lines of its own.
pub(super) fn lines<'d>(texts: impl Iterator<Item = Text<'d>>) -> Text<'d> {
    let mut texts = texts.peekable();
    let Some(first) = texts.next() else { return Text::fixed("") };
    if texts.peek().is_none() {
        return first;
    }
    let mut joined = vec![first];
    joined.extend(texts);
    let pieces: Vec<&str> = joined.iter().map(Text::escaped).collect();
    Text::joined(&[&pieces.join("\\n")])
}
