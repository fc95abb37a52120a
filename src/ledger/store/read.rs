//! A ledger as lines of JSON, oldest first, read while it is written. The file is data of others.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, params};

use super::StoreError;
use super::schema;

/// How many rows are read at once, so that no reader holds an old state for long and keeps the WAL from being written back.
const PAGE: i64 = 512;

/// The longest text that is read, in bytes, beyond which SQLite says that it is too large.
const MOST_BYTES: i32 = 16 << 20;

/// What stands in the place of a row that holds no line.
const NO_EVENT: &str = "{}";

/// The lines of a ledger. At the end it gives nothing; more may come later.
pub struct StoreLines {
    connection: Connection,
    /// The last row that was read.
    n: i64,
    page: Vec<u8>,
    /// How much of the page was given.
    given: usize,
}

/// Whether a file begins as one of SQLite does.
///
/// # Errors
/// The file cannot be read.
pub fn is_store(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    std::fs::File::open(path)?.take(16).read_to_end(&mut magic)?;
    Ok(magic == schema::MAGIC)
}

/// Opens a ledger to read it: its tables are those of its version, so that nothing in the file runs.
///
/// # Errors
/// The file is no ledger, of a later version, altered or damaged.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    schema::check_header(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_BYTES)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    schema::check_tables(&connection, path)?;
    Ok(connection)
}

impl StoreLines {
    /// Opens a ledger to read it.
    ///
    /// # Errors
    /// The file is no ledger, of a later version, or damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open(path)?;
        Ok(Self { connection, n: i64::MIN, page: Vec::new(), given: 0 })
    }

    fn next_page(&mut self) -> rusqlite::Result<()> {
        (self.given, self.page) = (0, Vec::new());
        let chosen = "SELECT n, event FROM events WHERE n > ?1 ORDER BY n LIMIT ?2";
        let mut statement = self.connection.prepare_cached(chosen)?;
        let mut rows = statement.query(params![self.n, PAGE])?;
        while let Some(row) = rows.next()? {
            self.n = row.get(0)?;
            let line = row.get_ref(1)?.as_str().ok().filter(|line| !line.contains('\n'));
            self.page.extend_from_slice(line.unwrap_or(NO_EVENT).as_bytes());
            self.page.push(b'\n');
        }
        Ok(())
    }
}

impl Read for StoreLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.page.len() {
            self.next_page().map_err(|error| io::Error::other(StoreError::from(error)))?;
        }
        let rest = self.page.get(self.given..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}
