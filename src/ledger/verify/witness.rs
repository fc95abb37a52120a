//! Lines that left the gateway, as the witness of a record that somebody may have written anew.

use std::collections::HashMap;

use serde::Serialize;

use super::starts::Starts;
use super::{Fault, FaultKind, Faults, PlacedLine};
use crate::event::{Chain, Event, Id, Timestamp};

/// The most events that are compared; each costs 24 bytes.
pub(super) const MOST_EVENTS: usize = 20_000_000;

/// How many of the newest events a gateway that is killed may have told standard output and not the file: an open batch.
const MOST_LOST: u64 = 256;

/// What the witness says.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WitnessReport {
    pub lines: u64,
    /// Lines that are in the record as they are.
    pub same: u64,
    /// Lines that retention took from the record.
    pub evicted: u64,
    /// Lines behind the last of a start that did not end in order.
    pub behind: u64,
    /// Lines of starts and times that the record does not have.
    pub elsewhere: u64,
    /// Lines without a chain.
    pub without_chain: u64,
}

/// The record, as far as a witness is compared with it; and what the comparison found.
#[derive(Debug, Default)]
pub(super) struct Witness {
    /// The beginnings of chains by sequence, of each start.
    known: HashMap<Id, Vec<(u64, u128)>>,
    count: usize,
    report: WitnessReport,
    /// Lines that are not there, of each start.
    absent: HashMap<Id, Absent>,
}

#[derive(Debug)]
struct Absent {
    /// Sequences, as ranges.
    ranges: Vec<(u64, u64)>,
    place: String,
    times: (Timestamp, Timestamp),
}

impl Witness {
    /// Remembers a line of the record.
    pub(super) fn know(&mut self, event: &Event, start: Id, chain: Chain) {
        self.count += 1;
        if self.count > MOST_EVENTS {
            return;
        }
        let lines = self.known.entry(start).or_default();
        // A line that was moved is a fault already, and the others stay sorted.
        if lines.last().is_none_or(|(last, _)| *last < event.sequence) {
            lines.push((event.sequence, short(chain)));
        }
    }

    /// Compares a line of the witness.
    pub(super) fn compare(&mut self, line: &PlacedLine<'_>, faults: &mut Faults) {
        self.report.lines += 1;
        let event = line.event;
        let (Some(start), Some(chain)) = (event.start, event.chain) else {
            self.report.without_chain += 1;
            return;
        };
        let lines = self.known.get(&start).map(Vec::as_slice).unwrap_or_default();
        let at = lines.binary_search_by_key(&event.sequence, |(sequence, _)| *sequence);
        match at.ok().and_then(|at| lines.get(at)) {
            Some((_, known)) if *known == short(chain) => self.report.same += 1,
            Some(_) => faults.add(line.fault(
                FaultKind::Rewritten,
                format!("the record has another line for sequence {} of this start", event.sequence),
            )),
            None => self.miss(start, line),
        }
    }

    fn miss(&mut self, start: Id, line: &PlacedLine<'_>) {
        let (sequence, time) = (line.event.sequence, line.event.time);
        let absent = self.absent.entry(start).or_insert_with(|| Absent {
            ranges: Vec::new(),
            place: (line.place)(),
            times: (time, time),
        });
        absent.times = (absent.times.0.min(time), absent.times.1.max(time));
        match absent.ranges.last_mut() {
            Some((_, last)) if *last + 1 == sequence => *last = sequence,
            _ => absent.ranges.push((sequence, sequence)),
        }
    }

    /// Judges what is not in the record.
    pub(super) fn report(
        mut self,
        starts: &Starts,
        faults: &mut Faults,
        notes: &mut Vec<String>,
    ) -> WitnessReport {
        if self.count > MOST_EVENTS {
            notes
                .push(format!("the first {MOST_EVENTS} events of the record were compared with the witness"));
        }
        let mut absent: Vec<(Id, Absent)> = std::mem::take(&mut self.absent).into_iter().collect();
        absent.sort_by_key(|(start, _)| *start);
        for (start, absent) in absent {
            self.judge(start, &absent, starts, faults, notes);
        }
        if self.report.same == 0 {
            faults.add(Fault {
                kind: FaultKind::Rewritten,
                place: "the witness".to_owned(),
                start: None,
                sequence: None,
                event: None,
                message: "none of its lines is in the record".to_owned(),
            });
        }
        self.report
    }

    fn judge(
        &mut self,
        start: Id,
        absent: &Absent,
        starts: &Starts,
        faults: &mut Faults,
        notes: &mut Vec<String>,
    ) {
        let Absent { ranges, place, times } = absent;
        let count: u64 = ranges.iter().map(|(from, to)| to - from + 1).sum();
        let Some(report) = starts.get(start) else {
            // Whoever takes a whole start out of lines leaves no gap: the times tell.
            let is_covered = starts.times().is_some_and(|(from, to)| from <= times.0 && times.1 <= to);
            if is_covered {
                let message =
                    format!("the record covers this time, and has none of the {count} lines of this start");
                faults.add(missing(place, start, message));
            } else {
                self.report.elsewhere += count;
            }
            return;
        };
        for (from, to) in ranges.iter().copied() {
            let count = to - from + 1;
            if from > report.last && !report.ended && count <= MOST_LOST {
                self.report.behind += count;
                notes.push(format!("start {start} was killed, or is running: its last {count} lines left it and are not in the record"));
            } else if report.evicted > 0 && to < report.last {
                // What is missing for no other reason is a fault of the record already.
                self.report.evicted += count;
            } else if to < report.first {
                self.report.elsewhere += count;
            } else {
                faults.add(missing(place, start, format!("sequences {from} to {to} are not in the record")));
            }
        }
    }
}

fn missing(place: &str, start: Id, message: String) -> Fault {
    Fault {
        kind: FaultKind::Missing,
        place: place.to_owned(),
        start: Some(start),
        sequence: None,
        event: None,
        message,
    }
}

/// Half of a chain, which nobody finds another line for.
fn short(chain: Chain) -> u128 {
    let mut half = [0; 16];
    half.copy_from_slice(chain.as_bytes().split_at(16).0);
    u128::from_be_bytes(half)
}
