//! The tables of the ledger, their versions, and what a file has to be before anything is written to it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;

/// `application_id` of every ledger: `Post`.
pub(super) const APPLICATION: u32 = 0x506f_7374;

/// The version of the tables that this build writes, `user_version`.
pub(super) const VERSION: u32 = 1;

/// What each version adds to the one before; the first makes version 1 of an empty file.
const MIGRATIONS: [&str; VERSION as usize] = ["
CREATE TABLE starts (start BLOB PRIMARY KEY, time INTEGER NOT NULL, version TEXT NOT NULL, revision TEXT, ended INTEGER) WITHOUT ROWID;
CREATE TABLE events (
    n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, last INTEGER, start BLOB, sequence INTEGER NOT NULL, time INTEGER NOT NULL,
    count INTEGER NOT NULL, kind TEXT NOT NULL, direction TEXT NOT NULL, verdict TEXT NOT NULL, rule TEXT, session TEXT,
    trace TEXT, exchange BLOB, namespace TEXT, pod TEXT, host TEXT, port INTEGER, method TEXT, path TEXT, status INTEGER,
    provider TEXT, api TEXT, model TEXT, tool TEXT, input_sha256 TEXT, input_tokens INTEGER, output_tokens INTEGER,
    cache_read_tokens INTEGER, cache_write_tokens INTEGER, bytes INTEGER, event TEXT NOT NULL, chain BLOB, before BLOB
);
CREATE INDEX events_time ON events (time);
CREATE INDEX events_exchange ON events (exchange);
CREATE INDEX events_session ON events (session, n);
CREATE INDEX events_rule ON events (rule, n);
CREATE INDEX events_tool ON events (tool, n);
CREATE TABLE findings (
    n INTEGER NOT NULL, detector TEXT NOT NULL, kind TEXT NOT NULL, confidence TEXT NOT NULL, role TEXT,
    location TEXT NOT NULL, action TEXT NOT NULL
);
CREATE INDEX findings_n ON findings (n);
CREATE TABLE spent (
    credential TEXT PRIMARY KEY, day INTEGER NOT NULL, tokens INTEGER NOT NULL, minute TEXT NOT NULL,
    denials INTEGER NOT NULL, revision TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE evicted (
    kind TEXT NOT NULL, rule TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL, time INTEGER NOT NULL
);
"];

/// What a file of SQLite begins with, and where its header has `user_version` and `application_id` (SQLite, Database File
/// Format, section 1.3).
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER: usize = 100;

/// Checks the header of a file without SQLite, which would change the file when it closes it: a file of another program
/// or of a later version stays as it is, to the byte.
///
/// # Errors
/// The file is no ledger, or a later one.
pub(super) fn check_header(path: &Path) -> Result<(), StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::Open(path.to_owned(), error)),
    };
    let mut header = Vec::with_capacity(HEADER);
    let read = (&mut file).take(HEADER as u64).read_to_end(&mut header);
    read.map_err(|error| StoreError::Open(path.to_owned(), error))?;
    let is_being_made = path.with_file_name(format!("{}-journal", name(path))).exists();
    if header.is_empty() || is_being_made {
        // Nobody's file yet, or one whose making was interrupted: SQLite takes the torn beginning back.
        return Ok(());
    }
    let word = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_be_bytes).unwrap_or_default()
    };
    if header.len() < HEADER || !header.starts_with(MAGIC) || word(68) != APPLICATION {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    match word(60) {
        found if found > VERSION => Err(StoreError::Newer { path: path.to_owned(), found }),
        _ => Ok(()),
    }
}

/// Checks that the file has the tables and indexes of its version and nothing else: a trigger, a view, a generated column
/// or a virtual table would run what somebody else wrote.
///
/// # Errors
/// It has others, or not these.
pub(super) fn check_tables(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let wanted = Connection::open_in_memory()?;
    for statements in MIGRATIONS.iter().take(found as usize) {
        wanted.execute_batch(statements)?;
    }
    if definitions(&wanted)? == definitions(connection)? {
        return Ok(());
    }
    Err(StoreError::Altered(path.to_owned()))
}

/// The definition of each table and index, but for the statistics that `ANALYZE` leaves. One more than there can be shows
/// that there are too many.
fn definitions(connection: &Connection) -> Result<Vec<[Option<String>; 4]>, StoreError> {
    const ALL: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT IN ('sqlite_stat1', 'sqlite_stat4') \
        ORDER BY type, name LIMIT 100";
    let mut statement = connection.prepare(ALL)?;
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Brings an opened file to this version, in one transaction.
///
/// # Errors
/// The file is of a later version, or cannot be written.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found });
    }
    if found == VERSION {
        return check_tables(connection, path);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for statements in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(statements)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}
