//! Reads which texts of which files a call replaces, and which files it writes whole.
//!
//! Inputs are read by the names of their parameters, since agents copy each other's tools. What cannot be read so is no
//! edit: nothing is judged then.

mod blocks;
pub mod fit;
mod hunks;
mod pairs;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::catalogue::{CatalogueEntry, FILE, InputLayout};
use super::reading::{located, texts};
use super::spelling::{self, SpelledInput};
use super::{find, patch};
use crate::call::{FileChange, FileEdit, Input, Kind, MOST_BLOCKS};
use crate::fold::fold;

/// Tools that write a whole file. Others of the catalogue with the same input change a part of it.
const WHOLE: &[&str] = &[
    "write",
    "write_file",
    "writefile",
    "writetofile",
    "write_to_file",
    "save-file",
    "create",
    "create_file",
    "createfile",
    "new_file",
    "create_text_file",
    "create_new_file",
];

/// What an editor of many commands calls writing a whole file.
const WHOLE_COMMANDS: &[&str] = &["create", "write", "overwrite"];

/// What it calls replacing a text.
const REPLACING_COMMANDS: &[&str] = &["str_replace", "replace", "edit"];

/// Returns what a call does to the texts of files; nothing where that cannot be read, or the tool edits none.
pub fn edits(name: &str, namespace: Option<&str>, input: Input<'_>) -> Vec<FileEdit> {
    let Some((entry, _)) = find(name, namespace) else { return Vec::new() };
    let folded = fold(name);
    // The cells of a notebook are no lines of its file.
    if !entry.kinds.contains(&Kind::Write) || folded.contains("notebook") {
        return Vec::new();
    }
    let edits = match input {
        Input::Text(text) => patched(entry, text),
        Input::Json(json) => match spelling::of(json, entry.takes) {
            SpelledInput::Exact => of_json(entry, &folded, json),
            SpelledInput::Anew(_) | SpelledInput::Ambiguous => None,
        },
    };
    let is_bounded = |edit: &FileEdit| match &edit.change {
        FileChange::Overwrite => true,
        FileChange::Replace(blocks) => (1..=MOST_BLOCKS).contains(&blocks.len()),
    };
    edits.unwrap_or_default().into_iter().filter(is_bounded).collect()
}

fn patched(entry: &CatalogueEntry, text: &str) -> Option<Vec<FileEdit>> {
    match entry.takes {
        InputLayout::Patch(_) => hunks::of_patch(text, None),
        InputLayout::CommandOrPatch(_) => hunks::of_command(text, None),
        InputLayout::Nothing
        | InputLayout::Command(_)
        | InputLayout::CommandIfAny(_)
        | InputLayout::Paths(_)
        | InputLayout::Moves(_)
        | InputLayout::Download(_, _)
        | InputLayout::Search(_)
        | InputLayout::Urls(_)
        | InputLayout::UrlsIfAny(_)
        | InputLayout::UrlsInText(_, _)
        | InputLayout::Editor => None,
    }
}

fn of_json(entry: &CatalogueEntry, name: &str, json: &Value) -> Option<Vec<FileEdit>> {
    match entry.takes {
        InputLayout::Patch(keys) => match operation(json) {
            Some(operation) => hunks::of_operation(operation),
            None => {
                let found = texts(json, keys)?;
                let [text] = found.as_slice() else { return None };
                hunks::of_patch(text, None)
            }
        },
        InputLayout::CommandOrPatch(keys) => {
            let directory = ["workdir", "cwd", "working_directory"].iter().find_map(|key| json.get(key));
            let directory = directory.and_then(Value::as_str);
            hunks::of_command(&patch_in(json, keys)?, directory)
        }
        InputLayout::Paths(_) | InputLayout::Editor => of_file_tool(name, json),
        InputLayout::Nothing
        | InputLayout::Command(_)
        | InputLayout::CommandIfAny(_)
        | InputLayout::Moves(_)
        | InputLayout::Download(_, _)
        | InputLayout::Search(_)
        | InputLayout::Urls(_)
        | InputLayout::UrlsIfAny(_)
        | InputLayout::UrlsInText(_, _) => None,
    }
}

/// One operation on a file, as OpenAI's hosted `apply_patch` has it.
fn operation(json: &Value) -> Option<&Value> {
    let operation = json.get("operation").unwrap_or(json);
    (operation.get("type").is_some() && operation.get("path").is_some()).then_some(operation)
}

/// The one text of a command in which there is a patch.
fn patch_in(json: &Value, keys: &[&str]) -> Option<String> {
    let mut found = Vec::new();
    for value in keys.iter().filter_map(|key| json.get(key)) {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(words) => found.extend(words.iter().filter_map(|word| match word {
                Value::String(text) => Some(text),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    found.retain(|text| patch::is_in(text));
    let [text] = found.as_slice() else { return None };
    Some((*text).clone())
}

fn of_file_tool(name: &str, json: &Value) -> Option<Vec<FileEdit>> {
    let command = json.get("command").and_then(Value::as_str);
    let is_whole = match command {
        Some(command) if WHOLE_COMMANDS.contains(&command) => true,
        Some(command) if REPLACING_COMMANDS.contains(&command) => false,
        Some(_) => return None,
        None => WHOLE.iter().any(|whole| is_named(name, whole)),
    };
    if is_whole {
        return whole(json);
    }
    let diff = json.get("diff").and_then(Value::as_str);
    match diff.filter(|_| command.is_none()) {
        Some(diff) => {
            let blocks = blocks::of(diff)?;
            Some(vec![FileEdit { path: path(json)?, change: FileChange::Replace(blocks) }])
        }
        None => pairs::of(name, json),
    }
}

/// The files that are written whole; none where they are added to.
fn whole(json: &Value) -> Option<Vec<FileEdit>> {
    let mode = json.get("mode").and_then(Value::as_str).unwrap_or_default();
    let appends = json.get("append").is_some_and(|value| value != &Value::Bool(false));
    if appends || !matches!(mode, "" | "rewrite" | "overwrite" | "write" | "create" | "w") {
        return None;
    }
    let paths = located(json, texts(json, FILE)?)?;
    let written =
        |path: std::borrow::Cow<'_, str>| FileEdit { path: path.into_owned(), change: FileChange::Overwrite };
    Some(paths.into_iter().map(written).collect())
}

/// The one file of an input.
fn path(json: &Value) -> Option<String> {
    let paths = located(json, texts(json, FILE)?)?;
    let [path] = paths.as_slice() else { return None };
    Some(path.clone().into_owned())
}

/// Whether a folded name is one, or ends in it behind what a server's name is separated by.
fn is_named(name: &str, known: &str) -> bool {
    name.strip_suffix(known)
        .is_some_and(|before| before.is_empty() || before.ends_with(['_', '.', ':', '/', '-']))
}
