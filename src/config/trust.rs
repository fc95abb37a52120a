//! Where agents find the roots that they trust, and what those are made of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file_path::FilePath;
use crate::problem::is_passing;

/// The files of roots that the gateway writes for the agents beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TrustSettings {
    /// Where they are written.
    pub directory: FilePath,
    /// PEM: Postern's own roots.
    pub roots: FilePath,
    /// The roots that agents' containers brought along: `CONTAINER/*.pem`.
    pub own_roots: Option<FilePath>,
}

/// A container that brought roots along.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnRoots {
    /// As its directory is named.
    pub container: String,
    /// PEM, sorted by name.
    pub files: Vec<PathBuf>,
}

impl TrustSettings {
    /// The containers that brought roots along, as they stand there now; none where the directory is not there.
    ///
    /// # Errors
    /// A directory is there and cannot be listed now.
    pub fn containers(&self) -> io::Result<Vec<OwnRoots>> {
        let mut containers = Vec::new();
        for directory in self.own_roots.as_deref().map_or(Ok(Vec::new()), entries)? {
            let name = directory.file_name().and_then(|name| name.to_str());
            let Some(container) = name.filter(|name| !name.starts_with('.')).map(str::to_owned) else {
                continue;
            };
            let mut files = entries(&directory)?;
            files.retain(|file| file.extension().is_some_and(|extension| extension == "pem"));
            if !files.is_empty() {
                containers.push(OwnRoots { container, files });
            }
        }
        Ok(containers)
    }
}

/// Sorted; none where there is no such directory.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match listed {
        Err(error) if !is_passing(error.kind()) => Ok(Vec::new()),
        listed => listed.map(|mut paths: Vec<PathBuf>| {
            paths.sort();
            paths
        }),
    }
}
