//! Finds one event by its id, among those of all runs where no ledger is named.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::reader::{self, LedgerEntry, LedgerReader, ReadStep};
use crate::command::private_directory::PrivateDirectory;
use crate::event::{Event, Id};
use crate::ledger::store::RowFilter;

/// How much of standard input is kept while an event is looked for, in bytes.
const MOST_SPOOLED: u64 = 4 << 30;

/// An event that was asked for.
pub(in crate::command) struct FoundEvent {
    pub(in crate::command) entry: LedgerEntry,
    /// Whether the event stands for several, of which the one that was asked for is one.
    pub(super) is_counted: bool,
    /// The files that the event was searched in.
    pub(super) files: Vec<PathBuf>,
    pub(super) skipped: Vec<String>,
    /// The copy of standard input, kept until it is read again.
    _spool: Option<PrivateDirectory>,
}

/// Finds an event in the files that `--ledger` names, else in those of the runs, the newest first.
///
/// # Errors
/// The id is no UUID, or there is no such event.
pub(in crate::command) fn find(id: &str, ledger: Option<&Path>) -> anyhow::Result<FoundEvent> {
    let id = Id::parse(id).with_context(|| {
        format!("{id:?} is no id of an event, such as 01a2008d-747b-7101-8101-010101010101")
    })?;
    let mut spool = None;
    let places: Vec<Vec<PathBuf>> = match ledger {
        Some(path) if reader::is_standard_input(path) => {
            let place = PrivateDirectory::make()?;
            let file = place.path().join(reader::COPY_OF_INPUT);
            io::copy(&mut io::Read::take(io::stdin(), MOST_SPOOLED), &mut File::create(&file)?)
                .context("standard input cannot be read")?;
            spool = Some(place);
            vec![vec![file]]
        }
        Some(path) => vec![reader::listed(path)?],
        None => reader::runs()?.into_iter().map(|file| vec![file]).collect(),
    };
    match (find_in(places, id)?, ledger) {
        (Some(found), _) => Ok(FoundEvent { _spool: spool, ..found }),
        (None, Some(path)) => bail!("no event {id} in {}", reader::shown(path)),
        (None, None) => {
            bail!("no event {id} in any run of yours; --ledger names another file, directory, or `-`")
        }
    }
}

/// Finds the event with this id in any of the places; where none has it, the first event that counted it.
fn find_in(places: Vec<Vec<PathBuf>>, id: Id) -> anyhow::Result<Option<FoundEvent>> {
    let mut counted = None;
    for files in places {
        let Some(found) = find_here(&files, id)? else { continue };
        if !found.is_counted {
            return Ok(Some(found));
        }
        counted.get_or_insert(found);
    }
    Ok(counted)
}

/// Finds the event with this id in some files, else one that counts it. A ledger is asked for the one, then for the other;
/// lines are read once.
fn find_here(files: &[PathBuf], id: Id) -> anyhow::Result<Option<FoundEvent>> {
    let exact = RowFilter { id: Some(id), ..RowFilter::default() };
    let counting = RowFilter { counted_at: Some(id.time()), ..RowFilter::default() };
    for filter in [exact, counting] {
        let mut reader = LedgerReader::filtered(files.to_vec(), filter)?;
        if let Some((entry, is_counted)) = find_entry(&mut reader, id)? {
            let (files, skipped) = (files.to_vec(), reader.skipped());
            return Ok(Some(FoundEvent { entry, is_counted, files, skipped, _spool: None }));
        }
        if !reader.has_store() {
            break;
        }
    }
    Ok(None)
}

/// Finds the event with this id, else one that counts it among others. Returns whether it is such a count.
fn find_entry(reader: &mut LedgerReader, id: Id) -> anyhow::Result<Option<(LedgerEntry, bool)>> {
    let mut counted = None;
    while let ReadStep::Entry(entry) = reader.next()? {
        if entry.event.id == id {
            return Ok(Some((*entry, false)));
        }
        if counts(&entry.event, id) {
            counted = Some((*entry, true));
        }
    }
    Ok(counted)
}

/// Whether an event stands for several between whose first and last the id was made: a UUIDv7 begins with its time.
fn counts(event: &Event, id: Id) -> bool {
    event.count > 1 && event.time <= id.time() && event.last.is_some_and(|last| id.time() <= last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Kind, Timestamp};

    #[test]
    fn an_id_is_counted_where_it_was_made_between_the_first_and_the_last() {
        let start = 1_795_305_600_000;
        let at = Timestamp::from_unix_millis;
        let id = |millis: u64| Id::new(at(millis), [7; 10]);
        let event = |count: u64| {
            let event = Event::new(id(start), Kind::Connection, Decision::of(Verdict::Deny));
            Event { count, last: Some(at(start + 1_000)), ..event }
        };
        assert!(counts(&event(2), id(start)) && counts(&event(2), id(start + 1_000)));
        assert!(!counts(&event(2), id(start + 1_001)) && !counts(&event(2), id(start - 1)));
        assert!(!counts(&event(1), id(start)));
    }
}
