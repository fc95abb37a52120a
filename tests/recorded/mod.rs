//! Recorded answers of real providers through the framing; they are read from beside the repository, where they are.

mod event_stream;
mod sse;

use std::fs;
use std::path::{Path, PathBuf};

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

/// The recordings with this extension, in the order of their paths; none where they are not.
fn recordings(extension: &str) -> Vec<Recording> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures");
    let mut files = files(&directory);
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    let recording = |file: PathBuf| Recording {
        path: file.strip_prefix(&directory).unwrap().display().to_string(),
        bytes: fs::read(&file).unwrap(),
    };
    files.into_iter().map(recording).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
