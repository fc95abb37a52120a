//! The ledger: a file of SQLite that one thread writes and anybody may read meanwhile (ADR 0024).

mod choose;
mod evict;
mod read;
mod row;
mod rows;
mod schema;
mod spent;
mod sql;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::sink::Sink;
use super::stamp::now;
use crate::event::{Chain, Event, Id};
use crate::policy::allowance::Allowances;
pub use choose::{RowColumn, RowFilter};
use evict::Shares;
pub use read::{StoreLines, is_store};
pub use rows::{PagesCheck, RowPage, StoreRow, StoreRows};
pub use sql::{SqlError, SqlFiller, SqlSource, SqlValue};

/// How many events one transaction has at most.
const BATCH: u64 = 256;
/// How long events gather for one transaction at the latest: the ends of table and indexes are written once in each.
const GATHER: Duration = Duration::from_millis(20);
/// The size of the pages of a new file, in bytes. Of pages of 4 KiB, which hold two events each, a quarter is empty.
const PAGE_BYTES: u32 = 8 << 10;
/// How much memory SQLite has for pages (negative: in KiB), and while it checks all of them.
const CACHE: i32 = -2_000;
const CHECK_CACHE: i32 = -128;
/// How often a store that failed is tried again, and how often the age of rows is looked at.
const RETRY: Duration = Duration::from_millis(100);
const UPKEEP: Duration = Duration::from_secs(30);
/// How many bytes of WAL are written back at the latest.
const MOST_WAL: u64 = 16 << 20;
/// The smallest `ledger.maxBytes`.
pub const LEAST_BYTES: u64 = 8 << 20;

/// What the settings say of the ledger's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    pub path: PathBuf,
    /// How long an event is kept.
    pub max_age: Duration,
    /// How large file and WAL may become together, in bytes.
    pub max_bytes: u64,
    /// Whether events wait for a file that cannot be written, or are dropped and counted.
    pub blocks: bool,
}

/// How much the ledger keeps; clones share it, and it may change while the store writes.
#[derive(Debug, Clone)]
pub struct Retention(Arc<Mutex<(Duration, u64)>>);

impl Retention {
    /// Takes over `maxAge` and `maxBytes` of other settings.
    pub fn change(&self, settings: &StoreSettings) {
        *self.lock() = (settings.max_age, settings.max_bytes);
    }

    /// How long events are kept, and the most bytes of file and WAL.
    fn get(&self) -> (Duration, u64) {
        *self.lock()
    }

    /// A poisoned lock is ignored: the state is one value.
    fn lock(&self) -> MutexGuard<'_, (Duration, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a file is not used as the ledger.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path} cannot be opened: {error}; make its directory, and let this user write there", path = .0.display(), error = .1)]
    Open(PathBuf, #[source] io::Error),
    #[error("{} is no ledger of Postern and is left as it is; name another file in ledger.path", .0.display())]
    Foreign(PathBuf),
    #[error(
        "{} is a ledger of a later version ({found}, this build writes {}) and is left as it is; run that version, or \
         name another file in ledger.path",
        .path.display(),
        schema::VERSION
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("{} has tables, triggers or views that Postern did not make, and is left as it is; move it away", .0.display())]
    Altered(PathBuf),
    #[error("{} is written by another gateway; give each gateway a file of its own in ledger.path", .0.display())]
    Locked(PathBuf),
    #[error("the ledger's file is damaged and is left as it is; move it away to begin a new one ({0})")]
    Damaged(String),
    #[error("the ledger's file was removed or replaced while it was written")]
    Replaced,
    #[error("the ledger's file was emptied while it was written; a new ledger begins in it")]
    Emptied,
    #[error("the ledger's file cannot be used: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// Whether the store can be written, for readiness and for exchanges; clones share it.
#[derive(Debug, Clone, Default)]
pub struct StoreHealth(Arc<Mutex<Option<StoreFailure>>>);

/// Since when the store cannot be written, and why.
#[derive(Debug, Clone)]
pub struct StoreFailure {
    pub since: Instant,
    pub reason: String,
}

impl StoreHealth {
    /// The failure that lasts; none while the store works.
    pub fn failure(&self) -> Option<StoreFailure> {
        self.lock().clone()
    }

    fn failed(&self, error: &StoreError) {
        let mut state = self.lock();
        let since = state.as_ref().map_or_else(Instant::now, |failure| failure.since);
        *state = Some(StoreFailure { since, reason: error.to_string() });
    }

    fn works(&self) {
        *self.lock() = None;
    }

    /// A poisoned lock is ignored: the state is one value.
    fn lock(&self) -> MutexGuard<'_, Option<StoreFailure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sink. It holds the lines of the open batch until they are written.
#[derive(Debug)]
pub struct Store {
    settings: StoreSettings,
    retention: Retention,
    health: StoreHealth,
    /// None after a failure, until the file is opened again.
    file: Option<StoreFile>,
    /// Kept for as long as the store lives: whoever has it writes.
    _lock: File,
    pending: Vec<PendingRow>,
    /// When the first of them came.
    gathers_since: Option<Instant>,
    /// What limits count. It changes before the events that tell of it, so the file never has an event without its count.
    allowances: Arc<Allowances>,
    previous: Option<(Id, u64, Chain)>,
    upkeep: Instant,
    /// Whether somebody else changed the file, so that its pages are checked before it is written again.
    is_suspect: bool,
}

/// An event that is not written yet.
#[derive(Debug)]
struct PendingRow {
    event: Event,
    line: String,
    /// The chain before it; none where the event before is not here.
    before: Option<Chain>,
}

/// The open file.
#[derive(Debug)]
struct StoreFile {
    connection: Connection,
    /// Device and inode.
    identity: (u64, u64),
    /// The least length that the file has: it becomes shorter by this store's own checkpoints alone.
    length: u64,
    /// The start whose row is there.
    start: Option<Id>,
    /// How many changes of what limits count are there.
    counted: u64,
    /// Known from the first time that rows had to go.
    shares: Option<Shares>,
    /// Whether it may have pages in memory, up to 2 MiB.
    has_pages: bool,
}

impl Store {
    /// Opens the file, or makes it; its directory must be there.
    ///
    /// # Errors
    /// Why the file is not used; it is unchanged then.
    pub fn open(settings: StoreSettings, health: StoreHealth) -> Result<Self, StoreError> {
        schema::check_header(&settings.path)?;
        let lock = lock(&settings.path)?;
        let file = StoreFile::open(&settings.path)?;
        file.check_pages()?;
        let allowances = Arc::new(spent::read(&file.connection, now())?);
        let retention = Retention(Arc::new(Mutex::new((settings.max_age, settings.max_bytes))));
        Ok(Self {
            settings,
            retention,
            health,
            file: Some(file),
            _lock: lock,
            pending: Vec::new(),
            gathers_since: None,
            allowances,
            previous: None,
            upkeep: Instant::now(),
            is_suspect: false,
        })
    }

    /// What limits count, as the gateway before this one left it. The file keeps it from now on.
    pub fn allowances(&self) -> Arc<Allowances> {
        Arc::clone(&self.allowances)
    }

    /// How much is kept; changed, it holds from the next transaction on.
    pub fn retention(&self) -> Retention {
        self.retention.clone()
    }

    /// Whether limits have counted what the file does not have.
    fn is_behind(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.counted < self.allowances.changes())
    }

    /// Writes what is pending in one transaction. Where events wait for the file, it tries until that succeeds.
    fn write_pending(&mut self) -> io::Result<()> {
        loop {
            match self.try_write() {
                Ok(()) => {
                    self.let_go();
                    if self.settings.blocks && self.health.failure().is_some() {
                        tracing::warn!("the ledger can be written again");
                    }
                    self.health.works();
                    return Ok(());
                }
                Err(error) => {
                    let is_new = self.health.failure().is_none();
                    self.health.failed(&error);
                    self.file = None;
                    if !self.settings.blocks {
                        self.let_go();
                        return Err(io::Error::other(error));
                    }
                    if is_new {
                        tracing::error!(%error, "events wait for the ledger");
                    }
                    std::thread::sleep(RETRY);
                }
            }
        }
    }

    /// Nothing is pending any more.
    fn let_go(&mut self) {
        self.pending.clear();
        self.gathers_since = None;
    }

    fn try_write(&mut self) -> Result<(), StoreError> {
        let Self { settings, retention, file, pending, allowances, upkeep, is_suspect, .. } = self;
        let (max_age, max_bytes) = retention.get();
        if let Some(open) = file
            && let Err(error) = open.check_place(&settings.path)
        {
            (*file, *is_suspect) = (None, true);
            return Err(error);
        }
        let open = match file {
            Some(open) => open,
            None => {
                schema::check_header(&settings.path)?;
                let opened = StoreFile::open(&settings.path)?;
                if *is_suspect {
                    opened.check_pages()?;
                    *is_suspect = false;
                }
                file.insert(opened)
            }
        };
        open.write(pending, allowances)?;
        open.checkpoint(&settings.path, max_bytes)?;
        if upkeep.elapsed() >= UPKEEP {
            *upkeep = Instant::now();
            open.evict_old(now().unix_millis(), max_age)?;
        }
        open.evict_beyond(now().unix_millis(), most_file_bytes(max_bytes))
    }
}

impl Sink for Store {
    fn write(&mut self, event: &Event, line: &[u8]) -> io::Result<()> {
        let before = match (self.previous, event.start) {
            (Some((start, sequence, chain)), Some(now)) if start == now && sequence + 1 == event.sequence => {
                Some(chain)
            }
            (None, _) if event.sequence == 1 => Some(Chain::BEGIN),
            _ => None,
        };
        if let (Some(start), Some(chain)) = (event.start, event.chain) {
            self.previous = Some((start, event.sequence, chain));
        }
        let line = String::from_utf8(line.to_owned()).map_err(io::Error::other)?;
        self.gathers_since.get_or_insert_with(Instant::now);
        self.pending.push(PendingRow { event: event.clone(), line, before });
        if self.pending.len() as u64 >= BATCH { self.write_pending() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() && !self.is_behind() { Ok(()) } else { self.write_pending() }
    }

    fn due(&self) -> Option<Instant> {
        self.gathers_since.map(|since| since + GATHER)
    }

    fn idle(&mut self) -> io::Result<()> {
        if self.is_behind() || self.health.failure().is_some() || self.upkeep.elapsed() >= UPKEEP {
            return self.write_pending();
        }
        // The memory of a burst.
        self.pending.shrink_to_fit();
        let Some(file) = &mut self.file else { return Ok(()) };
        file.shrink().map_err(io::Error::other)
    }

    /// Says in the file that the start has ended in order, and writes the WAL back.
    fn close(&mut self) -> io::Result<()> {
        let written = self.flush();
        if let Some(mut file) = self.file.take() {
            file.end().map_err(io::Error::other)?;
        }
        written
    }
}

/// The part of `maxBytes` that the file may have: the rest is for the WAL.
fn most_file_bytes(max_bytes: u64) -> u64 {
    max_bytes - 2 * most_wal(max_bytes)
}

/// With so many bytes the WAL is written back.
fn most_wal(max_bytes: u64) -> u64 {
    (max_bytes / 8).min(MOST_WAL)
}

/// Locks the file beside the ledger that says who writes.
fn lock(path: &Path) -> Result<File, StoreError> {
    let beside = path.with_file_name(format!("{}-lock", schema::name(path)));
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(beside);
    let lock = opened.map_err(|error| StoreError::Open(path.to_owned(), error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(StoreError::Open(path.to_owned(), error)),
    }
}

impl StoreFile {
    fn open(path: &Path) -> Result<Self, StoreError> {
        // SQLite would make it readable for all.
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        made.map_err(|error| StoreError::Open(path.to_owned(), error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // The WAL is written back by this store alone: closing would write it into a file that turned out to be damaged.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Both before the first table; the second, so that the file can become smaller.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        // In a rollback journal until the tables are there: their header is in the file itself, whatever becomes of a WAL.
        schema::migrate(&mut connection, path)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::Damaged(format!("journal mode {mode}")));
        }
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "journal_size_limit", MOST_WAL.cast_signed())?;
        let metadata = fs::metadata(path).map_err(|error| StoreError::Open(path.to_owned(), error))?;
        let identity = (metadata.dev(), metadata.ino());
        let length = metadata.len();
        Ok(Self { connection, identity, length, start: None, counted: 0, shares: None, has_pages: true })
    }

    /// Checks that the path still names the file that is open, and that nobody truncated it.
    fn check_place(&self, path: &Path) -> Result<(), StoreError> {
        match fs::metadata(path) {
            Ok(found) if (found.dev(), found.ino()) != self.identity => Err(StoreError::Replaced),
            Ok(found) if found.len() == 0 => Err(StoreError::Emptied),
            Ok(found) if found.len() < self.length => {
                Err(StoreError::Damaged("it is shorter than it was".to_owned()))
            }
            Ok(_) => schema::check_header(path),
            Err(_) => Err(StoreError::Replaced),
        }
    }

    /// Checks every page, each of which is looked at once: memory for few of them is enough.
    fn check_pages(&self) -> Result<(), StoreError> {
        self.connection.pragma_update(None, "cache_size", CHECK_CACHE)?;
        let answer: String = self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        self.connection.pragma_update(None, "cache_size", CACHE)?;
        if answer == "ok" { Ok(()) } else { Err(StoreError::Damaged(answer)) }
    }

    /// Gives the memory of its pages back: an idle gateway keeps none of a long ledger.
    fn shrink(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.has_pages) {
            self.connection.execute_batch("PRAGMA shrink_memory")?;
        }
        Ok(())
    }

    /// Writes events, and what limits count, in one transaction.
    fn write(&mut self, rows: &[PendingRow], allowances: &Allowances) -> Result<(), StoreError> {
        self.has_pages = true;
        let transaction = self.connection.transaction()?;
        let (mut start, mut added, mut insert) = (self.start, Vec::new(), row::Insert::new(&transaction)?);
        for row in rows {
            if row.event.start.is_some() && row.event.start != start {
                start = row.event.start;
                row::insert_start(&transaction, &row.event)?;
            }
            if insert.add(row)? && self.shares.is_some() {
                added.push(&row.event);
            }
        }
        drop(insert);
        let counted = spent::write(&transaction, allowances, self.counted)?;
        transaction.commit()?;
        (self.start, self.counted) = (start, counted);
        if let Some(shares) = &mut self.shares {
            added.into_iter().for_each(|event| shares.add(event));
        }
        Ok(())
    }

    /// Writes the WAL back where it is long. SQLite's own checkpoints starve while somebody reads.
    fn checkpoint(&mut self, path: &Path, max_bytes: u64) -> Result<(), StoreError> {
        let wal = path.with_file_name(format!("{}-wal", schema::name(path)));
        if fs::metadata(wal).is_ok_and(|wal| wal.len() >= most_wal(max_bytes)) {
            self.truncate_wal()?;
            self.length = fs::metadata(path).map_err(|_| StoreError::Replaced)?.len();
        }
        Ok(())
    }

    /// A reader that holds an old state keeps the WAL as it is; it is tried again with the next events.
    fn truncate_wal(&self) -> Result<(), StoreError> {
        self.connection.busy_timeout(Duration::ZERO)?;
        let outcome = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.connection.busy_timeout(Duration::from_secs(5))?;
        match outcome {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
            other => Ok(other?),
        }
    }

    fn end(&mut self) -> Result<(), StoreError> {
        // An orderly end leaves the file alone, without a WAL beside it.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        if let Some(start) = self.start {
            let ended = i64::try_from(now().unix_millis()).unwrap_or(i64::MAX);
            let set = "UPDATE starts SET ended = ?2 WHERE start = ?1";
            self.connection.execute(set, params![start.as_bytes(), ended])?;
        }
        self.truncate_wal()
    }
}

#[cfg(test)]
mod tests;
