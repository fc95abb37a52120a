//! The ledger's file, and how much of it is kept.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value;
use crate::file_path::FilePath;
use crate::ledger::store::{LEAST_BYTES, StoreSettings};
use crate::pod::LEDGER_DIRECTORY;
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

    /// Whether the file is in the volume that injected pods have for it.
    pub fn is_in_a_pods_volume(&self) -> bool {
        self.path.parent() == Some(Path::new(LEDGER_DIRECTORY))
    }

    /// The same in a pod whose volume was made for so many bytes: kubelet ends a pod whose volume is over its limit.
    #[must_use]
    pub fn fitting(mut self, bytes: Option<u64>) -> Self {
        if let Some(bytes) = bytes.filter(|_| self.is_in_a_pods_volume()) {
            self.max_bytes = self.max_bytes.min(bytes.max(LEAST_BYTES));
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    fn in_file(path: &str) -> LedgerSettings {
        LedgerSettings { path: path.into(), ..LedgerSettings::default() }
    }

    #[test]
    fn in_a_pod_the_ledger_is_never_larger_than_its_volume_was_made_for() {
        let settings = in_file("/var/lib/postern/ledger.db");
        assert_eq!(settings.clone().fitting(Some(256 << 20)).max_bytes, 256 << 20);
        assert_eq!(settings.clone().fitting(Some(2 << 30)).max_bytes, 1 << 30);
        assert_eq!(settings.fitting(None).max_bytes, 1 << 30);
        let elsewhere = in_file("/data/ledger.db");
        assert_eq!(elsewhere.fitting(Some(256 << 20)).max_bytes, 1 << 30);
    }
}
