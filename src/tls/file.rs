//! Reads certificate and key files, bounded, and wipes them from memory afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use crate::problem::Problem;

/// A bundle of every public root is near 250 KiB.
const LIMIT: u64 = 4 << 20;

/// What is wrong with a file, in words.
#[derive(Debug)]
pub(super) struct Flaw {
    reason: String,
    /// Why it could not be read, where that is it.
    unread: Option<io::ErrorKind>,
}

impl From<String> for Flaw {
    fn from(reason: String) -> Self {
        Self { reason, unread: None }
    }
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        let Problem { message, unread, .. } =
            Problem::unread("", format!("it cannot be read ({error})"), &error);
        Self { reason: message, unread }
    }
}

impl Flaw {
    /// The same as a problem of the settings at `path`, which name the file.
    pub(super) fn at(self, path: impl Into<String>, file: &Path) -> Problem {
        let message = format!("{}: {}", file.display(), self.reason);
        Problem { unread: self.unread, ..Problem::at(path, message) }
    }
}

/// Reads a text file of at most 4 MiB.
pub(super) fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::Error::other("it is larger than 4 MiB, which no certificate file is"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(io::Error::other(
            "it is not text: expected PEM; `openssl x509 -inform DER` turns DER into PEM",
        )),
    }
}
