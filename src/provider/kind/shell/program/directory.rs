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

/// A path from where it begins, and whether that can be told; else it stays as it is written.
pub(super) fn located(base: &WorkingDirectory, path: String) -> (String, bool) {
    match base {
        _ if is_whole(&path) => (path, true),
        WorkingDirectory::Unsaid => (path, true),
        WorkingDirectory::At(directory) => match within(directory, &path) {
            Some(path) => (path, true),
            None => (path, false),
        },
        WorkingDirectory::Computed => (path, false),
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

/// What a path with patterns may be where old shells let `.?` and `.*` stand for `..`, too.
pub(super) fn upward(path: &str) -> Option<String> {
    let may_be_above = |component: &str| {
        let Some(rest) = component.strip_prefix('.').filter(|rest| rest.contains(['*', '?', '['])) else {
            return false;
        };
        let rest = rest.replace('*', "");
        matches!(rest.as_str(), "" | "." | "?") || is_set(&rest)
    };
    let written: Vec<&str> =
        path.split('/').map(|component| if may_be_above(component) { ".." } else { component }).collect();
    let written = written.join("/");
    (written != path).then_some(written)
}

/// Whether a text is one set of characters and nothing else: `[.]`, `[!]a]`, `[[:punct:]]`.
fn is_set(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('[') else { return false };
    rest = rest.strip_prefix(['!', '^']).unwrap_or(rest);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    while let Some(at) = rest.find(['[', ']']) {
        let (sign, behind) = rest.split_at(at).1.split_at(1);
        if sign == "]" {
            return behind.is_empty();
        }
        // A class in it has brackets of its own.
        let end = [":", "=", "."].into_iter().find(|sign| behind.starts_with(sign));
        rest = match end.map(|sign| behind.get(1..).unwrap_or_default().split_once(&format!("{sign}]"))) {
            None => behind,
            Some(Some((_, behind))) => behind,
            Some(None) => return text.ends_with(']'),
        };
    }
    false
}

/// The last component of a path or a URL.
pub(super) fn last(path: &str) -> &str {
    // Names are short, and most have no slash.
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let start = bytes.iter().take(end).rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    path.get(start..end).unwrap_or_default()
}

/// Whether a path begins at the root or at a home.
fn is_whole(path: &str) -> bool {
    path.starts_with(['/', '~'])
}

/// Devices that hold nothing, and names for what is open already.
pub(in super::super) fn is_device(path: &str) -> bool {
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
