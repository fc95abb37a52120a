//! Checks that the lines of a record hold together: each names a digest of itself and of the line before. Pure.

mod rows;
mod starts;
mod witness;

use serde::Serialize;

use crate::event::{Chain, Event, Id};
pub use rows::{Eviction, RowCheck, StartRow};
pub use starts::StartReport;
use starts::{Fit, Starts};
use witness::Witness;
pub use witness::WitnessReport;

/// The most faults that are named; the others are counted.
const MOST_NAMED: usize = 1_000;

/// What is wrong with a line, or with its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FaultKind {
    /// The line is not the one that its chain was made of.
    Changed,
    /// Lines are not there.
    Missing,
    /// The line stands behind one that came later, or is there twice.
    Moved,
    /// The last lines of a start that ended in order are not there.
    Cut,
    /// A column of the ledger is not what the line says.
    Column,
    /// The witness has another line.
    Rewritten,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub kind: FaultKind,
    /// The file with the line, or the row of a ledger.
    #[serde(rename = "where")]
    pub place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Id>,
    pub message: String,
}

/// What a check found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether everything holds together.
    pub holds: bool,
    pub events: u64,
    /// Lines whose chain is that of their bytes and of the line before.
    pub chained: u64,
    /// Lines behind a gap: nothing says what their chain was made of.
    pub unchecked: u64,
    /// Events of versions that wrote no chain.
    pub without_chain: u64,
    pub starts: Vec<StartReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<WitnessReport>,
    pub faults: Vec<Fault>,
    /// Faults that are not named here.
    pub more_faults: u64,
    /// What is no fault, and worth knowing.
    pub notes: Vec<String>,
}

/// The faults so far.
#[derive(Debug, Default)]
struct Faults {
    named: Vec<Fault>,
    more: u64,
}

impl Faults {
    fn add(&mut self, fault: Fault) {
        if self.named.len() < MOST_NAMED { self.named.push(fault) } else { self.more += 1 }
    }
}

/// A line in its place.
pub struct PlacedLine<'a> {
    pub event: &'a Event,
    pub line: &'a [u8],
    /// Names the place where somebody has to look.
    pub place: &'a dyn Fn() -> String,
    /// The chain before the line, where the ledger keeps it.
    pub before: Option<Chain>,
}

impl PlacedLine<'_> {
    fn fault(&self, kind: FaultKind, message: String) -> Fault {
        Fault {
            kind,
            place: (self.place)(),
            start: self.event.start,
            sequence: Some(self.event.sequence),
            event: Some(self.event.id),
            message,
        }
    }
}

/// Checks lines in the order in which they stand.
#[derive(Debug, Default)]
pub struct Verifier {
    events: u64,
    chained: u64,
    unchecked: u64,
    without_chain: u64,
    starts: Starts,
    faults: Faults,
    notes: Vec<String>,
    witness: Option<Witness>,
}

impl Verifier {
    /// `is_witnessed`: other lines are compared with these afterwards, which costs memory for each.
    pub fn new(is_witnessed: bool) -> Self {
        Self { witness: is_witnessed.then(Witness::default), ..Self::default() }
    }

    /// Checks the next line. Returns the sequences that are missing before it, the first and the last.
    pub fn take(&mut self, line: &PlacedLine<'_>) -> Option<(u64, u64)> {
        self.events += 1;
        let (Some(start), Some(chain)) = (line.event.start, line.event.chain) else {
            self.without_chain += 1;
            return None;
        };
        if let Some(witness) = &mut self.witness {
            witness.know(line.event, start, chain);
        }
        let step = self.starts.step(start, line);
        match step.fit {
            Fit::Holds => self.chained += 1,
            Fit::Unknown => self.unchecked += 1,
            Fit::Breaks => self.faults.add(line.fault(
                FaultKind::Changed,
                "its chain is not that of its bytes and of the line before".to_owned(),
            )),
            Fit::Moved { last } => self.faults.add(line.fault(
                FaultKind::Moved,
                format!(
                    "sequence {} comes after {last}: it was moved, or is there twice",
                    line.event.sequence
                ),
            )),
        }
        step.missing
    }

    /// Says that a row holds no event, or a column another one.
    pub fn fault(&mut self, kind: FaultKind, place: String, message: String) {
        self.faults.add(Fault { kind, place, start: None, sequence: None, event: None, message });
    }

    /// Says that lines are missing in front of one. Where the record is a file of lines, its beginning may have been
    /// removed by whoever rotates the file.
    pub fn missing(&mut self, (from, to): (u64, u64), line: &PlacedLine<'_>) {
        let is_beginning = from == 1 && self.starts.is_first_line();
        if is_beginning {
            self.notes.push(format!("the lines begin with sequence {}: what was before is not here", to + 1));
            return;
        }
        self.starts.add_missing(line.event.start, (from, to));
        self.faults.add(line.fault(FaultKind::Missing, missing_text(from, to)));
    }

    /// Compares a line that left the gateway with what was taken.
    pub fn compare(&mut self, line: &PlacedLine<'_>) {
        if let Some(witness) = &mut self.witness {
            witness.compare(line, &mut self.faults);
        }
    }

    /// Adds what is worth knowing.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// What was found.
    pub fn report(mut self) -> Report {
        if self.events > 0 && self.without_chain == self.events {
            self.faults.add(Fault {
                kind: FaultKind::Changed,
                place: "every line".to_owned(),
                start: None,
                sequence: None,
                event: None,
                message: "no event has a chain, so that nothing can be checked".to_owned(),
            });
        } else if self.without_chain > 0 {
            self.notes.push(format!("{} events have no chain and are not checked", self.without_chain));
        }
        let witness = self.witness.take().map(|w| w.report(&self.starts, &mut self.faults, &mut self.notes));
        self.starts.note_ends(&mut self.notes);
        Report {
            holds: self.faults.named.is_empty(),
            events: self.events,
            chained: self.chained,
            unchecked: self.unchecked,
            without_chain: self.without_chain,
            starts: self.starts.into_reports(),
            witness,
            faults: self.faults.named,
            more_faults: self.faults.more,
            notes: self.notes,
        }
    }
}

fn missing_text(from: u64, to: u64) -> String {
    let which =
        if from == to { format!("sequence {from} is") } else { format!("sequences {from} to {to} are") };
    format!("{which} not there: removed, or dropped when it could not be written")
}

#[cfg(test)]
mod tests;
