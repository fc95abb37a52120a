//! A file that is there while a gateway runs: where one finds it at its start, the one before it did not stop in order.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Beside the status socket, in a directory that no agent has.
const NAME: &str = "running";

/// The mark that this gateway runs, removed when it stops.
#[derive(Debug)]
pub(super) struct RunningMark(Option<PathBuf>);

impl RunningMark {
    /// Leaves the mark beside the status socket. Returns also when the gateway before this one had started, where that
    /// ended without removing its own.
    pub(super) fn leave(socket: Option<&Path>) -> (Self, Option<SystemTime>) {
        let Some(mark) = socket.and_then(Path::parent).map(|directory| directory.join(NAME)) else {
            return (Self(None), None);
        };
        let before = fs::metadata(&mark).and_then(|metadata| metadata.modified()).ok();
        // A mark that cannot be left is missed at the next start, and nowhere else.
        let left = fs::remove_file(&mark).is_ok() || before.is_none();
        if !left || fs::File::create_new(&mark).is_err() {
            tracing::debug!(path = %mark.display(), "the mark of a running gateway cannot be left");
        }
        (Self(Some(mark)), before)
    }

    /// Removes the mark: the gateway stops.
    pub(super) fn remove(&self) {
        if let Some(mark) = &self.0 {
            // It may be gone already.
            drop(fs::remove_file(mark));
        }
    }
}
