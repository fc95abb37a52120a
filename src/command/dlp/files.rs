//! The files below paths, in one order.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is never looked into: its objects are packed.
const LEFT_OUT: &str = ".git";

/// Lists the files below a path: itself, or all of its directory and those in it. Adds what cannot be read to `failed`.
pub(super) fn below(path: &Path, failed: &mut Vec<(PathBuf, io::Error)>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => walk(path, &mut files, failed),
        Ok(_) => files.push(path.to_owned()),
        Err(error) => failed.push((path.to_owned(), error)),
    }
    files
}

fn walk(root: &Path, files: &mut Vec<PathBuf>, failed: &mut Vec<(PathBuf, io::Error)>) {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                failed.push((directory, error));
                continue;
            }
        };
        let paths: BTreeSet<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        let mut inside = Vec::new();
        for path in paths {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() && !path.ends_with(LEFT_OUT) => inside.push(path),
                Ok(metadata) if metadata.is_file() => files.push(path),
                Ok(_) => {}
                Err(error) => failed.push((path, error)),
            }
        }
        directories.extend(inside.into_iter().rev());
    }
}
