//! Where agents find the roots that they trust, and what those are made of.

use std::fs;
use std::path::{Path, PathBuf};

use super::section::Field;

/// The files of roots that the gateway writes for the agents beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustSettings {
    /// Where they are written.
    pub directory: PathBuf,
    /// PEM: Postern's own roots.
    pub roots: PathBuf,
    /// The roots that agents' containers brought along: `CONTAINER/*.pem`.
    pub own_roots: Option<PathBuf>,
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
    pub(super) fn read(field: &Field<'_>) -> Option<Self> {
        if !field.is_written() {
            return None;
        }
        let (directory, roots, own_roots) = field.section(|s| {
            let (directory, roots) = (s.field("directory"), s.field("roots"));
            directory.require(": where agents find their roots");
            roots.require(": the PEM file of the roots that agents are to trust besides their own");
            (directory.path(), roots.path(), s.field("ownRoots").path())
        });
        Some(Self { directory: directory?, roots: roots?, own_roots })
    }

    /// The containers that brought roots along, as they stand there now; none where the directory is not there.
    pub fn containers(&self) -> Vec<OwnRoots> {
        let directories = self.own_roots.as_deref().map(entries).unwrap_or_default();
        let containers = directories.into_iter().filter_map(|directory| {
            let container = directory.file_name()?.to_str().filter(|name| !name.starts_with('.'))?.to_owned();
            let mut files = entries(&directory);
            files.retain(|file| file.extension().is_some_and(|extension| extension == "pem"));
            (!files.is_empty()).then_some(OwnRoots { container, files })
        });
        containers.collect()
    }
}

/// Sorted; none where there is no such directory.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
