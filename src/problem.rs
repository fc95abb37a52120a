//! One thing wrong in what a user wrote, and where it stands.

use std::fmt;
use std::io;

/// A problem in a policy, a settings file or a certificate, worded so that its author can mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it stands in, as the user named it; empty where there is none.
    pub file: String,
    /// Line and column, both from 1, where the parser knows them.
    pub position: Option<(usize, usize)>,
    /// The text of the field and a byte of it, where the problem is about that part.
    pub part: Option<Box<(String, usize)>>,
    /// The field, in the form `spec.tools[2].when.any[0]`; empty for the whole document.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// Why the file could not be read, where that is the problem: the document in it may be in order.
    pub unread: Option<io::ErrorKind>,
    /// Whether a later version may know what it says: it is a key that this one has never heard of, or a document that
    /// the operator has accepted.
    pub is_unknown: bool,
}

impl Problem {
    /// A problem at a field.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        Self {
            file: String::new(),
            position: None,
            part: None,
            path,
            message,
            unread: None,
            is_unknown: false,
        }
    }

    /// A problem at a field whose file could not be read.
    pub fn unread(path: impl Into<String>, message: impl Into<String>, error: &io::Error) -> Self {
        // What this crate says of a file's content has the kind `Other`, which no error of the system has.
        let unread = Some(error.kind()).filter(|kind| *kind != io::ErrorKind::Other);
        Self { unread, ..Self::at(path, message) }
    }

    /// The same problem, said of a file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }
}

/// Whether a file that cannot be read for this reason may be there and in order: descriptors or memory have run out, or
/// a disk fails. Nothing may be decided from its absence.
pub fn is_passing(kind: io::ErrorKind) -> bool {
    !matches!(
        kind,
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::Other
    )
}

impl fmt::Display for Problem {
    /// `policy.yaml:12:5: spec.destinations[0].action: expected Inspect, Tunnel or Deny`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if let Some((line, column)) = self.position {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
