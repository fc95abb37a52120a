//! A value in a file: one of a mounted Secret volume, or one that the policy names.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::fetch::{Fetch, Unavailable};
use crate::secret::GREATEST;

/// Reads a regular file anew each time, through whatever symbolic links stand there now, so that the switch of
/// a Kubernetes volume's `..data` is seen and one read is never torn.
pub(super) struct FromFile {
    pub(super) path: PathBuf,
}

impl Fetch for FromFile {
    fn fetch(&self) -> Result<Zeroizing<Vec<u8>>, Unavailable> {
        let found = self.path.metadata().map_err(|error| Unavailable::Unreadable(error.kind()))?;
        if !found.is_file() {
            return Err(Unavailable::NotAFile); // a pipe would block the reader
        }
        let file = File::open(&self.path).map_err(|error| Unavailable::Unreadable(error.kind()))?;
        // Room for the greatest value, its newline and one byte too many: growing would leave unwiped copies.
        let room = GREATEST + 3;
        let mut value = Zeroizing::new(Vec::with_capacity(room + 1));
        file.take(room as u64)
            .read_to_end(&mut value)
            .map_err(|error| Unavailable::Unreadable(error.kind()))?;
        Ok(value)
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}
