//! Which files of a policy directory are read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::pod::{COMPRESSED_KEY, NEWEST_KEY, NEWEST_REVISION_KEY, REVISION_KEY, SYNCED_AT_KEY};

const MAX_FILES: usize = 4_096;

/// The files of a policy directory, the operator's among them, sorted by name.
pub(super) fn policy_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let policy = path.extension().is_some_and(|ext| ["yaml", "yml", "json"].iter().any(|e| ext == *e));
        if (policy || is_operators(&path)) && !hidden {
            files.push(path);
        }
        if files.len() > MAX_FILES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} policy files")));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether it is a file that the operator writes beside policies.
fn is_operators(path: &Path) -> bool {
    [REVISION_KEY, SYNCED_AT_KEY, COMPRESSED_KEY, NEWEST_KEY, NEWEST_REVISION_KEY]
        .iter()
        .any(|key| path.file_name().is_some_and(|n| n == *key))
}
