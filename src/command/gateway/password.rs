//! Files that hold a password on one line.

use std::path::Path;

use crate::config::source;
use crate::problem::Problem;

/// A password file is one line.
const MAX_BYTES: u64 = 4 << 10;

/// Reads the line, without its break.
pub(super) fn read(file: &Path) -> Result<String, Problem> {
    let text = source::read_text(file, MAX_BYTES)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
