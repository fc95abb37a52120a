//! Reads files and directories whole: bounded, and never half of one version and half of another.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zeroize::Zeroizing;

use super::directory::policy_files;
use super::watch::Fingerprint;
use crate::digest::sha256_hex;
use crate::pod::{COMPRESSED_KEY, NEWEST_KEY, NEWEST_REVISION_KEY, REVISION_KEY, SYNCED_AT_KEY};
use crate::problem::{Problem, is_passing};
use crate::wire::coding::{self, Decoder, Wrote};

/// Bounds on one policy source; what is compressed counts as what it becomes.
const MAX_BYTES: u64 = 16 << 20;
/// A revision, or a time.
const LINE_BYTES: u64 = 256;

/// How often a directory that changes while it is read is read again.
const ATTEMPTS: usize = 5;

/// A policy source, read whole.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// The texts of its files, with their names as a user would write them.
    pub files: Vec<(String, String)>,
    /// What the operator calls the documents that it wrote here.
    pub revision: Option<String>,
    /// When the operator last vouched for them.
    pub synced_at: Option<SystemTime>,
    /// The same policies for gateways that know all that they say, where others could not read them.
    pub newest: Newest,
}

/// Policies in the newest form, where the operator writes two.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Newest {
    pub files: Vec<(String, String)>,
    pub revision: Option<String>,
}

/// Reads a policy source, a file or a directory. Of a directory it takes `*.yaml`, `*.yml`, `*.json`, sorted, and
/// what the operator adds to those; not hidden entries, nor what directories in it hold. A directory is read in one
/// pass: if it changed meanwhile, it is read again.
///
/// # Errors
/// Every file that cannot be read, is no UTF-8 or too large; a directory without any policy and without the operator's
/// revision, or one that does not come to rest.
pub fn read_policy(path: &Path) -> Result<PolicySource, Vec<Problem>> {
    let mut seen = Fingerprint::take(path);
    for _ in 0..ATTEMPTS {
        let read = read_once(path);
        let after = Fingerprint::take(path);
        if after == seen && after != Fingerprint::Unlisted {
            return read;
        }
        seen = after;
    }
    let unread = Some(io::ErrorKind::ResourceBusy);
    Err(vec![Problem { unread, ..problem(path, "changes faster than it can be read") }])
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, no UTF-8 or larger; said of the file.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Problem> {
    text(path, read_bytes(path, limit)?)
}

/// A digest of the names and contents of these files; equal ones mean that nothing has changed. A file that is missing
/// or cannot be a part of the settings has no content.
///
/// # Errors
/// A file that may be there and cannot be read now: nobody knows whether it has changed.
pub fn digest(files: &[PathBuf]) -> Result<String, Problem> {
    let mut contents = String::new();
    for file in files {
        let content = match read_bytes(file, MAX_BYTES) {
            Ok(bytes) => sha256_hex(&Zeroizing::new(bytes)),
            Err(problem) if problem.unread.is_some_and(is_passing) => return Err(problem),
            Err(_) => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(contents, "{:?} {content}", file.as_os_str());
    }
    Ok(sha256_hex(contents.as_bytes()))
}

fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    let cannot = |error: io::Error| unreadable(path, &error);
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(problem(path, "is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > limit {
        return Err(problem(path, format!("is larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        problem(path, format!("is no UTF-8 text (line {line})"))
    })
}

fn read_once(path: &Path) -> Result<PolicySource, Vec<Problem>> {
    let mut source = PolicySource::default();
    if !path.is_dir() {
        let text = read_text(path, MAX_BYTES).map_err(|problem| vec![problem])?;
        source.files.push((path.display().to_string(), text));
        return Ok(source);
    }
    let files = policy_files(path).map_err(|error| vec![unreadable(path, &error)])?;
    let mut left = MAX_BYTES;
    let problems: Vec<_> = files.iter().filter_map(|file| source.take(file, &mut left).err()).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    if source.files.is_empty() && source.revision.is_none() {
        return Err(vec![problem(path, "holds no policy: no file ends in .yaml, .yml or .json")]);
    }
    Ok(source)
}

impl PolicySource {
    /// Reads a file of a directory, of which so many bytes may still be read.
    fn take(&mut self, file: &Path, left: &mut u64) -> Result<(), Problem> {
        match file.file_name().and_then(|name| name.to_str()) {
            Some(REVISION_KEY) => self.revision = Some(one_line(file)?),
            Some(SYNCED_AT_KEY) => self.synced_at = Some(moment(file)?),
            Some(COMPRESSED_KEY) => {
                let bytes = decompressed(file, *left)?;
                *left -= bytes.len() as u64;
                self.files.extend(separated(file, &text(file, bytes)?));
            }
            // Read besides what it stands for, so that either may be as large as one alone.
            Some(NEWEST_KEY) => {
                let bytes = decompressed(file, MAX_BYTES)?;
                self.newest.files.extend(separated(file, &text(file, bytes)?));
            }
            Some(NEWEST_REVISION_KEY) => self.newest.revision = Some(one_line(file)?),
            Some(_) | None => {
                let bytes = read_bytes(file, *left)?;
                *left -= bytes.len() as u64;
                self.files.push((file.display().to_string(), text(file, bytes)?));
            }
        }
        Ok(())
    }
}

/// The documents of a text that holds many, each a text with its number: what one text may hold is bounded for each of
/// them, not for all. A text without any document stays what it is, and is a mistake where it is parsed.
fn separated(file: &Path, text: &str) -> Vec<(String, String)> {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        // At the start of a line nothing else in YAML is written so, in no text of several lines either.
        if line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            documents.push(String::new());
        }
        if let Some(document) = documents.last_mut() {
            document.push_str(line);
        }
    }
    documents.retain(|document| !is_blank(document));
    if documents.is_empty() {
        return vec![(file.display().to_string(), text.to_owned())];
    }
    let named = |(number, document)| (format!("{} (document {number})", file.display()), document);
    (1..).zip(documents).map(named).collect()
}

/// Whether there is nothing in a document: its marker and comments alone.
fn is_blank(document: &str) -> bool {
    let content = document.strip_prefix("---").unwrap_or(document);
    content.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn one_line(file: &Path) -> Result<String, Problem> {
    let text = read_text(file, LINE_BYTES)?;
    let line = text.trim();
    if line.is_empty() || line.contains(char::is_control) {
        return Err(problem(file, "expected one line, as the operator writes it"));
    }
    Ok(line.to_owned())
}

fn moment(file: &Path) -> Result<SystemTime, Problem> {
    let line = one_line(file)?;
    let expected = |_| problem(file, format!("expected a time like 2026-11-22T10:00:00Z, found {line:?}"));
    OffsetDateTime::parse(&line, &Rfc3339).map(SystemTime::from).map_err(expected)
}

/// Undoes gzip, as far as `limit` bytes of output.
fn decompressed(file: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    let compressed = read_bytes(file, MAX_BYTES)?;
    let wrong = |error: coding::CodingError| match error {
        coding::CodingError::TooLarge => problem(file, format!("becomes more than {limit} bytes")),
        other @ (coding::CodingError::Corrupt
        | coding::CodingError::Truncated
        | coding::CodingError::Trailing
        | coding::CodingError::Window
        | coding::CodingError::Dictionary) => problem(file, format!("is no gzip file: {other}")),
    };
    let limits = coding::Limits { decoded_bytes: limit, ..coding::Limits::default() };
    let decoder = Decoder::for_header("gzip", limits).ok().flatten();
    let mut decoder = decoder.ok_or_else(|| problem(file, "cannot be decompressed by this build"))?;
    let (mut input, mut output) = (compressed.as_slice(), Vec::new());
    while decoder.write(&mut input, &mut output).map_err(wrong)? == Wrote::Full {}
    decoder.finish().map_err(wrong)?;
    Ok(output)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::unread("", format!("cannot be read: {error}"), error).in_file(path.display().to_string())
}

fn problem(path: &Path, message: impl Into<String>) -> Problem {
    Problem::at("", message).in_file(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(read: &PolicySource) -> Vec<&str> {
        read.files.iter().map(|(name, _)| name.rsplit('/').next().unwrap()).collect()
    }

    #[test]
    fn a_directory_gives_its_policy_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "README.md"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("nested")).unwrap();
        fs::write(dir.path().join("nested/d.yaml"), "d").unwrap();
        let read = read_policy(dir.path()).unwrap();
        assert_eq!(names(&read), ["a.yaml", "b.yml", "c.json"]);
        assert_eq!(read.files[0].1, "a.yaml");
        assert_eq!((read.revision, read.synced_at), (None, None));
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

    /// `gzip.compress(b"kind: EgressPolicy\n---\n", mtime=0)` of Python.
    const COMPRESSED: &[u8] = &[
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0xce, 0xcc, 0x4b, 0xb1, 0x52, 0x70,
        0x4d, 0x2f, 0x4a, 0x2d, 0x2e, 0x0e, 0xc8, 0xcf, 0xc9, 0x4c, 0xae, 0xe4, 0xd2, 0xd5, 0xd5, 0xe5, 0x02,
        0x00, 0x81, 0x54, 0xbd, 0xe7, 0x17, 0x00, 0x00, 0x00,
    ];

    fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, content)| fs::write(dir.path().join(name), content).unwrap());
        dir
    }

    fn refusal(files: &[(&str, &[u8])]) -> String {
        let problems = read_policy(directory(files).path()).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    }

    #[test]
    fn what_the_operator_writes_is_read_with_its_documents() {
        let dir = directory(&[
            ("namespace-a.json", b"{}"),
            (COMPRESSED_KEY, COMPRESSED),
            (REVISION_KEY, b"sha256:0123456789abcdef\n"),
            (SYNCED_AT_KEY, b"1970-01-01T01:00:00.5+01:00"),
            ("settings", b"not looked at"),
        ]);
        let read = read_policy(dir.path()).unwrap();
        assert_eq!(names(&read), ["namespace-a.json", "policies.yaml.gz (document 1)"]);
        assert_eq!(read.files[1].1, "kind: EgressPolicy\n");
        assert_eq!(read.revision.as_deref(), Some("sha256:0123456789abcdef"));
        assert_eq!(read.synced_at, Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(500)));
    }

    #[test]
    fn an_operators_directory_may_hold_no_policy() {
        let read = read_policy(directory(&[(REVISION_KEY, b"sha256:00")]).path()).unwrap();
        assert_eq!((names(&read).len(), read.revision.as_deref()), (0, Some("sha256:00")));
    }

    #[test]
    fn documents_are_told_apart_by_their_markers_alone() {
        let text = "# all\n--- # one\na: |\n  ---\n---x: y\n---\n\n---\r\nb: 1\n---";
        let found = separated(Path::new("p"), text);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["--- # one\na: |\n  ---\n---x: y\n", "---\r\nb: 1\n"]);
        assert_eq!(found[1].0, "p (document 2)");
        assert_eq!(separated(Path::new("p"), "---\n"), [("p".to_owned(), "---\n".to_owned())]);
    }

    #[test]
    fn a_time_or_a_revision_that_is_none_is_a_problem() {
        assert!(
            refusal(&[("a.json", b"{}"), (SYNCED_AT_KEY, b"yesterday")]).contains("expected a time like")
        );
        assert!(refusal(&[(REVISION_KEY, b"\n")]).contains("expected one line"));
        assert!(refusal(&[(REVISION_KEY, &[b'x'; 300])]).contains("larger than 256 bytes"));
    }

    #[test]
    fn what_does_not_decompress_or_becomes_too_much_is_a_problem() {
        let truncated = &COMPRESSED[..COMPRESSED.len() - 4];
        assert!(refusal(&[(COMPRESSED_KEY, truncated)]).contains("is no gzip file"));
        assert!(refusal(&[(COMPRESSED_KEY, b"kind: EgressPolicy")]).contains("is no gzip file"));
        let dir = directory(&[(COMPRESSED_KEY, COMPRESSED)]);
        let bomb = decompressed(&dir.path().join(COMPRESSED_KEY), 10).unwrap_err();
        assert!(bomb.message.contains("becomes more than 10 bytes"), "{bomb}");
    }

    #[test]
    fn a_digest_tells_contents_and_absence_apart() {
        let dir = directory(&[("a", b"1"), ("b", b"1")]);
        let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
        let all = digest(&[a.clone(), b.clone()]);
        assert_eq!(all, digest(&[a.clone(), b.clone()]));
        assert_ne!(all, digest(&[a.clone(), c]));
        fs::write(&b, "2").unwrap();
        assert_ne!(all, digest(&[a, b]));
        assert!(all.is_ok());
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
