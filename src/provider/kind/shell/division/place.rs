//! Where relative paths begin, while the commands of a text change it.

use std::sync::Arc;

use super::{Word, WordForm, WorkingDirectory};

/// The most directories of one place that are told.
const MOST_DIRECTORIES: usize = 8;

/// The directories in which a command may run: more than one where changing it may have failed, or may not have run.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Directories>);

/// At least one; the first is where all went well.
#[derive(Debug)]
struct Directories {
    all: Arc<[WorkingDirectory]>,
    /// Of each, since which command it hangs on no other.
    settled: Vec<usize>,
}

/// A directory, and since which command it hangs on no other.
#[derive(Debug, Clone)]
struct Directory {
    is: WorkingDirectory,
    /// The order of the command that named an absolute directory; 0 where that was outside of the text.
    settled: usize,
}

impl Place {
    pub(super) fn start(directory: &WorkingDirectory) -> Self {
        Self::of(vec![Directory { is: directory.clone(), settled: 0 }])
    }

    pub(super) fn computed() -> Self {
        Self::start(&WorkingDirectory::Computed)
    }

    fn of(directories: Vec<Directory>) -> Self {
        let settled = directories.iter().map(|directory| directory.settled).collect();
        Self(Arc::new(Directories {
            all: directories.into_iter().map(|directory| directory.is).collect(),
            settled,
        }))
    }

    /// The place after `cd` to a directory.
    pub(super) fn moved(&self, to: &Word, order: usize) -> Self {
        let is_home = is_in_home(to);
        let is_literal = to.form == WordForm::Literal && !to.text.is_empty();
        let is_known = (is_literal || is_home) && !to.text.contains('\0');
        if !is_known {
            return Self::computed();
        }
        // From wherever, an absolute one is the same.
        let is_whole = is_home || to.text.starts_with('/');
        let count = if is_whole { 1 } else { usize::MAX };
        let mut moved = Vec::new();
        self.directories()
            .take(count)
            .for_each(|directory| add(&mut moved, directory.moved(&to.text, is_whole, order)));
        Self::of(moved)
    }

    /// Whether a file may be one of these, by its whole path.
    pub(super) fn reaches(&self, file: &Word, is_one: impl Fn(&str) -> bool) -> bool {
        let moved = self.moved(file, 0);
        moved.0.all.iter().any(|directory| matches!(directory, WorkingDirectory::At(path) if is_one(path)))
    }

    /// Where it is this one or another.
    pub(super) fn or(self, other: &Self) -> Self {
        if self.is_beginning_of(other) {
            return other.clone();
        }
        let mut directories: Vec<Directory> = self.directories().collect();
        other.directories().for_each(|directory| add(&mut directories, directory));
        Self::of(directories)
    }

    /// Whether the other one has its directories, and perhaps more behind them.
    fn is_beginning_of(&self, other: &Self) -> bool {
        let is_same = || {
            other.0.all.starts_with(&self.0.all)
                && self.0.settled.iter().zip(&other.0.settled).all(|(own, other)| own >= other)
        };
        Arc::ptr_eq(&self.0, &other.0) || is_same()
    }

    pub(super) fn is_at(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.all == other.0.all
    }

    /// What was not settled since a command may be elsewhere, too.
    pub(super) fn unsettle(&mut self, order: usize) {
        if self.0.settled.iter().any(|settled| *settled < order) {
            let mut directories: Vec<Directory> = self.directories().collect();
            add(&mut directories, Directory { is: WorkingDirectory::Computed, settled: order });
            *self = Self::of(directories);
        }
    }

    /// The directory where all went well, and the others.
    pub(super) fn told(self) -> Arc<[WorkingDirectory]> {
        self.0.all.clone()
    }

    fn directories(&self) -> impl Iterator<Item = Directory> {
        let pairs = self.0.all.iter().zip(&self.0.settled);
        pairs.map(|(is, settled)| Directory { is: is.clone(), settled: *settled })
    }
}

/// Adds a directory that is not there yet.
fn add(directories: &mut Vec<Directory>, directory: Directory) {
    if let Some(same) = directories.iter_mut().find(|one| one.is == directory.is) {
        same.settled = same.settled.min(directory.settled);
    } else if directories.len() < MOST_DIRECTORIES || directory.is == WorkingDirectory::Computed {
        directories.push(directory);
    } else {
        add(directories, Directory { is: WorkingDirectory::Computed, settled: 0 });
    }
}

impl Directory {
    fn moved(&self, to: &str, is_whole: bool, order: usize) -> Self {
        let is = match &self.is {
            _ if is_whole => return Self { is: joined("", to), settled: order },
            WorkingDirectory::Unsaid => joined("", to),
            WorkingDirectory::At(base) => joined(base, to),
            WorkingDirectory::Computed => WorkingDirectory::Computed,
        };
        Self { is, settled: self.settled }
    }
}

/// Whether a word is a home, or a directory below it, and no pattern beside.
fn is_in_home(to: &Word) -> bool {
    to.form == WordForm::Pattern
        && to.text.strip_prefix('~').is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && !to.text.contains(['*', '?', '['])
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
            // Where a home stands is not told.
            ".." if joined == "~" => return WorkingDirectory::Computed,
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
