//! What tests of searches share.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Packs a text as `gzip` does.
pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut process = Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    process.wait_with_output().unwrap().stdout
}
