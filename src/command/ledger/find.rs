//! Finds one event by its id, among those of all runs where no ledger is named.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Entry;
use super::source::{self, Passed, Reading, Step};
use crate::command::private_directory::PrivateDirectory;
use crate::event::Read;

/// How much of standard input is kept while an event is looked for, in bytes.
const MOST_SPOOLED: u64 = 4 << 30;

/// An event that was asked for.
pub(in crate::command) struct Found {
    pub(in crate::command) entry: Entry,
    /// It stands for several, and what was asked for is one of them.
    pub(super) is_counted: bool,
    /// The files that it was found in.
    pub(super) files: Vec<PathBuf>,
    pub(super) passed: Vec<Passed>,
    /// Standard input, as long as it is read again.
    _spool: Option<PrivateDirectory>,
}

/// Finds an event in what `--ledger` names, else in the runs, the newest first.
///
/// # Errors
/// The id is none, or there is no such event.
pub(in crate::command) fn find(id: &str, ledger: Option<&Path>) -> anyhow::Result<Found> {
    let id = uuid::Uuid::try_parse(id).ok().with_context(|| {
        format!("{id:?} is no id of an event, such as 01a2008d-747b-7101-8101-010101010101")
    })?;
    let mut spool = None;
    let places: Vec<Vec<PathBuf>> = match ledger {
        Some(path) if source::is_standard_input(path) => {
            let place = PrivateDirectory::make()?;
            let file = place.path().join("events.jsonl");
            io::copy(&mut io::Read::take(io::stdin(), MOST_SPOOLED), &mut File::create(&file)?)
                .context("standard input cannot be read")?;
            spool = Some(place);
            vec![vec![file]]
        }
        Some(path) => vec![source::listed(path)?],
        None => source::runs()?.into_iter().map(|file| vec![file]).collect(),
    };
    match (look_in(places, id)?, ledger) {
        (Some(found), _) => Ok(Found { _spool: spool, ..found }),
        (None, Some(path)) => bail!("no event {id} in {}", path.display()),
        (None, None) => {
            bail!("no event {id} in any run of yours; --ledger names another file, directory, or `-`")
        }
    }
}

/// The event with this id from whichever place; only where none has it, the first one among which it was counted.
fn look_in(places: Vec<Vec<PathBuf>>, id: uuid::Uuid) -> anyhow::Result<Option<Found>> {
    let mut counted = None;
    for files in places {
        let mut reading = Reading::of(files.clone(), false)?;
        if let Some((entry, is_counted)) = look(&mut reading, id)? {
            let found = Found { entry, is_counted, files, passed: reading.passed, _spool: None };
            if !is_counted {
                return Ok(Some(found));
            }
            counted.get_or_insert(found);
        }
    }
    Ok(counted)
}

/// The event with this id, else one that counts refusals among which it was.
fn look(reading: &mut Reading, id: uuid::Uuid) -> anyhow::Result<Option<(Entry, bool)>> {
    let mut counted = None;
    while let Step::Event(entry) = reading.next()? {
        if uuid::Uuid::try_parse(&entry.event.id).is_ok_and(|other| other == id) {
            return Ok(Some((*entry, false)));
        }
        if counts(&entry.event, id) {
            counted = Some((*entry, true));
        }
    }
    Ok(counted)
}

/// Whether an event stands for several between whose first and last the id was made: a UUIDv7 begins with its time.
fn counts(event: &Read, id: uuid::Uuid) -> bool {
    let millis = |text: &str| {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        u64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
    };
    let made = id.as_u64_pair().0 >> 16;
    let first = millis(&event.time);
    let last = event.last.as_deref().and_then(millis);
    event.count.unwrap_or(1) > 1
        && first.is_some_and(|first| first <= made)
        && last.is_some_and(|last| made <= last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_counted_where_it_was_made_between_the_first_and_the_last() {
        let event = |count: u64| {
            let event = json!({
                "apiVersion": "postern.dev/event/v1", "id": "x", "count": count,
                "time": "2026-11-22T00:00:00.000Z", "last": "2026-11-22T00:00:01.000Z",
            });
            Read::line(event.to_string().as_bytes()).unwrap()
        };
        let id = |millis: u64| uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid();
        let start = 1_795_305_600_000;
        assert!(counts(&event(2), id(start)) && counts(&event(2), id(start + 1_000)));
        assert!(!counts(&event(2), id(start + 1_001)) && !counts(&event(2), id(start - 1)));
        assert!(!counts(&event(1), id(start)));
    }
}
