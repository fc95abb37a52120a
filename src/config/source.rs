//! Reads files and directories whole: bounded, and never half of one version and half of another.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::watch::Fingerprint;
use crate::problem::Problem;

/// Bounds on one policy source.
const MAX_BYTES: u64 = 16 << 20;
const MAX_FILES: usize = 4_096;

/// How often a directory that changes while it is read is read again.
const ATTEMPTS: usize = 5;

/// Reads a policy source, a file or a directory, into the texts of its files with their names as a user would
/// write them. Of a directory it takes `*.yaml`, `*.yml` and `*.json`, sorted; not hidden entries, nor what
/// directories in it hold. A directory is read in one pass: if it changed meanwhile, it is read again.
///
/// # Errors
/// Every file that cannot be read, is no UTF-8 or too large; a directory without any such file, or one that
/// does not come to rest.
pub fn read_policy(path: &Path) -> Result<Vec<(String, String)>, Vec<Problem>> {
    let mut seen = Fingerprint::take(path);
    for _ in 0..ATTEMPTS {
        let read = read_once(path);
        let after = Fingerprint::take(path);
        if after == seen {
            return read;
        }
        seen = after;
    }
    Err(vec![problem(path, "changes faster than it can be read")])
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, no UTF-8 or larger; said of the file.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Problem> {
    let cannot = |error: io::Error| problem(path, format!("cannot be read: {error}"));
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(problem(path, "is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > limit {
        return Err(problem(path, format!("is larger than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        problem(path, format!("is no UTF-8 text (line {line})"))
    })
}

/// The files of a policy directory, sorted by name.
pub(super) fn policy_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let policy = path.extension().is_some_and(|ext| ["yaml", "yml", "json"].iter().any(|e| ext == *e));
        if policy && !hidden {
            files.push(path);
        }
        if files.len() > MAX_FILES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} policy files")));
        }
    }
    files.sort();
    Ok(files)
}

fn read_once(path: &Path) -> Result<Vec<(String, String)>, Vec<Problem>> {
    if !path.is_dir() {
        return read_text(path, MAX_BYTES)
            .map(|text| vec![(path.display().to_string(), text)])
            .map_err(|problem| vec![problem]);
    }
    let files =
        policy_files(path).map_err(|error| vec![problem(path, format!("cannot be read: {error}"))])?;
    if files.is_empty() {
        return Err(vec![problem(path, "holds no policy: no file ends in .yaml, .yml or .json")]);
    }
    let (mut texts, mut problems, mut left) = (Vec::new(), Vec::new(), MAX_BYTES);
    for file in files {
        match read_text(&file, left) {
            Ok(text) => {
                left -= text.len() as u64;
                texts.push((file.display().to_string(), text));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(texts) } else { Err(problems) }
}

fn problem(path: &Path, message: impl Into<String>) -> Problem {
    Problem::at("", message).in_file(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(read: &[(String, String)]) -> Vec<&str> {
        read.iter().map(|(name, _)| name.rsplit('/').next().unwrap()).collect()
    }

    #[test]
    fn a_directory_gives_its_policy_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "README.md", "revision"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("nested")).unwrap();
        fs::write(dir.path().join("nested/d.yaml"), "d").unwrap();
        let read = read_policy(dir.path()).unwrap();
        assert_eq!(names(&read), ["a.yaml", "b.yml", "c.json"]);
        assert_eq!(read[0].1, "a.yaml");
    }

    #[test]
    fn a_config_map_volume_gives_each_key_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("..2026")).unwrap();
        fs::write(dir.path().join("..2026/agents.yaml"), "x").unwrap();
        symlink("..2026", dir.path().join("..data")).unwrap();
        symlink("..data/agents.yaml", dir.path().join("agents.yaml")).unwrap();
        assert_eq!(names(&read_policy(dir.path()).unwrap()), ["agents.yaml"]);
    }

    #[test]
    fn every_file_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.yaml"), b"ok\nno \xff").unwrap();
        symlink("missing", dir.path().join("b.yaml")).unwrap();
        let problems = read_policy(dir.path()).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].file.ends_with("a.yaml") && problems[0].message.contains("line 2"));
        assert!(problems[1].file.ends_with("b.yaml") && problems[1].message.contains("cannot be read"));
    }

    #[test]
    fn a_directory_without_policy_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_policy(dir.path()).unwrap_err()[0].message.contains("holds no policy"));
    }

    #[test]
    fn a_file_over_the_limit_is_refused_and_one_at_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        assert!(read_text(&file, 4).unwrap_err().message.contains("larger than 4 bytes"));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_opening_it() {
        assert!(read_text(Path::new("/dev/zero"), 5).unwrap_err().message.contains("no regular file"));
    }
}
