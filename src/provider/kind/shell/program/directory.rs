//! Where paths begin: they are joined with the directory of the command.

use super::super::division::{WordForm, WorkingDirectory};

/// `PATH_MAX` of Linux.
const MOST_BYTES: usize = 4096;

/// The directory after a change to `text`.
pub(super) fn moved(base: &WorkingDirectory, text: &str, form: WordForm) -> WorkingDirectory {
    if form == WordForm::Computed {
        return WorkingDirectory::Computed;
    }
    match base {
        _ if is_whole(text) => WorkingDirectory::At(text.into()),
        WorkingDirectory::Unsaid => WorkingDirectory::At(text.into()),
        WorkingDirectory::At(directory) => within(directory, text)
            .map_or(WorkingDirectory::Computed, |directory| WorkingDirectory::At(directory.into())),
        WorkingDirectory::Computed => WorkingDirectory::Computed,
    }
}

/// A path from where it begins; none where that cannot be told.
pub(super) fn located(base: &WorkingDirectory, path: &str) -> Option<String> {
    match base {
        _ if is_whole(path) => Some(path.to_owned()),
        WorkingDirectory::Unsaid => Some(path.to_owned()),
        WorkingDirectory::At(directory) => within(directory, path),
        WorkingDirectory::Computed => None,
    }
}

/// A file inside a directory; none where no system has paths of such a length, so that a long directory is not copied for
/// each of thousands of files.
pub(super) fn within(directory: &str, path: &str) -> Option<String> {
    (directory.len() + path.len() < MOST_BYTES).then(|| join(directory, path))
}

fn join(directory: &str, path: &str) -> String {
    match directory.trim_end_matches('/') {
        "" if directory.is_empty() => path.to_owned(),
        "." => path.to_owned(),
        directory if path == "." => if directory.is_empty() { "/" } else { directory }.to_owned(),
        directory => format!("{directory}/{}", path.strip_prefix("./").unwrap_or(path)),
    }
}

/// The last component of a path or a URL.
pub(super) fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether a path begins at the root or at a home.
fn is_whole(path: &str) -> bool {
    path.starts_with(['/', '~'])
}

/// Devices that hold nothing, and names for what is open already.
pub(super) fn is_device(path: &str) -> bool {
    const DEVICES: &[&str] = &[
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
        "/dev/random",
        "/dev/tty",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
    ];
    DEVICES.contains(&path)
        || path.strip_prefix("/dev/fd/").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}
