//! What limits have counted, as rows of the ledger: read before the gateway serves, written with the events.

use rusqlite::{Connection, Row, params};

use super::StoreError;
use crate::event::Timestamp;
use crate::policy::allowance::{Allowances, MOST_COUNTERS, RecentRequests, SavedUsage};

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The longest text of a row that is taken, in bytes: names of credentials and revisions are shorter, and so is a minute.
const MOST_TEXT: usize = 4_096;

/// Rows that limit nothing any more: their day is over, and no call is denied.
const FORGET: &str = "DELETE FROM spent WHERE day < ?1 AND denials = 0";

const READ: &str =
    "SELECT credential, day, tokens, minute, denials, revision FROM spent ORDER BY day DESC LIMIT ?1";

const WRITE: &str = "INSERT OR REPLACE INTO spent (credential, day, tokens, minute, denials, revision) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Reads what the gateway before this one had counted.
///
/// # Errors
/// A row is none that a gateway writes: the limits of this one are not known then.
pub(super) fn read(connection: &Connection, now: Timestamp) -> Result<Allowances, StoreError> {
    connection.execute(FORGET, params![number(now.unix_millis() / DAY_MILLIS)])?;
    let mut statement = connection.prepare(READ)?;
    let most = i64::try_from(MOST_COUNTERS).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![most])?;
    let mut saved = Vec::new();
    while let Some(row) = rows.next()? {
        let unread = || StoreError::Damaged("what limits have counted cannot be read".to_owned());
        saved.push(usage(row).ok_or_else(unread)?);
    }
    Ok(Allowances::restored(saved))
}

fn usage(row: &Row<'_>) -> Option<SavedUsage> {
    let text = |column| {
        let text = row.get_ref(column).ok()?.as_str().ok()?;
        (text.len() <= MOST_TEXT).then_some(text)
    };
    let count = |column| u64::try_from(row.get_ref(column).ok()?.as_i64().ok()?).ok();
    Some(SavedUsage {
        credential: text(0)?.into(),
        day: count(1)?,
        tokens: count(2)?,
        minute: RecentRequests::parse(text(3)?)?,
        denials: count(4)?,
        revision: text(5)?.into(),
    })
}

/// Writes the counters that changed after the first `change` changes. Returns how many changes the file has now.
pub(super) fn write(
    connection: &Connection,
    allowances: &Allowances,
    change: u64,
) -> Result<u64, StoreError> {
    let (change, changed) = allowances.changed_since(change);
    for usage in changed {
        connection.prepare_cached(WRITE)?.execute(params![
            usage.credential,
            number(usage.day),
            number(usage.tokens),
            usage.minute.to_string(),
            number(usage.denials),
            usage.revision,
        ])?;
    }
    Ok(change)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
