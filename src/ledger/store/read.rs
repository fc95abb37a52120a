//! A ledger as lines of JSON, oldest first, read while it is written. The file is data of others.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::vec;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::StoreError;
use super::choose::RowFilter;
use super::schema;

/// How many rows are read at once, so that no reader holds an old state for long and keeps the WAL from being written back.
const PAGE: i64 = 512;

/// A page has no more rows once their lines have so many bytes.
const PAGE_BYTES: usize = 256 << 10;

/// The longest text that is read, in bytes, beyond which SQLite says that it is too large.
const MOST_BYTES: i32 = 16 << 20;

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// What stands in the place of a row that holds no line.
const NO_EVENT: &str = "{}";

/// The lines of a ledger. At the end it gives nothing; more may come later.
pub struct StoreLines {
    connection: Connection,
    /// The last row that was read.
    n: i64,
    /// The rows that a filter chose; none where every row is read.
    chosen: Option<vec::IntoIter<i64>>,
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
    match open_shared(path) {
        // Beside a file that nobody has open SQLite makes its own, which a read-only file system refuses.
        Err(StoreError::Sqlite(error))
            if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) && !has_wal(path) =>
        {
            prepared(Connection::open_with_flags(immutable(path), FLAGS | OpenFlags::SQLITE_OPEN_URI)?, path)
        }
        opened => opened,
    }
}

/// Opens it as one that may be written meanwhile.
fn open_shared(path: &Path) -> Result<Connection, StoreError> {
    prepared(Connection::open_with_flags(path, FLAGS)?, path)
}

/// Whether what was written last is beside the file.
fn has_wal(path: &Path) -> bool {
    let wal = path.with_file_name(format!("{}-wal", schema::name(path)));
    std::fs::metadata(wal).is_ok_and(|wal| wal.len() > 0)
}

/// The name of a file that does not change while it is read (SQLite, Uniform Resource Identifiers).
fn immutable(path: &Path) -> PathBuf {
    let mut uri = OsString::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.push(format!("%{byte:02x}")),
            _ => uri.push(OsStr::from_bytes(&[byte])),
        }
    }
    uri.push("?immutable=1");
    uri.into()
}

/// Sets what holds for every reader, and checks the tables.
fn prepared(connection: Connection, path: &Path) -> Result<Connection, StoreError> {
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
        Self::filtered(path, &RowFilter::default())
    }

    /// Opens a ledger to read the rows that may fit a filter.
    ///
    /// # Errors
    /// The file is no ledger, of a later version, altered or damaged.
    pub fn filtered(path: &Path, filter: &RowFilter) -> Result<Self, StoreError> {
        let connection = open(path)?;
        let chosen = filter.choose(&connection)?.map(Vec::into_iter);
        Ok(Self { connection, n: i64::MIN, chosen, page: Vec::new(), given: 0 })
    }

    fn next_page(&mut self) -> rusqlite::Result<()> {
        self.given = 0;
        self.page.clear();
        if let Some(chosen) = &mut self.chosen {
            let mut statement = self.connection.prepare_cached("SELECT event FROM events WHERE n = ?1")?;
            while self.page.len() < PAGE_BYTES {
                let Some(n) = chosen.next() else { break };
                let mut rows = statement.query([n])?;
                // Retention may have taken it away meanwhile.
                if let Some(row) = rows.next()? {
                    push(&mut self.page, row.get_ref(0)?);
                }
            }
            return Ok(());
        }
        let all = "SELECT n, event FROM events WHERE n > ?1 ORDER BY n LIMIT ?2";
        let mut statement = self.connection.prepare_cached(all)?;
        let mut rows = statement.query(params![self.n, PAGE])?;
        while self.page.len() < PAGE_BYTES
            && let Some(row) = rows.next()?
        {
            self.n = row.get(0)?;
            push(&mut self.page, row.get_ref(1)?);
        }
        Ok(())
    }
}

fn push(page: &mut Vec<u8>, value: ValueRef<'_>) {
    let line = value.as_str().ok().filter(|line| memchr::memchr(b'\n', line.as_bytes()).is_none());
    page.extend_from_slice(line.unwrap_or(NO_EVENT).as_bytes());
    page.push(b'\n');
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

#[cfg(test)]
pub(super) mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A ledger with so many lines of so many bytes.
    pub(in crate::ledger::store) fn with_lines(count: u32, length: u32) -> (TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let mut file = Connection::open(&path).unwrap();
        schema::migrate(&mut file, &path).unwrap();
        let all = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1) \
            INSERT INTO events (n, id, sequence, time, count, kind, direction, verdict, event) \
            SELECT n, randomblob(16), n, n, 1, '', '', '', substr(hex(zeroblob(?2)), 1, ?2) FROM numbers";
        assert_eq!(file.execute(all, params![count, length]).unwrap(), count as usize);
        (place, path)
    }

    #[test]
    fn long_lines_are_read_few_at_a_time() {
        let (_place, path) = with_lines(40, 100 << 10);
        let mut lines = StoreLines::open(&path).unwrap();
        let (mut buffer, mut count) = (vec![0; 64 << 10], 0);
        loop {
            let read = lines.read(&mut buffer).unwrap();
            assert!(lines.page.len() < PAGE_BYTES + (101 << 10), "{}", lines.page.len());
            count += memchr::memchr_iter(b'\n', &buffer[..read]).count();
            if read == 0 {
                break;
            }
        }
        assert_eq!(count, 40);
    }
}
