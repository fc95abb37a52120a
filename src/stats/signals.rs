//! Numbers that may be worth a look: what was new, and what was far more than usual. They judge nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::Serialize;

use super::names::{Names, entry};
use crate::event::{Direction, Event, Id, Kind, Timestamp};

/// Fewer days say nothing of what is usual.
pub const LEAST_DAYS: u64 = 3;

const DAY: u64 = 86_400_000;

/// A day is told where it has so many times the median, and so many at least.
const TIMES_MEDIAN: u64 = 5;
const LEAST_COUNT: u64 = 50;

/// A payload is told where it has so many times the 99th percentile of at least so many.
const TIMES_P99: u64 = 10;
const LEAST_PAYLOADS: u64 = 100;

/// A row of denials is told from so many on.
const LEAST_ROW: u64 = 5;

/// The most of each that are told.
const MOST: usize = 50;

/// How many payloads of a workload are kept to be told, the largest.
const LARGEST: usize = 20;

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    Host,
    Tool,
    Model,
    McpServer,
}

/// A name that a workload used for the first time in the last day of the record.
#[derive(Debug, Serialize)]
pub struct FirstSeen {
    pub workload: Arc<str>,
    pub subject: Subject,
    pub name: Arc<str>,
    pub time: Timestamp,
}

/// A day with far more than the median of the days.
#[derive(Debug, Serialize)]
pub struct LargeDay {
    pub workload: Arc<str>,
    /// The beginning of the day, in UTC.
    pub day: Timestamp,
    pub what: &'static str,
    pub count: u64,
    pub median: u64,
}

/// The longest row of denials of a workload, without anything allowed between.
#[derive(Debug, Serialize)]
pub struct DenialRow {
    pub workload: Arc<str>,
    pub count: u64,
    pub from: Timestamp,
    pub to: Timestamp,
}

/// A payload that left, and was far larger than the others.
#[derive(Debug, Serialize)]
pub struct LargePayload {
    pub workload: Arc<str>,
    pub event: Id,
    pub bytes: u64,
    pub p99: u64,
}

/// What was found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalReport {
    pub first_seen: Vec<FirstSeen>,
    pub days: Vec<LargeDay>,
    pub denials_in_a_row: Vec<DenialRow>,
    pub payloads: Vec<LargePayload>,
}

/// What is counted each day.
const COUNTED: [&str; 3] = ["requests", "toolCalls", "denials"];

/// One workload.
#[derive(Debug, Default)]
struct WorkloadSignals {
    days: BTreeMap<u64, [u64; COUNTED.len()]>,
    seen: HashMap<(Subject, usize), Timestamp, RandomState>,
    row: Option<(u64, Timestamp, Timestamp)>,
    longest: Option<(u64, Timestamp, Timestamp)>,
    payloads: Histogram,
    largest: Vec<(u64, Id)>,
}

/// All workloads, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Signals {
    workloads: Vec<WorkloadSignals>,
    names: Names,
}

impl Signals {
    pub(super) fn take(&mut self, workload: usize, event: &Event) {
        let Some(state) = entry(&mut self.workloads, workload) else { return };
        let denies = event.decision.denies();
        let day = state.days.entry(event.time.unix_millis() / DAY).or_default();
        let counts = [event.kind == Kind::Request, event.kind == Kind::ToolCall, denies];
        for (so_far, _) in day.iter_mut().zip(counts).filter(|(_, counts)| *counts) {
            *so_far = so_far.saturating_add(event.count);
        }
        if matches!(event.kind, Kind::Request | Kind::ToolCall | Kind::Connection) {
            state.decided(event, denies);
        }
        state.sent(event);
        let mut see = |subject, name: &str| {
            let first = state.seen.entry((subject, self.names.number(name))).or_insert(event.time);
            *first = (*first).min(event.time);
        };
        if let Some(to) = event.destination.as_ref().filter(|_| !denies) {
            see(Subject::Host, &to.host);
        }
        if let Some(model) = event.provider.as_ref().and_then(|provider| provider.model.as_deref()) {
            see(Subject::Model, model);
        }
        if let Some(call) = &event.tool_call {
            see(Subject::Tool, &call.name);
            if let Some(server) = mcp_server(&call.name) {
                see(Subject::McpServer, server);
            }
        }
    }

    /// What was found in events from the first time to the last.
    pub(super) fn report(&self, (_, to): (Timestamp, Timestamp), workloads: &Names) -> SignalReport {
        let mut report = SignalReport::default();
        for (number, state) in self.workloads.iter().enumerate() {
            let workload = workloads.name(number);
            state.tell(&workload, &mut report);
            let last_day = to.unix_millis().saturating_sub(DAY);
            let is_new = |time: &Timestamp| time.unix_millis() > last_day;
            // What a workload used first when it began is all new.
            let is_older = state.seen.values().any(|time| !is_new(time));
            for ((subject, name), time) in state.seen.iter().filter(|(_, time)| is_older && is_new(time)) {
                let (workload, name) = (Arc::clone(&workload), self.names.name(*name));
                report.first_seen.push(FirstSeen { workload, subject: *subject, name, time: *time });
            }
        }
        report.first_seen.sort_by(|a, b| {
            (a.time, &a.workload, a.subject, &a.name).cmp(&(b.time, &b.workload, b.subject, &b.name))
        });
        report.days.sort_by_key(|day| std::cmp::Reverse(day.count));
        report.denials_in_a_row.sort_by_key(|row| std::cmp::Reverse(row.count));
        report.payloads.sort_by_key(|payload| std::cmp::Reverse(payload.bytes));
        report.first_seen.truncate(MOST);
        report.days.truncate(MOST);
        report.denials_in_a_row.truncate(MOST);
        report.payloads.truncate(MOST);
        report
    }
}

impl WorkloadSignals {
    fn decided(&mut self, event: &Event, denies: bool) {
        let last = event.last.unwrap_or(event.time);
        if !denies {
            self.row = None;
            return;
        }
        let (count, from, _) = self.row.unwrap_or((0, event.time, last));
        let row = (count.saturating_add(event.count), from, last);
        self.row = Some(row);
        if self.longest.is_none_or(|longest| longest.0 < row.0) {
            self.longest = Some(row);
        }
    }

    fn sent(&mut self, event: &Event) {
        let is_sent =
            matches!(event.kind, Kind::Request | Kind::Response) && event.direction == Direction::Outbound;
        let Some(payload) = event.payload.as_ref().filter(|_| is_sent) else { return };
        self.payloads.add(payload.bytes);
        let least = self.largest.last().map_or(0, |(bytes, _)| *bytes);
        if self.largest.len() < LARGEST || payload.bytes > least {
            let at = self.largest.partition_point(|(bytes, _)| *bytes >= payload.bytes);
            self.largest.insert(at, (payload.bytes, event.id));
            self.largest.truncate(LARGEST);
        }
    }

    fn tell(&self, workload: &Arc<str>, report: &mut SignalReport) {
        let days =
            self.days.keys().next_back().zip(self.days.keys().next()).map_or(0, |(to, from)| to - from + 1);
        for (number, what) in COUNTED.into_iter().enumerate().filter(|_| days >= LEAST_DAYS) {
            let count_of = |counts: &[u64; 3]| counts.get(number).copied().unwrap_or_default();
            let median = median(self.days.values().map(count_of).collect(), days);
            for (day, counts) in &self.days {
                let count = count_of(counts);
                if count >= LEAST_COUNT && count > median.saturating_mul(TIMES_MEDIAN) {
                    let (workload, day) = (Arc::clone(workload), Timestamp::from_unix_millis(day * DAY));
                    report.days.push(LargeDay { workload, day, what, count, median });
                }
            }
        }
        if let Some((count, from, to)) = self.longest.filter(|longest| longest.0 >= LEAST_ROW) {
            report.denials_in_a_row.push(DenialRow { workload: Arc::clone(workload), count, from, to });
        }
        let Some(p99) = self.payloads.p99().filter(|_| self.payloads.count >= LEAST_PAYLOADS) else { return };
        let large = self.largest.iter().filter(|(bytes, _)| *bytes > p99.saturating_mul(TIMES_P99));
        report.payloads.extend(large.map(|(bytes, event)| LargePayload {
            workload: Arc::clone(workload),
            event: *event,
            bytes: *bytes,
            p99,
        }));
    }
}

/// The server of a tool of MCP, as agents write it.
fn mcp_server(tool: &str) -> Option<&str> {
    let (server, _) = tool.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty()).then_some(server)
}

/// The median of the counts of so many days; a day without a count has none.
fn median(mut counts: Vec<u64>, days: u64) -> u64 {
    counts.sort_unstable();
    let empty = days.saturating_sub(counts.len() as u64);
    let middle = (days.saturating_sub(1) / 2).checked_sub(empty);
    middle.and_then(|at| counts.get(usize::try_from(at).ok()?)).copied().unwrap_or_default()
}

/// Sizes by their magnitude, in sixteenths of a doubling.
#[derive(Debug, Default)]
struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

impl Histogram {
    fn add(&mut self, value: u64) {
        let bits = u64::from(value.max(16).ilog2());
        let fraction = (value.max(16) >> (bits - 4)) & 15;
        self.count += 1;
        if let Some(bucket) = entry(&mut self.buckets, usize::try_from(bits * 16 + fraction).unwrap_or(0)) {
            *bucket += 1;
        }
    }

    /// A value that 99 of 100 are not above, at most a sixteenth larger than the least such.
    fn p99(&self) -> Option<u64> {
        let wanted = self.count - self.count / 100;
        let mut sum = 0;
        let reaches = |count: &u64| {
            sum += count;
            sum >= wanted
        };
        let at = self.buckets.iter().position(reaches)? as u64;
        Some((17 + at % 16) << (at / 16 - 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_days_without_an_event() {
        assert_eq!(median(vec![5, 1, 3], 3), 3);
        assert_eq!(median(vec![5, 1, 3], 7), 0);
        assert_eq!(median(vec![5, 1, 3], 5), 1);
        assert_eq!(median(vec![], 1), 0);
    }

    #[test]
    fn the_percentile_is_at_most_a_sixteenth_too_large() {
        for size in [1, 16, 17, 1_000, 123_456, u64::MAX / 2] {
            let mut sizes = Histogram::default();
            (0..100).for_each(|_| sizes.add(size));
            sizes.add(u64::MAX);
            let p99 = sizes.p99().unwrap();
            assert!(p99 >= size && p99 - p99 / 8 <= size.max(17), "{size}: {p99}");
        }
        assert_eq!(Histogram::default().p99(), None);
    }

    #[test]
    fn a_server_of_mcp_is_told_by_its_tools() {
        assert_eq!(mcp_server("mcp__github__get_issue"), Some("github"));
        assert_eq!((mcp_server("mcp____x"), mcp_server("mcp__x"), mcp_server("Bash")), (None, None, None));
    }
}
