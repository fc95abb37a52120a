//! What a ledger says beside its lines: the numbers of rows, what retention took away, and how starts ended.

use super::starts::Starts;
use super::{Fault, FaultKind, PlacedLine, Verifier, missing_text};
use crate::event::Id;

/// A step of retention: rows of one kind and rule between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eviction {
    pub first: i64,
    pub last: i64,
    pub rows: i64,
}

/// A start, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartRow {
    pub start: Id,
    pub has_ended: bool,
}

/// Checks rows beside their lines.
#[derive(Debug)]
pub struct RowCheck {
    /// Ranges of numbers from which rows were taken away, sorted and apart.
    evicted: Vec<(i64, i64)>,
    /// How many rows retention took away, and how many are gone.
    evicted_rows: i64,
    gone: i64,
    starts: Vec<StartRow>,
    last: i64,
    /// The last row of each start.
    last_of: Vec<(Id, i64)>,
}

impl RowCheck {
    pub fn new(evictions: &[Eviction], starts: Vec<StartRow>) -> Self {
        let evicted_rows = evictions.iter().map(|step| step.rows).fold(0, i64::saturating_add);
        let mut ranges: Vec<(i64, i64)> = evictions.iter().map(|step| (step.first, step.last)).collect();
        ranges.sort_unstable();
        let mut evicted: Vec<(i64, i64)> = Vec::new();
        for (first, last) in ranges {
            match evicted.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => evicted.push((first, last)),
            }
        }
        Self { evicted, evicted_rows, gone: 0, starts, last: 0, last_of: Vec::new() }
    }

    /// Checks the next row, whose number is `n`.
    pub fn take(&mut self, n: i64, line: &PlacedLine<'_>, verifier: &mut Verifier) {
        let missing = verifier.take(line);
        let (from, to) = (self.last.saturating_add(1), n.saturating_sub(1));
        let gap = to.saturating_sub(from).saturating_add(1).max(0);
        self.gone = self.gone.saturating_add(gap);
        if let Some((first, last)) = missing {
            let count = i64::try_from(last - first + 1).unwrap_or(i64::MAX);
            // Numbers of rows are used again where retention took the newest away.
            self.gone = self.gone.saturating_add(count.saturating_sub(gap).max(0));
            if self.is_evicted(from, to) && self.gone <= self.evicted_rows {
                verifier.starts.add_evicted(line.event.start, (first, last));
            } else {
                verifier.starts.add_missing(line.event.start, (first, last));
                verifier.faults.add(line.fault(FaultKind::Missing, missing_text(first, last)));
                self.gone -= count.max(gap);
            }
        } else if gap > 0 && !self.is_evicted(from, to) {
            verifier.faults.add(line.fault(
                FaultKind::Missing,
                format!("rows {from} to {to} are not there, and retention took none of them away"),
            ));
            self.gone -= gap;
        }
        self.last = n;
        if let Some(start) = line.event.start {
            match self.last_of.last_mut() {
                Some((of, last)) if *of == start => *last = n,
                _ => self.last_of.push((start, n)),
            }
        }
    }

    /// Whether retention took rows away from all of these numbers, or there are none.
    fn is_evicted(&self, from: i64, to: i64) -> bool {
        let at = self.evicted.partition_point(|(_, last)| *last < from);
        from > to || self.evicted.get(at).is_some_and(|(first, last)| *first <= from && to <= *last)
    }

    /// Checks at the end what no line says.
    pub fn finish(self, file: &str, verifier: &mut Verifier) {
        if self.gone > self.evicted_rows {
            let message = format!(
                "{} rows are gone, and retention took {} away: others were removed",
                self.gone, self.evicted_rows
            );
            verifier.faults.add(fault(FaultKind::Missing, file, None, message));
        }
        for start in &self.starts {
            self.check_end(start, file, verifier);
        }
        let unknown = |start: &Id| !self.starts.iter().any(|row| row.start == *start);
        for (start, _) in self.last_of.iter().filter(|(start, _)| unknown(start)) {
            let message = "the ledger has events of this start and does not know the start".to_owned();
            verifier.faults.add(fault(FaultKind::Missing, file, Some(*start), message));
        }
        if self.evicted_rows > 0 {
            verifier.note(format!("retention took {} events away", self.evicted_rows));
        }
    }

    /// A start that ended in order ends with the event that says so, unless retention took that away.
    fn check_end(&self, start: &StartRow, file: &str, verifier: &mut Verifier) {
        let last = self.last_of.iter().rev().find(|(of, _)| *of == start.start).map(|(_, n)| *n);
        let is_evicted = match last {
            Some(n) => self.is_evicted(n.saturating_add(1), n.saturating_add(1)),
            None => self.evicted_rows > 0,
        };
        let says_so = says_ended(&verifier.starts, start.start);
        if start.has_ended && !says_so && !is_evicted {
            let message = "the gateway ended in order, and its last events are not there".to_owned();
            verifier.faults.add(fault(FaultKind::Cut, file, Some(start.start), message));
        }
    }
}

fn says_ended(starts: &Starts, start: Id) -> bool {
    starts.get(start).is_some_and(|report| report.ended)
}

fn fault(kind: FaultKind, file: &str, start: Option<Id>, message: String) -> Fault {
    Fault { kind, place: file.to_owned(), start, sequence: None, event: None, message }
}
