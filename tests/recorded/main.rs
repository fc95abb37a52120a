//! Reads every recorded answer of a directory through the framing, and counts what is there and what is canonical.
//!
//! The recordings are no part of the package: `just recorded DIRECTORY` says where they are. Without them the checks
//! are left out, and the last line says so.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]
#![expect(clippy::print_stdout, reason = "what was counted is what this target is for")]

mod event_stream;
mod sse;

use std::fs;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "POSTERN_RECORDINGS";

fn main() {
    let Some(directory) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        println!("recorded: 2 checks are left out, {VARIABLE} does not say where recordings are");
        return;
    };
    let mut files = files(&directory);
    files.sort();
    sse::check(&below(&directory, &files, "sse"));
    event_stream::check(&below(&directory, &files, "bin"));
}

/// One recording: its path below the directory, and its bytes.
struct Recording {
    path: String,
    bytes: Vec<u8>,
}

impl Recording {
    /// The stream as one piece, byte by byte, and in pieces of the size that a TLS record may have.
    fn pieces(&self) -> [Vec<&[u8]>; 3] {
        [vec![&self.bytes], self.bytes.chunks(1).collect(), self.bytes.chunks(1369).collect()]
    }
}

fn below(directory: &Path, files: &[PathBuf], extension: &str) -> Vec<Recording> {
    let found = files.iter().filter(|file| file.extension().is_some_and(|found| found == extension));
    let recordings: Vec<Recording> = found
        .map(|file| Recording {
            path: file.strip_prefix(directory).unwrap().display().to_string(),
            bytes: fs::read(file).unwrap(),
        })
        .collect();
    assert!(!recordings.is_empty(), "{} has no recording .{extension}", directory.display());
    recordings
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
