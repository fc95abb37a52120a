//! Follows events, for commands that show them as they come.

use std::path::Path;

use super::reader::{self, LedgerEntry, LedgerReader, ReadStep};

/// What `--ledger` names, or the newest run, read on as it grows.
pub(in crate::command) struct FollowedLedger {
    reader: LedgerReader,
    is_standard_input: bool,
}

impl FollowedLedger {
    /// # Errors
    /// There is no such file, or no run.
    pub(in crate::command) fn open(ledger: Option<&Path>) -> anyhow::Result<Self> {
        let is_standard_input = ledger.is_some_and(reader::is_standard_input);
        Ok(Self { reader: LedgerReader::open(ledger, true)?, is_standard_input })
    }

    /// The next event; none where there is none yet.
    pub(in crate::command) fn next(&mut self) -> anyhow::Result<Option<Box<LedgerEntry>>> {
        match self.reader.next()? {
            ReadStep::Entry(entry) => Ok(Some(entry)),
            ReadStep::End => Ok(None),
        }
    }

    /// The file that is read, the last of several.
    pub(in crate::command) fn name(&self) -> &str {
        self.reader.current_name().unwrap_or_default()
    }

    /// What to say of lines that were skipped.
    pub(in crate::command) fn skipped(&self) -> Vec<String> {
        self.reader.skipped()
    }

    /// Whether no more comes once there is none: standard input has an end, files grow.
    pub(in crate::command) fn ends(&self) -> bool {
        self.is_standard_input
    }
}
