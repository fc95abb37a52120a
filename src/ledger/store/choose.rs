//! Chooses rows of a ledger by its columns, so that a filter does not read every line. It may choose too many, never too few.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::event::{Id, Timestamp, pattern};

/// A count of several events is written a second after the first of them; this much allows for a slow writer.
const SPAN: u64 = 600_000;

/// What a filter wants, as far as columns tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub exchange: Option<Id>,
    pub id: Option<Id>,
    /// Events that stand for several, and were made around this time.
    pub counted_at: Option<Timestamp>,
    /// Patterns by column, in which `*` stands for any text: of each column one has to match.
    pub patterns: Vec<(RowColumn, Vec<String>)>,
}

/// A column with patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowColumn {
    Session,
    Rule,
    Tool,
    Kind,
    Verdict,
    Host,
}

impl RowColumn {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Rule => "rule",
            Self::Tool => "tool",
            Self::Kind => "kind",
            Self::Verdict => "verdict",
            Self::Host => "host",
        }
    }

    /// Whether an index has the column, and the number of the row: reading that is far less than reading the table.
    fn has_index(self) -> bool {
        matches!(self, Self::Session | Self::Rule | Self::Tool)
    }
}

/// The most values of a column for each of which its index is asked.
const MOST_VALUES: usize = 1_000;

/// A condition with its values.
struct Condition(String, Vec<Value>);

impl RowFilter {
    /// The numbers of the rows that may fit, in their order; none where the filter says nothing of columns.
    pub(super) fn choose(&self, connection: &Connection) -> rusqlite::Result<Option<Vec<i64>>> {
        self.choose_of(connection, MOST_VALUES)
    }

    /// The same where so many values of a column are told apart.
    fn choose_of(&self, connection: &Connection, values: usize) -> rusqlite::Result<Option<Vec<i64>>> {
        let (indexed, others) = self.conditions();
        let mut chosen: Option<Vec<i64>> = None;
        let mut keep = |rows: Vec<i64>| {
            chosen = Some(match chosen.take() {
                None => rows,
                Some(before) => both(&before, &rows),
            });
        };
        for condition in indexed {
            keep(rows(connection, &condition)?);
        }
        for (column, patterns) in self.patterns.iter().filter(|of| of.0.has_index() && !of.1.is_empty()) {
            if let Some(rows) = rows_by_value(connection, column.name(), patterns, values)? {
                keep(rows);
            } else if let Some(condition) = like(column.name(), patterns) {
                keep(rows(connection, &condition)?);
            }
        }
        if chosen.is_none() && !others.is_empty() {
            let texts: Vec<&str> = others.iter().map(|condition| condition.0.as_str()).collect();
            let all = texts.join(" AND ");
            let values = others.into_iter().flat_map(|condition| condition.1).collect();
            return rows(connection, &Condition(all, values)).map(Some);
        }
        Ok(chosen)
    }

    /// Conditions that an index answers, and others; without the patterns of columns that have an index.
    fn conditions(&self) -> (Vec<Condition>, Vec<Condition>) {
        let (mut indexed, mut others) = (Vec::new(), Vec::new());
        for (condition, id) in [("id = ?", self.id), ("exchange = ?", self.exchange)] {
            if let Some(id) = id {
                indexed.push(Condition(condition.to_owned(), vec![Value::Blob(id.as_bytes().to_vec())]));
            }
        }
        if let Some(at) = self.counted_at {
            let at = Value::Integer(i64::try_from(at.unix_millis()).unwrap_or(i64::MAX));
            others.push(Condition("count > 1 AND time <= ? AND last >= ?".to_owned(), vec![at.clone(), at]));
        }
        if self.since.is_some() || self.until.is_some() {
            let from = self.since.map_or(0, |since| since.unix_millis().saturating_sub(SPAN));
            let to = self.until.map_or(u64::MAX, Timestamp::unix_millis);
            let times = [from, to].map(|time| Value::Integer(i64::try_from(time).unwrap_or(i64::MAX)));
            indexed.push(Condition("time BETWEEN ? AND ?".to_owned(), times.to_vec()));
        }
        let without_index = self.patterns.iter().filter(|(column, _)| !column.has_index());
        others.extend(without_index.filter_map(|(column, patterns)| like(column.name(), patterns)));
        (indexed, others)
    }
}

/// The rows whose value matches one of the patterns. The index is asked for each value that it has, which is far less than
/// a look at each row; none where it has too many values, or one that is no text.
fn rows_by_value(
    connection: &Connection,
    column: &str,
    patterns: &[String],
    most: usize,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let Some(values) = values(connection, column, most)? else { return Ok(None) };
    let mut chosen = Vec::new();
    for value in values {
        if patterns.iter().any(|pattern| pattern::matches(pattern, &value)) {
            chosen.extend(rows(connection, &Condition(format!("{column} = ?"), vec![Value::Text(value)]))?);
        }
    }
    chosen.sort_unstable();
    Ok(Some(chosen))
}

/// The values of a column, each once; none where there are more than `most`, or one is no text.
fn values(connection: &Connection, column: &str, most: usize) -> rusqlite::Result<Option<Vec<String>>> {
    let least = |condition: &str| connection.prepare(&format!("SELECT min({column}) FROM events{condition}"));
    let (mut first, mut next) = (least("")?, least(&format!(" WHERE {column} > ?"))?);
    let mut values: Vec<String> = Vec::new();
    while values.len() <= most {
        let statement = if values.is_empty() { &mut first } else { &mut next };
        let mut rows = statement.query(params_from_iter(values.last()))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let value = row.get_ref(0)?;
        if value == ValueRef::Null {
            return Ok(Some(values));
        }
        let Ok(text) = value.as_str() else { return Ok(None) };
        values.push(text.to_owned());
    }
    Ok(None)
}

/// A column that matches one of the patterns; none where SQLite might not see that it does.
fn like(column: &str, patterns: &[String]) -> Option<Condition> {
    // LIKE folds the case of ASCII alone. Two other characters have a lower case in ASCII: the Kelvin sign and the dotted I.
    if patterns.is_empty() || !patterns.iter().all(|pattern| pattern.is_ascii()) {
        return None;
    }
    let mut texts: Vec<String> = patterns.iter().map(|_| format!("{column} LIKE ? ESCAPE '\\'")).collect();
    texts.extend([8490, 304].map(|odd| format!("instr({column}, char({odd})) > 0")));
    let values = patterns.iter().map(|pattern| {
        let escaped = pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        Value::Text(escaped.replace('*', "%"))
    });
    Some(Condition(format!("({})", texts.join(" OR ")), values.collect()))
}

fn rows(connection: &Connection, Condition(text, values): &Condition) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare(&format!("SELECT n FROM events WHERE {text}"))?;
    let mut rows: Vec<i64> =
        statement.query_map(params_from_iter(values), |row| row.get(0))?.collect::<Result<_, _>>()?;
    rows.sort_unstable();
    Ok(rows)
}

/// What is in both lists.
fn both(some: &[i64], others: &[i64]) -> Vec<i64> {
    let mut others = others.iter().copied().peekable();
    let is_there = |n: &&i64| {
        while others.next_if(|other| other < *n).is_some() {}
        others.peek() == Some(*n)
    };
    some.iter().filter(is_there).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[&str]) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE events (n INTEGER PRIMARY KEY, session, rule, host, time, last, count, id, exchange)";
        connection.execute_batch(table).unwrap();
        for (number, value) in values.iter().enumerate() {
            let (n, time) = (i64::try_from(number).unwrap(), i64::try_from(number).unwrap() * 1_000_000);
            let row = rusqlite::params![n, value, time];
            connection
                .execute("INSERT INTO events (n, session, host, time, count) VALUES (?1, ?2, ?2, ?3, 1)", row)
                .unwrap();
        }
        connection
    }

    #[test]
    fn every_row_that_a_pattern_matches_is_chosen_and_hardly_another() {
        let values = ["s-1", "S-1", "s_1", "s%1", "a\\b", "\u{212a}-1", "\u{130}", "größe", "", "s-12"];
        let connection = rows(&values);
        for text in
            ["s-1", "S*", "*1", "s_1", "s%1", "a\\b", "k-1", "i\u{307}", "GRÖSSE", "größe", "*", "", "x"]
        {
            for column in [RowColumn::Session, RowColumn::Host] {
                let filter =
                    RowFilter { patterns: vec![(column, vec![text.to_owned()])], ..RowFilter::default() };
                for (most, odd) in [(MOST_VALUES, 0), (1, 2)] {
                    let chosen = filter.choose_of(&connection, most).unwrap();
                    let all: Vec<i64> = (0..10).collect();
                    let matching =
                        all.iter().filter(|n| pattern::matches(text, values[usize::try_from(**n).unwrap()]));
                    let is_chosen = |n: &&i64| chosen.as_ref().is_none_or(|chosen| chosen.contains(n));
                    assert!(matching.clone().all(|n| is_chosen(&n)), "{text:?} {chosen:?}");
                    // LIKE also takes two other characters that have a lower case in ASCII.
                    let odd = if column.has_index() { odd } else { 2 };
                    assert!(chosen.is_none_or(|chosen| chosen.len() <= matching.count() + odd), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn conditions_hold_together_and_times_allow_for_counts_of_several() {
        let connection = rows(&["a", "b", "a", "b", "a"]);
        let filter = RowFilter {
            since: Some(Timestamp::from_unix_millis(2_500_000)),
            patterns: vec![
                (RowColumn::Session, vec!["a".to_owned()]),
                (RowColumn::Host, vec!["x".to_owned()]),
            ],
            ..RowFilter::default()
        };
        assert_eq!(
            filter.choose(&connection).unwrap().unwrap(),
            [2, 4],
            "the host is looked at in the event"
        );
        assert_eq!(RowFilter::default().choose(&connection).unwrap(), None);
        assert_eq!(both(&[1, 3, 5, 7], &[0, 3, 4, 7, 9]), [3, 7]);
    }

    #[test]
    fn a_value_that_is_no_text_hides_no_row() {
        let connection = rows(&["a", "b", "a"]);
        let filter =
            RowFilter { patterns: vec![(RowColumn::Session, vec!["a".to_owned()])], ..RowFilter::default() };
        for odd in ["NULL", "x'00'", "7", "CAST(x'ff' AS TEXT)"] {
            connection.execute(&format!("UPDATE events SET session = {odd} WHERE n = 1"), []).unwrap();
            assert_eq!(filter.choose(&connection).unwrap().unwrap(), [0, 2], "{odd}");
        }
    }
}
