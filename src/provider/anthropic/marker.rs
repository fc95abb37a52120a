//! The marker by which a system prompt chooses a model, such as
//! `<!-- @proxy-local-route:af83e9 model=coder -->`: finds it in `system` of a Messages body, and cuts it out.

use std::borrow::Cow;
use std::ops::Range;

use super::system;
use crate::wire::json::{Document, EditError, Edits, Value};

const BEGIN: &str = "<!-- @proxy-local-route:";
const MODEL: &str = " model=";
const END: &str = " -->";

/// The lengths of a token, and the longest label that is repeated to the agent, in bytes.
const TOKEN: std::ops::RangeInclusive<usize> = 4..=32;
const LONGEST_LABEL: usize = 128;

/// What the first marker of a body says, and the body without markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub token: String,
    /// The label as it stands there; it may name no model.
    pub label: String,
    pub body: Vec<u8>,
}

/// Finds the markers with a token that a route names, in the decoded text of `system`: a string, or blocks of text. The
/// first one counts; all are cut out, each with one line break behind it. A block of which nothing but white space is
/// left goes, since servers refuse it. None where there is no marker: the body is not edited then.
///
/// # Errors
/// If the body cannot be edited, which no body is that has one reading.
pub fn marked(document: &Document<'_>, is_token: impl Fn(&str) -> bool) -> Result<Option<Marked>, EditError> {
    let Ok(Some(whole)) = document.root().get("system") else { return Ok(None) };
    let mut edits = Edits::new(document);
    let mut first = None;
    let mut emptied = Vec::new();
    for (block, text) in system::texts(whole).filter(|(_, text)| may_have_one(*text)) {
        let decoded = text.text().unwrap_or(Cow::Borrowed(""));
        let markers: Vec<Marker<'_>> = markers(&decoded, &is_token).collect();
        let Some(marker) = markers.first() else { continue };
        first = first.or_else(|| Some((marker.token.to_owned(), marker.label.to_owned())));
        if is_blank_without(&decoded, &markers) {
            emptied.push(block);
            continue;
        }
        for marker in markers {
            edits.replace_within(text, marker.range, "")?;
        }
    }
    let Some((token, label)) = first else { return Ok(None) };
    if emptied.iter().any(|block| block.span() == whole.span()) {
        edits.remove(whole)?;
    } else {
        system::remove(&mut edits, whole, &emptied)?;
    }
    Ok(Some(Marked { token, label, body: edits.apply() }))
}

/// Whether a text is worth decoding: a marker has no character that must be escaped, so it stands there as it is unless
/// somebody escaped it by its number.
fn may_have_one(text: Value<'_>) -> bool {
    let raw = text.raw().as_bytes();
    memchr::memmem::find(raw, BEGIN.as_bytes()).is_some() || memchr::memmem::find(raw, br"\u").is_some()
}

/// A marker in a text.
struct Marker<'t> {
    token: &'t str,
    label: &'t str,
    /// Its bytes, and those of the line break behind it.
    range: Range<usize>,
}

fn markers<'t>(text: &'t str, is_token: &impl Fn(&str) -> bool) -> impl Iterator<Item = Marker<'t>> {
    let begins = memchr::memmem::find_iter(text.as_bytes(), BEGIN).collect::<Vec<usize>>().into_iter();
    begins.filter_map(move |begin| marker_at(text, begin).filter(|marker| is_token(marker.token)))
}

/// The marker that begins here, if it is whole.
fn marker_at(text: &str, begin: usize) -> Option<Marker<'_>> {
    let behind = text.get(begin + BEGIN.len()..)?;
    let token = behind.get(..run(behind, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))?;
    let behind = behind.get(token.len()..)?.strip_prefix(MODEL)?;
    let label = behind.get(..run(behind, |byte| !byte.is_ascii_whitespace() && !byte.is_ascii_control()))?;
    let behind = behind.get(label.len()..)?.strip_prefix(END)?;
    if !TOKEN.contains(&token.len()) || label.is_empty() || label.len() > LONGEST_LABEL {
        return None;
    }
    let line_break = ["\r\n", "\n"].into_iter().find(|line_break| behind.starts_with(line_break));
    let end = text.len() - behind.len() + line_break.map_or(0, str::len);
    Some(Marker { token, label, range: begin..end })
}

/// The length of the bytes at the beginning that are like this, up to a bound that is over every other.
fn run(text: &str, is_like: impl Fn(u8) -> bool) -> usize {
    let length = text.bytes().take(LONGEST_LABEL + 1).take_while(|byte| is_like(*byte)).count();
    text.floor_char_boundary(length)
}

/// Whether nothing but white space is left of a text without its markers.
fn is_blank_without(text: &str, markers: &[Marker<'_>]) -> bool {
    let mut at = 0;
    for marker in markers {
        if !text.get(at..marker.range.start).unwrap_or_default().trim().is_empty() {
            return false;
        }
        at = marker.range.end;
    }
    text.get(at..).unwrap_or_default().trim().is_empty()
}
