//! Where a run is written down: a file of events and a file of warnings, for their owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::command::ledger::RUNS;

/// The two files of one run. Postern never removes events; a file that stayed empty goes.
pub(super) struct RunRecord {
    pub(super) events: PathBuf,
    pub(super) log: PathBuf,
}

impl RunRecord {
    /// Makes both in `runs/` of the user's state directory, named by the time and the process.
    pub(super) fn create(state: &Path) -> anyhow::Result<(Self, File, File)> {
        let directory = state.join(RUNS);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        let now = OffsetDateTime::now_utc()
            .format(format_description!("[year][month][day]T[hour][minute][second]Z"))?;
        let name = format!("{now}-{}", std::process::id());
        let record = Self {
            events: directory.join(format!("{name}.jsonl")),
            log: directory.join(format!("{name}.log")),
        };
        let open = |path: &Path| create(path).with_context(|| format!("cannot make {}", path.display()));
        let (events, log) = (open(&record.events)?, open(&record.log)?);
        Ok((record, events, log))
    }

    /// Removes files that stayed empty. Returns whether there are warnings.
    pub(super) fn close(&self) -> bool {
        keep_written(&self.events);
        keep_written(&self.log)
    }
}

fn keep_written(path: &Path) -> bool {
    let written = fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    if !written {
        // An empty file that stays is no harm.
        let _ = fs::remove_file(path);
    }
    written
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
}
