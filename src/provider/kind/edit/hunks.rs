//! Reads the hunks of a patch in the format of `apply_patch`: which lines each takes for granted.
//!
//! Source: Codex, `codex-rs/apply-patch/apply_patch_tool_instructions.md` and `seek_sequence.rs`. Unified diffs are not
//! read: programs that apply them tolerate lines that do not match.

use serde_json::Value;

use super::patch;
use crate::call::{EditBlock, FileChange, FileEdit};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The patch in a command: between the lines of its beginning and its end. `directory` is where the command starts.
pub(super) fn of_command(command: &str, directory: Option<&str>) -> Option<Vec<FileEdit>> {
    let (before, rest) = command.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let edits = of_body(body, directory)?;
    // A command that goes elsewhere first has its relative paths there.
    let moves = before.split([' ', '\t', '\n', ';', '&', '(']).any(|word| matches!(word, "cd" | "pushd"));
    let is_fixed = |edit: &FileEdit| !moves || edit.path.starts_with('/');
    Some(edits.into_iter().filter(is_fixed).collect())
}

/// A whole patch.
pub(super) fn of_patch(text: &str, directory: Option<&str>) -> Option<Vec<FileEdit>> {
    let (_, rest) = text.split_once(BEGIN)?;
    of_body(rest.split_once(END).map_or(rest, |(body, _)| body), directory)
}

/// One operation: `{type, path, diff}`, whose diff has no lines that name files.
pub(super) fn of_operation(operation: &Value) -> Option<Vec<FileEdit>> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let path = text("path")?.to_owned();
    let change = match text("type")? {
        "create_file" => FileChange::Overwrite,
        "update_file" => FileChange::Replace(hunks(text("diff")?.lines())),
        _ => return None,
    };
    Some(vec![FileEdit { path, change }])
}

fn of_body(body: &str, directory: Option<&str>) -> Option<Vec<FileEdit>> {
    let mut edits = Vec::new();
    let mut lines = body.lines().skip_while(|line| line.trim().is_empty()).peekable();
    while let Some(line) = lines.next() {
        let mut own = Vec::new();
        while let Some(next) = lines.next_if(|line| !begins_file(line)) {
            own.push(next);
        }
        let line = line.trim();
        let named = |start: &str| line.strip_prefix(start).map(|path| path.trim().to_owned());
        if let Some(path) = named(ADD) {
            edits.push(FileEdit { path: patch::below(directory, path), change: FileChange::Overwrite });
        } else if let Some(path) = named(UPDATE) {
            let moved = own.first().is_some_and(|line| line.starts_with(MOVE));
            let change = FileChange::Replace(hunks(own.into_iter().skip(usize::from(moved))));
            edits.push(FileEdit { path: patch::below(directory, path), change });
        } else if named(DELETE).is_none() {
            return None;
        }
    }
    // A file that is made from hunks of another part of the same patch is changed meanwhile.
    let is_once = |edit: &FileEdit| edits.iter().filter(|other| other.path == edit.path).count() == 1;
    Some(edits.iter().filter(|edit| is_once(edit)).cloned().collect())
}

fn begins_file(line: &str) -> bool {
    [ADD, UPDATE, DELETE].iter().any(|start| line.trim().starts_with(start))
}

/// The hunks of one file. A hunk that takes no line for granted is left out, unless a line above is named.
fn hunks<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<EditBlock> {
    let (mut blocks, mut below, mut old) = (Vec::new(), Vec::new(), Vec::new());
    let mut close = |below: &mut Vec<String>, old: &mut Vec<String>| {
        if !old.is_empty() {
            let (below, old) = (std::mem::take(below), std::mem::take(old));
            blocks.push(EditBlock::Lines { below, old });
        }
    };
    for line in lines.map(|line| line.trim_end_matches('\r')) {
        if let Some(header) = line.strip_prefix("@@") {
            close(&mut below, &mut old);
            let header = header.trim();
            // `@@ -1,3 +1,4 @@` counts lines, which models get wrong, and Codex takes for a line that stands there.
            if !header.is_empty() && !header.starts_with('-') {
                below.push(header.to_owned());
            }
        } else if line.starts_with(END_OF_FILE) {
            close(&mut below, &mut old);
        } else if line.is_empty() {
            old.push(String::new());
        } else if let Some(kept) = line.strip_prefix([' ', '-']) {
            old.push(kept.to_owned());
        }
    }
    close(&mut below, &mut old);
    blocks
}
