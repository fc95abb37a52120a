//! Questions in SQL to a ledger: one statement that reads, within bounds on time, rows and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};

use super::{PendingRow, StoreError, read, row, schema};
use crate::event::{Event, Id};

/// How long a statement takes. One that takes longer would keep the WAL from being written back.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The most rows, and the most bytes of all of them.
const MOST_ROWS: usize = 10_000;
const MOST_BYTES: usize = 64 << 20;

/// How many steps of SQLite's machine come between two looks at the clock.
const STEPS: i32 = 10_000;

/// Why a statement has no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the statement was cut off after {} seconds", MOST_TIME.as_secs())]
    Time,
    #[error("the answer was cut off after {} MiB", MOST_BYTES >> 20)]
    Size,
    #[error("only one SELECT is answered: nothing is written, attached or set here")]
    Refused,
    #[error("{0}")]
    Statement(String),
}

/// A value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// A ledger, or lines that were put into the same tables.
pub struct SqlSource(Connection);

impl SqlSource {
    /// Opens a ledger.
    ///
    /// # Errors
    /// The file is no ledger, of a later version, altered or damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self(read::open(path)?))
    }

    /// Answers one statement: `begin` takes the names of its columns, `take` each row. Returns whether there are more rows
    /// than `most`.
    ///
    /// # Errors
    /// The statement is no question, is wrong, or takes too long; rows that were taken before are right.
    pub fn ask<E: From<SqlError>>(
        &mut self,
        sql: &str,
        most: usize,
        mut take: impl FnMut(&[String], Vec<SqlValue>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let begin = Instant::now();
        let bound = self.0.progress_handler(STEPS, Some(move || begin.elapsed() > MOST_TIME));
        bound.and_then(|()| self.0.authorizer(Some(authorize))).map_err(failed)?;
        let mut statement = self.0.prepare(sql).map_err(failed)?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(SqlError::Refused.into());
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([]).map_err(failed)?;
        let (mut count, mut bytes) = (0, 0);
        while let Some(row) = rows.next().map_err(failed)? {
            if count == most.min(MOST_ROWS) {
                return Ok(true);
            }
            let values = values(row, columns.len()).map_err(failed)?;
            bytes += values.iter().map(size).sum::<usize>();
            if bytes > MOST_BYTES {
                return Err(SqlError::Size.into());
            }
            take(&columns, values)?;
            count += 1;
        }
        Ok(false)
    }
}

/// Lets a statement read and reckon, and nothing else.
fn authorize(context: AuthContext<'_>) -> Authorization {
    let is_reading = matches!(
        context.action,
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive | AuthAction::Function { .. }
    );
    if is_reading { Authorization::Allow } else { Authorization::Deny }
}

fn failed(error: rusqlite::Error) -> SqlError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => SqlError::Time,
        Some(ErrorCode::AuthorizationForStatementDenied) => SqlError::Refused,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::DatabaseBusy) => {
            StoreError::from(error).into()
        }
        _ if matches!(error, rusqlite::Error::MultipleStatement) => SqlError::Refused,
        _ => SqlError::Statement(error.to_string()),
    }
}

fn values(row: &Row<'_>, count: usize) -> rusqlite::Result<Vec<SqlValue>> {
    (0..count).map(|at| row.get_ref(at).map(value)).collect()
}

/// Ids are blobs of 16 bytes and shown as everywhere else; other blobs are hex.
fn value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Text(
            Id::from_slice(bytes).map_or_else(|| crate::digest::hex(bytes), |id| id.to_string()),
        ),
    }
}

fn size(value: &SqlValue) -> usize {
    match value {
        SqlValue::Text(text) => text.len(),
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) => 8,
    }
}

/// Puts lines of events into the tables of a ledger, in a temporary file.
pub struct SqlFiller {
    connection: Connection,
    start: Option<Id>,
}

impl SqlFiller {
    /// Makes the tables in a temporary file that has no name, so that it goes with the process.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create() -> Result<Self, StoreError> {
        // SQLite's own word for such a file.
        let mut connection = Connection::open("")?;
        schema::migrate(&mut connection, Path::new("the temporary file"))?;
        connection.execute_batch("BEGIN")?;
        Ok(Self { connection, start: None })
    }

    /// Adds an event and its line; an event that is there already is left as it is.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, event: &Event, line: &str) -> Result<(), StoreError> {
        if event.start.is_some() && event.start != self.start {
            self.start = event.start;
            row::insert_start(&self.connection, event)?;
        }
        let row = PendingRow { event: event.clone(), line: line.to_owned(), before: None };
        row::Insert::new(&self.connection)?.add(&row).map(|_| ())
    }

    /// Ends with the last event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<SqlSource, StoreError> {
        self.connection.execute_batch("COMMIT")?;
        Ok(SqlSource(self.connection))
    }
}
