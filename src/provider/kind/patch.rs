//! Reads which files a patch changes: one in the format of `apply_patch`, or a unified diff.

use super::unified;

/// The first line of a patch.
const BEGIN: &str = "*** Begin Patch";

/// The lines that name a file.
const NAMING: &[&str] = &["*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"];

/// Whether a command has a patch in it.
pub(super) fn is_in(command: &str) -> bool {
    command.contains(BEGIN)
}

/// Every file that is made, changed, moved or removed; none where the text names no file, or where which files it names
/// is not certain.
pub(super) fn paths(text: &str) -> Option<Vec<String>> {
    // Whatever a line is indented by, some reader takes it for what it says.
    let named = |line: &str| {
        let line = line.trim();
        NAMING.iter().find_map(|naming| line.strip_prefix(naming)).map(|path| path.trim().to_owned())
    };
    let mut paths: Vec<String> = text.lines().filter_map(named).filter(|path| !path.is_empty()).collect();
    // In the format of `apply_patch`, `--- a` takes the line `-- a` out. Where hunks of a diff are in it all the same,
    // a program that reads diffs would find them.
    if !is_in(text) || unified::has_hunks(text) {
        paths.extend(unified::paths(text)?);
    }
    (!paths.is_empty()).then_some(paths)
}

/// A path that begins in a directory.
pub(super) fn below(directory: Option<&str>, path: String) -> String {
    match directory.filter(|directory| !directory.is_empty() && !path.starts_with(['/', '~'])) {
        Some(directory) => format!("{}/{path}", directory.trim_end_matches('/')),
        None => path,
    }
}
