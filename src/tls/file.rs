//! Reads certificate and key files, bounded, and wipes them from memory afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

/// A bundle of every public root is near 250 KiB.
const LIMIT: u64 = 4 << 20;

/// Reads a text file of at most 4 MiB.
pub(super) fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::Error::other("it is larger than 4 MiB, which no certificate file is"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(io::Error::other("it is not text: expected PEM; `openssl x509 -inform DER` turns DER into PEM")),
    }
}
