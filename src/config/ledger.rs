//! The ledger's file, and how much of it is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value;
use crate::file_path::FilePath;
use crate::ledger::store::{LEAST_BYTES, StoreSettings};
use crate::problem::Problem;

/// Settings of `ledger`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LedgerSettings {
    /// The file of SQLite; its directory must be there.
    pub path: FilePath,
    /// How long an event is kept.
    #[serde(deserialize_with = "value::duration", serialize_with = "value::show_duration")]
    pub max_age: Duration,
    /// How large file and WAL may become together, in bytes.
    #[serde(deserialize_with = "value::size")]
    pub max_bytes: u64,
    pub on_pressure: OnPressure,
}

/// `ledger.onPressure`: what happens while the file cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnPressure {
    /// Events wait, and after 5 seconds requests are refused.
    #[default]
    Block,
    /// Events are dropped and counted.
    Drop,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            path: FilePath::default(),
            max_age: Duration::from_secs(7 * 24 * 60 * 60),
            max_bytes: 1 << 30,
            on_pressure: OnPressure::Block,
        }
    }
}

impl LedgerSettings {
    /// What is wrong with them.
    pub(super) fn mistakes(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.path.as_os_str().is_empty() {
            problems.push(Problem::at("ledger.path", "is required: the file that events are written to"));
        }
        if self.max_bytes < LEAST_BYTES {
            problems
                .push(Problem::at("ledger.maxBytes", format!("must be {LEAST_BYTES} bytes (8MiB) or more")));
        }
        problems
    }

    /// What the store needs of them.
    pub fn store(&self) -> StoreSettings {
        StoreSettings {
            path: self.path.to_path_buf(),
            max_age: self.max_age,
            max_bytes: self.max_bytes,
            blocks: self.on_pressure == OnPressure::Block,
        }
    }
}
