//! Reads pairs of a search text and its replacement, alone or in a list.

use serde_json::{Map, Value};

use super::{FILE, is_named, path};
use crate::call::{EditBlock, FileChange, FileEdit, Occurrences};

/// The parameters of a search text, each with that of its replacement.
const PAIRS: &[(&str, &str)] = &[
    // Claude Code, Gemini CLI, Qwen Code, Crush, Cursor, Roo, Desktop Commander.
    ("old_string", "new_string"),
    // OpenCode, VS Code.
    ("oldString", "newString"),
    // Anthropic's editor, Amp, Kiro, OpenHands, Factory.
    ("old_str", "new_str"),
    ("oldStr", "newStr"),
    // The server of files of MCP, JetBrains.
    ("oldText", "newText"),
    // Zed.
    ("old_text", "new_text"),
    // Windsurf, Antigravity.
    ("TargetContent", "ReplacementContent"),
    // Roo, older.
    ("search", "replace"),
    // Serena.
    ("needle", "repl"),
];

/// The parameters of lists of such pairs.
const LISTS: &[&str] = &["edits", "replacements", "ReplacementChunks", "str_replace_entries"];

/// The parameters by which every place is replaced.
const EVERY: &[&str] = &[
    "replace_all",
    "replaceAll",
    "allow_multiple",
    "allowMultiple",
    "AllowMultiple",
    "change_all",
    "allow_multiple_occurrences",
];

/// The parameters by which the search text is none, or the place is told by something else.
const OTHERWISE: &[&str] = &["use_regex", "is_regex", "regex", "ignore_case"];

/// Tools that replace every place without being asked to.
const REPLACE_EVERY: &[&str] = &["search_and_replace"];

/// Most numbered pairs of one input (Augment: `old_str_1`, `new_str_1`, …).
const MOST_NUMBERED: usize = 64;

/// The pairs of an input, by file; none where one cannot be read.
pub(super) fn of(name: &str, json: &Value) -> Option<Vec<FileEdit>> {
    let object = json.as_object()?;
    let every = REPLACE_EVERY.iter().any(|known| is_named(name, known)) || replaces_every(object);
    let mut edits: Vec<FileEdit> = Vec::new();
    let mut add = |path: String, block: EditBlock| match edits.iter_mut().find(|edit| edit.path == path) {
        Some(FileEdit { change: FileChange::Replace(blocks), .. }) => blocks.push(block),
        Some(_) | None => edits.push(FileEdit { path, change: FileChange::Replace(vec![block]) }),
    };
    for list in LISTS.iter().filter_map(|key| object.get(*key)) {
        for element in list.as_array()? {
            let element = element.as_object()?;
            add(path_of(element).or_else(|| path_of(object))?, block(element, every)?);
        }
    }
    if PAIRS.iter().any(|(search, _)| object.contains_key(*search)) {
        add(path(json)?, block(object, every)?);
    }
    for numbered in (1..=MOST_NUMBERED).map_while(|number| numbered(object, number)) {
        add(path(json)?, numbered);
    }
    Some(edits)
}

/// The file that an input, or an element of a list in it, names.
fn path_of(element: &Map<String, Value>) -> Option<String> {
    let plain = FILE.iter().filter(|key| !key.contains('.'));
    plain.filter_map(|key| element.get(*key)).find_map(Value::as_str).map(str::to_owned)
}

fn replaces_every(object: &Map<String, Value>) -> bool {
    EVERY.iter().any(|key| object.get(*key) == Some(&Value::Bool(true)))
}

fn block(object: &Map<String, Value>, every: bool) -> Option<EditBlock> {
    let is_otherwise = OTHERWISE.iter().any(|key| object.get(*key) == Some(&Value::Bool(true)))
        || object.get("mode").and_then(Value::as_str) == Some("regex");
    if is_otherwise {
        return None;
    }
    let mut pairs = PAIRS.iter().filter(|(search, _)| object.contains_key(*search));
    let (Some((search, replace)), None) = (pairs.next(), pairs.next()) else { return None };
    let times = object.get("expected_replacements").and_then(Value::as_u64);
    let expected = match times {
        _ if every || replaces_every(object) => Occurrences::AtLeastOnce,
        Some(times) if times != 1 => Occurrences::Exactly(times),
        Some(_) | None => Occurrences::Once,
    };
    text(object.get(*search)?, object.get(*replace), expected)
}

fn numbered(object: &Map<String, Value>, number: usize) -> Option<EditBlock> {
    let at = |key: &str| object.get(&format!("{key}_{number}"));
    // A line tells which of several places is meant.
    let has_line = at("old_str_start_line_number").is_some();
    let expected = if has_line { Occurrences::AtLeastOnce } else { Occurrences::Once };
    text(at("old_str")?, at("new_str"), expected)
}

/// A block of these texts; none of an empty search text, which makes a file.
fn text(search: &Value, replace: Option<&Value>, expected: Occurrences) -> Option<EditBlock> {
    let search = search.as_str().filter(|search| !search.is_empty())?.to_owned();
    let replace = replace.and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(EditBlock::Text { search, replace, expected })
}
