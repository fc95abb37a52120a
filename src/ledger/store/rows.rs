//! Rows of a ledger with all that stands beside their lines, for what checks the file.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, params};

use super::{StoreError, read, row};
use crate::event::{Chain, Event, Id};
use crate::ledger::verify::{Eviction, StartRow};

/// How many rows are read at once, so that no reader holds an old state for long.
const PAGE: i64 = 64;

/// A page has no more rows once their lines have so many bytes.
const PAGE_BYTES: i64 = 128 << 10;

/// How long the pages are checked. A reader that takes longer would keep the WAL from being written back.
const PAGES_TIME: Duration = Duration::from_secs(5);

/// The most starts and steps of retention that are read.
const MOST_ROWS: i64 = 1_000_000;

/// A ledger that is read page by page.
pub struct StoreRows {
    connection: Connection,
    /// The last row of the pages so far.
    n: i64,
    chosen: String,
}

/// Rows that are read together: those behind one, as far as another.
#[derive(Debug, Clone, Copy)]
pub struct RowPage {
    behind: i64,
    last: i64,
    /// How many there were.
    rows: usize,
}

/// One row of `events`.
pub struct StoreRow<'a> {
    pub n: i64,
    /// The line; none where it is no text, or larger than any line.
    pub line: Option<&'a str>,
    /// The chain before it, where the writer knew it.
    pub before: Option<Chain>,
    chain: Option<Chain>,
    row: &'a Row<'a>,
}

impl StoreRow<'_> {
    /// The first column that says something else than the event of the line.
    pub fn differing_column(&self, event: &Event) -> Option<&'static str> {
        let differs = |(number, value): (usize, &ToSqlOutput<'_>)| {
            self.row.get_ref(number + 4).map_or(true, |found| !is_equal(value, found))
        };
        let columns = row::columns(event);
        let other = columns.iter().enumerate().find(|column| differs(*column)).map(|(number, _)| number);
        match other {
            Some(number) => row::COLUMNS.get(number).copied(),
            None => (self.chain != event.chain).then_some("chain"),
        }
    }
}

/// A word of a later version is read as `Unknown`, and may be any.
fn is_equal(value: &ToSqlOutput<'_>, found: ValueRef<'_>) -> bool {
    match value {
        ToSqlOutput::Borrowed(ValueRef::Text(b"Unknown")) => true,
        ToSqlOutput::Borrowed(value) => *value == found,
        ToSqlOutput::Owned(value) => ValueRef::from(value) == found,
        _ => false,
    }
}

impl StoreRows {
    /// Opens a ledger to check it.
    ///
    /// # Errors
    /// The file is no ledger, of a later version, altered or damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let columns = row::COLUMNS.join(", ");
        let chosen = format!(
            "SELECT n, event, chain, before, {columns} FROM events WHERE n > ?1 AND n <= ?2 ORDER BY n"
        );
        Ok(Self { connection: read::open(path)?, n: i64::MIN, chosen })
    }

    /// The next rows that may be read together; none where there are no more.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn next_page(&mut self) -> Result<Option<RowPage>, StoreError> {
        // Their lengths stand before the texts, which are not read.
        let next = "SELECT n, octet_length(event) FROM events WHERE n > ?1 ORDER BY n LIMIT ?2";
        let mut statement = self.connection.prepare_cached(next)?;
        let mut rows = statement.query(params![self.n, PAGE])?;
        let (behind, mut bytes, mut count) = (self.n, 0, 0);
        while bytes < PAGE_BYTES
            && let Some(row) = rows.next()?
        {
            self.n = row.get(0)?;
            bytes = bytes.saturating_add(row.get::<_, Option<i64>>(1)?.unwrap_or_default());
            count += 1;
        }
        Ok((count > 0).then_some(RowPage { behind, last: self.n, rows: count }))
    }

    /// Reads the rows of a page that are there.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read<T>(&self, page: RowPage, take: impl Fn(&StoreRow<'_>) -> T) -> Result<Vec<T>, StoreError> {
        let mut statement = self.connection.prepare_cached(&self.chosen)?;
        let mut rows = statement.query(params![page.behind, page.last])?;
        let mut taken = Vec::with_capacity(page.rows);
        while let Some(row) = rows.next()? {
            let line = row.get_ref(1)?.as_str().ok();
            let (chain, before) = (chain(row.get_ref(2)?), chain(row.get_ref(3)?));
            taken.push(take(&StoreRow { n: row.get(0)?, line, before, chain, row }));
        }
        Ok(taken)
    }

    /// Reads what retention took away.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn evictions(&self) -> Result<Vec<Eviction>, StoreError> {
        let mut statement = self.connection.prepare("SELECT first, last, rows FROM evicted LIMIT ?1")?;
        let eviction =
            |row: &Row<'_>| Ok(Eviction { first: row.get(0)?, last: row.get(1)?, rows: row.get(2)? });
        Ok(statement.query_map([MOST_ROWS], eviction)?.collect::<Result<_, _>>()?)
    }

    /// Reads the starts of gateways.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn starts(&self) -> Result<Vec<StartRow>, StoreError> {
        let mut statement =
            self.connection.prepare("SELECT start, ended IS NOT NULL FROM starts LIMIT ?1")?;
        let mut rows = statement.query([MOST_ROWS])?;
        let mut starts = Vec::new();
        while let Some(row) = rows.next()? {
            if let Some(start) = row.get_ref(0)?.as_blob().ok().and_then(Id::from_slice) {
                starts.push(StartRow { start, has_ended: row.get(1)? });
            }
        }
        Ok(starts)
    }

    /// Checks every page, for at most 5 seconds.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check_pages(&mut self) -> Result<PagesCheck, StoreError> {
        let begin = Instant::now();
        self.connection.progress_handler(10_000, Some(move || begin.elapsed() > PAGES_TIME))?;
        let answer = self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        self.connection.progress_handler(0, None::<fn() -> bool>)?;
        match answer {
            Ok(answer) if answer == "ok" => Ok(PagesCheck::Whole),
            Ok(answer) => Ok(PagesCheck::Damaged(answer)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Ok(PagesCheck::Unfinished)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What a check of the pages found.
#[derive(Debug, PartialEq, Eq)]
pub enum PagesCheck {
    Whole,
    Damaged(String),
    /// The time was over.
    Unfinished,
}

fn chain(value: ValueRef<'_>) -> Option<Chain> {
    Some(Chain::from_bytes(value.as_blob().ok()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::with_lines;
    use super::*;

    #[test]
    fn rows_with_long_lines_are_read_few_at_a_time() {
        for (count, length, most) in [(700, 100, 64), (40, 100 << 10, 2), (8, 1 << 20, 1)] {
            let (_place, path) = with_lines(count, length);
            let mut rows = StoreRows::open(&path).unwrap();
            let mut numbers = Vec::new();
            while let Some(page) = rows.next_page().unwrap() {
                let read = rows.read(page, |row| (row.n, row.line.map(str::len))).unwrap();
                assert!(read.len() <= most, "{length}: {}", read.len());
                numbers.extend(read);
            }
            assert!(numbers.into_iter().eq((1..=count).map(|n| (i64::from(n), Some(length as usize)))));
        }
    }
}
