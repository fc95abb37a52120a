//! A file that is there while a gateway runs: where one finds it at its start, the one before it did not stop in order.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Beside the status socket, in a directory that no agent has.
const NAME: &str = "running";

/// The mark of this gateway.
#[derive(Debug)]
pub(super) struct Mark(Option<PathBuf>);

impl Mark {
    /// Leaves the mark beside the status socket. Answers also when the gateway before this one had started, if it ended
    /// without taking its own away.
    pub(super) fn leave(socket: Option<&Path>) -> (Self, Option<SystemTime>) {
        let Some(mark) = socket.and_then(Path::parent).map(|directory| directory.join(NAME)) else {
            return (Self(None), None);
        };
        let before = fs::metadata(&mark).and_then(|found| found.modified()).ok();
        // What cannot be left is missed at the next start, and nowhere else.
        let left = fs::remove_file(&mark).is_ok() || before.is_none();
        if !left || fs::File::create_new(&mark).is_err() {
            tracing::debug!(path = %mark.display(), "the mark of a running gateway cannot be left");
        }
        (Self(Some(mark)), before)
    }

    /// Takes the mark away: the gateway stops.
    pub(super) fn take(&self) {
        if let Some(mark) = &self.0 {
            // One that is gone already is well.
            drop(fs::remove_file(mark));
        }
    }
}
