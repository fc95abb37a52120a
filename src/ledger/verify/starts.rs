//! The starts of gateways in a record: how far each was read, and whether it ended.

use std::collections::HashMap;

use serde::Serialize;

use super::PlacedLine;
use crate::event::{Chain, Event, Id, Kind, Timestamp};

/// How the reason of a gateway's last event begins.
const STOPPED: &str = "the gateway has stopped";

/// The most starts whose ends are named.
const MOST_NOTED: usize = 20;

/// The events of one start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartReport {
    pub start: Id,
    pub events: u64,
    /// The sequence of its first event that is there, and of the last.
    pub first: u64,
    pub last: u64,
    /// How many are not there in between, and nothing says why.
    pub missing: u64,
    /// How many retention took away, as the ledger says.
    pub evicted: u64,
    /// Whether the gateway said that it stopped.
    pub ended: bool,
}

/// How a line fits behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Holds,
    Breaks,
    /// What was before is not known.
    Unknown,
    Moved {
        last: u64,
    },
}

pub(super) struct Step {
    pub(super) fit: Fit,
    /// The sequences between the line before and this one.
    pub(super) missing: Option<(u64, u64)>,
}

#[derive(Debug)]
struct StartState {
    report: StartReport,
    /// The chain that the last line names, and the one that it has: where they differ, the next line says which of both
    /// was changed.
    named: Chain,
    computed: Option<Chain>,
}

/// The starts in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Starts {
    known: HashMap<Id, usize>,
    states: Vec<StartState>,
    /// The times of the first and the last event.
    times: Option<(Timestamp, Timestamp)>,
}

impl Starts {
    pub(super) fn step(&mut self, start: Id, line: &PlacedLine<'_>) -> Step {
        let PlacedLine { event, line: bytes, before, .. } = *line;
        let last = event.last.unwrap_or(event.time);
        let (from, to) = self.times.get_or_insert((event.time, last));
        (*from, *to) = ((*from).min(event.time), (*to).max(last));
        let chain = event.chain.unwrap_or(Chain::BEGIN);
        let Some(state) = self.known.get(&start).and_then(|at| self.states.get_mut(*at)) else {
            let before = if event.sequence == 1 { Some(Chain::BEGIN) } else { before };
            let (fit, computed) = fit(bytes, before, None);
            self.known.insert(start, self.states.len());
            self.states.push(StartState { report: begun(start, event), named: chain, computed });
            let missing = (event.sequence > 1).then(|| (1, event.sequence - 1));
            return Step { fit, missing };
        };
        let report = &mut state.report;
        if event.sequence <= report.last {
            return Step { fit: Fit::Moved { last: report.last }, missing: None };
        }
        let follows = event.sequence == report.last + 1;
        let (named, other) = if follows { (Some(state.named), state.computed) } else { (before, None) };
        let (fit, computed) = fit(bytes, named, other);
        let missing = (!follows).then(|| (report.last + 1, event.sequence - 1));
        report.events += 1;
        report.last = event.sequence;
        report.ended |= says_stopped(event);
        (state.named, state.computed) = (chain, computed);
        Step { fit, missing }
    }

    /// Whether one line was taken, of one start.
    pub(super) fn is_first_line(&self) -> bool {
        matches!(self.states.as_slice(), [state] if state.report.events == 1)
    }

    pub(super) fn add_missing(&mut self, start: Option<Id>, (from, to): (u64, u64)) {
        if let Some(report) = self.report_mut(start) {
            report.missing += to - from + 1;
        }
    }

    pub(super) fn add_evicted(&mut self, start: Option<Id>, (from, to): (u64, u64)) {
        if let Some(report) = self.report_mut(start) {
            report.evicted += to - from + 1;
        }
    }

    fn report_mut(&mut self, start: Option<Id>) -> Option<&mut StartReport> {
        let at = *self.known.get(&start?)?;
        self.states.get_mut(at).map(|state| &mut state.report)
    }

    pub(super) fn get(&self, start: Id) -> Option<&StartReport> {
        self.states.get(*self.known.get(&start)?).map(|state| &state.report)
    }

    /// The times of the first and the last event.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        self.times
    }

    /// Says of which starts nobody knows the end.
    pub(super) fn note_ends(&self, notes: &mut Vec<String>) {
        let open: Vec<&StartReport> =
            self.states.iter().map(|state| &state.report).filter(|report| !report.ended).collect();
        for report in open.iter().take(MOST_NOTED) {
            notes.push(format!(
                "start {} did not end in order, as far as sequence {}: it is running, or was killed, and what it wrote last \
                 may be missing",
                report.start, report.last
            ));
        }
        if open.len() > MOST_NOTED {
            notes.push(format!("{} more starts did not end in order", open.len() - MOST_NOTED));
        }
    }

    pub(super) fn into_reports(self) -> Vec<StartReport> {
        self.states.into_iter().map(|state| state.report).collect()
    }
}

fn begun(start: Id, event: &Event) -> StartReport {
    let (first, last) = (event.sequence, event.sequence);
    StartReport { start, events: 1, first, last, missing: 0, evicted: 0, ended: says_stopped(event) }
}

fn says_stopped(event: &Event) -> bool {
    event.kind == Kind::Lifecycle && event.decision.why().starts_with(STOPPED)
}

/// How a line fits behind a chain, or behind another one, and the chain that it has.
fn fit(line: &[u8], before: Option<Chain>, or: Option<Chain>) -> (Fit, Option<Chain>) {
    let Some(before) = before else { return (Fit::Unknown, None) };
    match Chain::of_line(line, before) {
        Some((named, computed)) if named == computed => (Fit::Holds, None),
        Some((_, computed)) => {
            let holds_else =
                or.and_then(|or| Chain::of_line(line, or)).is_some_and(|(named, has)| named == has);
            if holds_else { (Fit::Holds, None) } else { (Fit::Breaks, Some(computed)) }
        }
        None => (Fit::Breaks, None),
    }
}
