//! Retention: rows go by age, and over the bound of bytes the oldest of the rule that has the most.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::{Connection, params};

use super::{StoreError, StoreFile};
use crate::event::Event;

/// How many rows one step takes away, and how many steps there are between two transactions of events.
const STEP: i64 = 1_000;
const STEPS: usize = 2;

/// How many pages are given back to the file system between two transactions of events.
const PAGES: u32 = 512;

/// How many rows `evicted` keeps as they were written; with twice as many, older ones are put together.
const NOTES: i64 = 1_024;

/// Puts the older rows of each kind and rule together: what they say of the rows that are gone stays true.
const MERGE: &str = "INSERT INTO evicted (kind, rule, first, last, rows, time) \
    SELECT kind, rule, min(first), max(last), sum(rows), max(time) FROM evicted WHERE rowid <= ?1 GROUP BY kind, rule";

/// Whose rows they are: the kind and the rule.
type Share = (String, Option<String>);

/// How many rows there are of each kind and rule: the table is counted once, for it may have a million rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares(HashMap<Share, i64>);

impl Shares {
    pub(super) fn of_all(connection: &Connection) -> Result<Self, StoreError> {
        Self::count(connection, "", &[])
    }

    fn count(
        connection: &Connection,
        condition: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Self, StoreError> {
        let counted = format!("SELECT kind, rule, count(*) FROM events {condition} GROUP BY kind, rule");
        let mut statement = connection.prepare(&counted)?;
        let rows = statement.query_map(values, |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        Ok(Self(rows.collect::<Result<_, _>>()?))
    }

    /// Counts a row that was added.
    pub(super) fn add(&mut self, event: &Event) {
        let rule = event.decision.rule.as_ref().map(|rule| rule.as_str().to_owned());
        *self.0.entry((event.kind.as_str().to_owned(), rule)).or_default() += 1;
    }

    fn remove(&mut self, share: &Share, rows: i64) {
        if let Some(count) = self.0.get_mut(share) {
            *count -= rows;
        }
        self.0.retain(|_, count| *count > 0);
    }

    /// The one with the most rows.
    fn largest(&self) -> Option<(Share, i64)> {
        self.0.iter().max_by_key(|(_, rows)| **rows).map(|(share, rows)| (share.clone(), *rows))
    }
}

impl StoreFile {
    /// Takes away what is older than the settings say. `now` in milliseconds since 1970.
    pub(super) fn evict_old(&mut self, now: u64, max_age: Duration) -> Result<(), StoreError> {
        let oldest = now.saturating_sub(u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX));
        let oldest = i64::try_from(oldest).unwrap_or(i64::MAX);
        let transaction = self.connection.transaction()?;
        let old = Shares::count(&transaction, "WHERE time < ?1", &[&oldest])?;
        for (share, rows) in &old.0 {
            take(&transaction, share, *rows, ("AND time < ?4", Some(oldest)), now)?;
        }
        merge_notes(&transaction)?;
        transaction.commit()?;
        if let Some(shares) = &mut self.shares {
            old.0.iter().for_each(|(share, rows)| shares.remove(share, *rows));
        }
        Ok(())
    }

    /// Takes rows away while the pages in use have more than so many bytes, and gives pages back while the file has more:
    /// a part at a time, so that events do not wait for long. A flood under one rule costs that rule's rows.
    pub(super) fn evict_beyond(&mut self, now: u64, most: u64) -> Result<(), StoreError> {
        if used_bytes(&self.connection)? > most {
            self.evict_some(now, most)?;
        }
        if bytes_of(&self.connection, "page_count")? > most {
            // Each row is a page that was given back.
            let mut statement = self.connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
            let mut pages = statement.query([])?;
            while pages.next()?.is_some() {}
        }
        Ok(())
    }

    fn evict_some(&mut self, now: u64, most: u64) -> Result<(), StoreError> {
        let Self { connection, shares, .. } = self;
        let shares = match shares {
            Some(shares) => shares,
            None => shares.insert(Shares::of_all(connection)?),
        };
        for _ in 0..STEPS {
            let Some((share, rows)) = shares.largest() else { break };
            let step = STEP.min(rows);
            let transaction = connection.transaction()?;
            take(&transaction, &share, step, ("", None), now)?;
            merge_notes(&transaction)?;
            transaction.commit()?;
            shares.remove(&share, step);
            if used_bytes(connection)? <= most {
                break;
            }
        }
        Ok(())
    }
}

fn used_bytes(connection: &Connection) -> Result<u64, StoreError> {
    Ok(bytes_of(connection, "page_count")?.saturating_sub(bytes_of(connection, "freelist_count")?))
}

/// The bytes of so many pages as this pragma says.
fn bytes_of(connection: &Connection, pragma: &str) -> Result<u64, StoreError> {
    let value = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(u64::try_from(value(pragma)? * value("page_size")?).unwrap_or_default())
}

/// Bounds `evicted`.
fn merge_notes(connection: &Connection) -> Result<(), StoreError> {
    let count: i64 =
        connection.prepare_cached("SELECT count(*) FROM evicted")?.query_row([], |row| row.get(0))?;
    if count <= 2 * NOTES {
        return Ok(());
    }
    let older = "SELECT rowid FROM evicted ORDER BY rowid DESC LIMIT 1 OFFSET ?1";
    let newest_of_older: i64 = connection.query_row(older, params![NOTES], |row| row.get(0))?;
    connection.execute(MERGE, params![newest_of_older])?;
    connection.execute("DELETE FROM evicted WHERE rowid <= ?1", params![newest_of_older])?;
    Ok(())
}

/// Takes away the oldest rows of a share, and says so in `evicted`.
fn take(
    connection: &Connection,
    (kind, rule): &Share,
    rows: i64,
    (condition, oldest): (&str, Option<i64>),
    now: u64,
) -> Result<(), StoreError> {
    let chosen =
        format!("SELECT n FROM events WHERE kind = ?1 AND rule IS ?2 {condition} ORDER BY n LIMIT ?3");
    let bounds = format!("SELECT min(n), max(n), count(*) FROM ({chosen})");
    let mut values: Vec<&dyn rusqlite::ToSql> = vec![kind, rule, &rows];
    if let Some(oldest) = &oldest {
        values.push(oldest);
    }
    let (first, last, count): (Option<i64>, Option<i64>, i64) = connection
        .prepare_cached(&bounds)?
        .query_row(values.as_slice(), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    let findings = format!("DELETE FROM findings WHERE n IN ({chosen})");
    connection.prepare_cached(&findings)?.execute(values.as_slice())?;
    let events = format!("DELETE FROM events WHERE n IN ({chosen})");
    connection.prepare_cached(&events)?.execute(values.as_slice())?;
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let note = "INSERT INTO evicted (kind, rule, first, last, rows, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(note)?.execute(params![kind, rule, first, last, count, now])?;
    Ok(())
}
