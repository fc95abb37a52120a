//! Where relative paths begin, while the commands of a text change it.

use super::{Word, WordForm, WorkingDirectory};

/// A directory, and since which command it hangs on no other.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) directory: WorkingDirectory,
    /// The order of the command that named an absolute directory; 0 where that was outside of the text.
    settled: usize,
}

impl Place {
    pub(super) fn start(directory: &WorkingDirectory) -> Self {
        Self { directory: directory.clone(), settled: 0 }
    }

    pub(super) fn computed() -> Self {
        Self { directory: WorkingDirectory::Computed, settled: 0 }
    }

    /// The place after `cd` to a directory.
    pub(super) fn moved(&self, to: &Word, order: usize) -> Self {
        let is_known = to.form == WordForm::Literal && !to.text.is_empty() && !to.text.contains('\0');
        if !is_known {
            return Self::computed();
        }
        let directory = match (&self.directory, to.text.starts_with('/')) {
            (_, true) => joined("", &to.text),
            (WorkingDirectory::Unsaid, false) => joined("", &to.text),
            (WorkingDirectory::At(base), false) => joined(base, &to.text),
            (WorkingDirectory::Computed, false) => WorkingDirectory::Computed,
        };
        let settled = if to.text.starts_with('/') { order } else { self.settled };
        Self { directory, settled }
    }

    /// Where it is this one or another.
    pub(super) fn or(self, other: &Self) -> Self {
        if self.directory != other.directory {
            return Self::computed();
        }
        Self { settled: self.settled.min(other.settled), ..self }
    }

    pub(super) fn is_at(&self, other: &Self) -> bool {
        self.directory == other.directory
    }

    /// What was not settled since a command is computed.
    pub(super) fn unsettle(&mut self, order: usize) {
        if self.settled < order {
            *self = Self::computed();
        }
    }
}

/// The longest directory that is remembered, in bytes: what systems take (`PATH_MAX` of Linux).
const MOST_BYTES: usize = 4096;

/// A path below a base, as `cd` takes it: `..` takes a name off, whatever it links to.
fn joined(base: &str, path: &str) -> WorkingDirectory {
    if base.len() + path.len() > MOST_BYTES {
        return WorkingDirectory::Computed;
    }
    let is_absolute = path.starts_with('/') || base.starts_with('/');
    // The base has no `.`, and `..` only in front where it is relative.
    let mut joined =
        if path.starts_with('/') { String::new() } else { base.trim_end_matches('/').to_owned() };
    for name in path.split('/') {
        let last = joined.rfind('/').map_or(0, |at| at + 1);
        let can_leave = !joined.is_empty() && joined.get(last..) != Some("..");
        match name {
            "" | "." => {}
            ".." if can_leave => joined.truncate(last.saturating_sub(1)),
            ".." if is_absolute => {}
            name => {
                if is_absolute || !joined.is_empty() {
                    joined.push('/');
                }
                joined.push_str(name);
            }
        }
    }
    match (is_absolute, joined.is_empty()) {
        (true, true) => WorkingDirectory::At("/".into()),
        (false, true) => WorkingDirectory::Unsaid,
        (_, false) => WorkingDirectory::At(joined.into()),
    }
}
