//! Orders the namespaces to reconcile: debounced, never the same one twice at once, and with a growing delay after failures. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::rate::Rate;

/// How long the changes of a namespace are gathered.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The distance of a namespace's turns after it had many in a row: at least this long, and this multiple of the last
/// turn. Policies that change all the time, or take long to compile, get a turn now and then. An edit that could make a
/// policy stricter does not wait for it.
const APART: Duration = Duration::from_secs(1);
const TIMES: u32 = 4;
/// How many turns, or revisions, a namespace may have in a row: more than anybody needs who edits by hand.
pub(super) const IN_A_ROW: u32 = 20;
/// After how long a namespace is reconciled though nothing has changed.
const RESYNC: Duration = Duration::from_mins(10);
/// For how long a namespace that has not changed lets others go first.
const YIELDING: Duration = Duration::from_mins(1);
/// The first and the longest wait after a failure.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The namespaces, by when they are due.
#[derive(Debug, Default)]
pub(super) struct NamespaceQueue {
    entries: BTreeMap<String, QueueEntry>,
}

#[derive(Debug)]
struct QueueEntry {
    due: Option<Instant>,
    /// Something has changed since the last turn began.
    changed: bool,
    /// When the last turn began.
    began: Option<Instant>,
    /// The pace of its turns, by how long the last one took.
    rate: Rate,
    /// Since when a change waits that was not judged yet.
    unjudged: Option<Instant>,
    /// It waits only for the end of its running turn.
    hurried: bool,
    failures: u32,
    running: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnOutcome {
    Done,
    Failed,
    /// There is no such namespace any more.
    Gone,
}

impl NamespaceQueue {
    /// Queues a namespace of which something has changed. One that has failed keeps its delay: its own writes may be
    /// what has changed.
    pub(super) fn touch(&mut self, namespace: &str, now: Instant) {
        let entry = self.entries.entry(namespace.to_owned()).or_default();
        entry.changed = true;
        if entry.failures > 0 && entry.due.is_some() {
            return;
        }
        let due = entry.rate.next(now).max(now + DEBOUNCE);
        entry.due = Some(entry.due.map_or(due, |sooner| sooner.min(due)));
        entry.wait(now);
    }

    /// Returns the namespaces whose turn waits though something has changed, each once after a change, so that the
    /// caller can judge whether it may wait.
    pub(super) fn unjudged(&mut self, now: Instant) -> Vec<String> {
        let due = |entry: &QueueEntry| {
            !entry.running && entry.unjudged.is_some_and(|since| since + DEBOUNCE <= now)
        };
        let waiting = self.entries.iter_mut().filter(|(_, entry)| due(entry));
        waiting
            .map(|(namespace, entry)| {
                entry.unjudged = None;
                namespace.clone()
            })
            .collect()
    }

    /// Makes a namespace due at once.
    pub(super) fn hurry(&mut self, namespace: &str, now: Instant) {
        if let Some(entry) = self.entries.get_mut(namespace).filter(|entry| entry.failures == 0) {
            (entry.due, entry.hurried) = (Some(now), true);
        }
    }

    /// Takes a namespace that is due; it is not returned again before its turn has ended.
    pub(super) fn take(&mut self, now: Instant) -> Option<String> {
        let due = |entry: &QueueEntry| entry.due.filter(|due| !entry.running && *due <= now);
        let (namespace, entry) = self
            .entries
            .iter_mut()
            .filter_map(|(namespace, entry)| Some((due(entry)?, namespace, entry)))
            .min_by_key(|(due, _, entry)| if entry.changed { *due } else { *due + YIELDING })
            .map(|(_, namespace, entry)| (namespace, entry))?;
        (entry.due, entry.changed, entry.began, entry.running) = (None, false, Some(now), true);
        (entry.unjudged, entry.hurried) = (None, false);
        Some(namespace.clone())
    }

    /// Ends a turn. `jitter` is between 0 and 1, so that namespaces that failed together do not return together.
    pub(super) fn end(&mut self, namespace: &str, turn: TurnOutcome, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(namespace) else { return };
        entry.running = false;
        let began = entry.began.unwrap_or(now);
        // A namespace whose turns take long gets them more rarely, so that others have the time.
        entry.rate.set_interval(APART.max(TIMES * (now - began)));
        entry.rate.spend(began);
        let rests = entry.rate.next(now);
        entry.due = entry.due.map(|due| due.max(rests));
        entry.wait(now);
        match turn {
            TurnOutcome::Gone if entry.due.is_none() => {
                self.entries.remove(namespace);
            }
            TurnOutcome::Done | TurnOutcome::Gone => {
                entry.failures = 0;
                let resync = now + RESYNC.mul_f64(0.9 + 0.2 * jitter);
                entry.due = Some(entry.due.map_or(resync, |sooner| sooner.min(resync)));
            }
            TurnOutcome::Failed => {
                let wait = FIRST.saturating_mul(1 << entry.failures.min(10)).min(LONGEST);
                entry.failures += 1;
                entry.due = Some(now + wait.mul_f64(0.5 + 0.5 * jitter));
            }
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let next = |entry: &QueueEntry| {
            let judged = entry.unjudged.map(|since| since + DEBOUNCE);
            entry.due.into_iter().chain(judged).min()
        };
        self.entries.values().filter(|entry| !entry.running).filter_map(next).min()
    }
}

impl Default for QueueEntry {
    fn default() -> Self {
        Self {
            due: None,
            changed: false,
            began: None,
            rate: Rate::new(APART, IN_A_ROW),
            unjudged: None,
            hurried: false,
            failures: 0,
            running: false,
        }
    }
}

impl QueueEntry {
    /// Notes since when a change waits longer than the debounce.
    fn wait(&mut self, now: Instant) {
        let waits = self.changed && self.due.is_some_and(|due| due > now + DEBOUNCE);
        self.unjudged = if waits { self.unjudged.or(Some(now)) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn changes_close_to_each_other_are_one_turn() {
        let start = Instant::now();
        let mut queue = NamespaceQueue::default();
        queue.touch("a", start);
        queue.touch("a", start + DEBOUNCE / 2);
        assert_eq!(queue.take(start), None);
        assert_eq!(queue.take(start + DEBOUNCE).as_deref(), Some("a"), "later changes do not put it off");
        assert_eq!(queue.take(start + SECOND), None);
    }

    #[test]
    fn what_changes_during_a_turn_gets_another_one_after_it() {
        let start = Instant::now();
        let mut queue = NamespaceQueue::default();
        queue.touch("a", start);
        queue.take(start + SECOND).unwrap();
        queue.touch("a", start + SECOND);
        assert_eq!(queue.take(start + 2 * SECOND), None, "never twice at once");
        queue.end("a", TurnOutcome::Done, start + 2 * SECOND, 0.5);
        assert_eq!(queue.take(start + 5 * SECOND).as_deref(), Some("a"));
    }

    /// The tenths of a second at which a namespace has its first turns that changes at each of them.
    fn turns(queue: &mut NamespaceQueue, start: Instant, count: usize) -> Vec<u32> {
        let mut turns = Vec::new();
        for tenth in 0.. {
            let now = start + tenth * SECOND / 10;
            queue.touch("noisy", now);
            while let Some(namespace) = queue.take(now) {
                queue.end(&namespace, TurnOutcome::Done, now, 0.5);
                turns.push(tenth);
            }
            if turns.len() == count {
                break;
            }
        }
        turns
    }

    /// A queue with a namespace that had more turns than anybody has in a row, and a tenth of a second after its last.
    fn tired() -> (NamespaceQueue, Instant) {
        let (start, mut queue) = (Instant::now(), NamespaceQueue::default());
        let last = *turns(&mut queue, start, 50).last().unwrap();
        (queue, start + (last + 1) * SECOND / 10)
    }

    #[test]
    fn twenty_edits_in_a_row_have_a_turn_each_and_who_edits_all_the_time_one_a_second() {
        let turns = turns(&mut NamespaceQueue::default(), Instant::now(), 50);
        let apart: Vec<u32> = turns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(apart[..19].iter().all(|tenths| *tenths <= 3), "{apart:?}");
        assert!(apart[30..].iter().all(|tenths| *tenths == 10), "{apart:?}");
    }

    #[test]
    fn a_namespace_that_changes_once_does_not_wait_for_one_that_changes_all_the_time() {
        let (mut queue, now) = tired();
        queue.touch("noisy", now);
        queue.touch("quiet", now);
        assert_eq!(queue.take(now + DEBOUNCE).as_deref(), Some("quiet"));
        assert_eq!(queue.take(now + DEBOUNCE), None);
    }

    #[test]
    fn what_has_to_wait_is_judged_once_and_what_may_not_wait_has_its_turn() {
        let (mut queue, now) = tired();
        queue.touch("noisy", now);
        assert_eq!(queue.unjudged(now), [""; 0], "changes are gathered");
        assert_eq!(queue.unjudged(now + DEBOUNCE), ["noisy"]);
        assert_eq!(queue.unjudged(now + DEBOUNCE), [""; 0]);
        assert_eq!(queue.take(now + DEBOUNCE), None);
        queue.hurry("noisy", now + DEBOUNCE);
        assert_eq!(queue.take(now + DEBOUNCE).as_deref(), Some("noisy"));
        queue.touch("noisy", now + 2 * DEBOUNCE);
        assert_eq!(queue.unjudged(now + 3 * DEBOUNCE), [""; 0], "never during a turn");
        queue.end("noisy", TurnOutcome::Done, now + 3 * DEBOUNCE, 0.5);
        assert_eq!(queue.unjudged(now + 3 * DEBOUNCE), ["noisy"], "it is judged when its turn has ended");
    }

    #[test]
    fn what_has_changed_goes_before_what_is_only_looked_at_again() {
        let start = Instant::now();
        let mut queue = NamespaceQueue::default();
        queue.touch("calm", start);
        queue.take(start + SECOND).unwrap();
        queue.end("calm", TurnOutcome::Done, start + SECOND, 0.5);
        let now = queue.next_due().unwrap() + SECOND;
        queue.touch("edited", now - DEBOUNCE);
        assert_eq!(queue.take(now).as_deref(), Some("edited"));
        queue.end("edited", TurnOutcome::Done, now, 0.5);
        queue.touch("edited", now + YIELDING);
        assert_eq!(queue.take(now + YIELDING + SECOND).as_deref(), Some("calm"), "but not for ever");
    }

    #[test]
    fn a_namespace_that_takes_long_has_its_turns_further_apart_after_twenty() {
        let (mut now, mut queue) = (Instant::now(), NamespaceQueue::default());
        let mut began = Vec::new();
        for _ in 0..40 {
            queue.touch("a", now);
            now = queue.entries["a"].due.unwrap();
            queue.take(now).unwrap();
            began.push(now);
            now += 2 * SECOND;
            queue.end("a", TurnOutcome::Done, now, 0.5);
        }
        let apart: Vec<u64> = began.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert!(apart[..20].iter().all(|seconds| *seconds == 2), "{apart:?}");
        assert!(apart[30..].iter().all(|seconds| *seconds == 8), "{apart:?}");
    }

    #[test]
    fn failures_come_back_ever_later_and_a_change_does_not_hurry_them() {
        let start = Instant::now();
        let mut queue = NamespaceQueue::default();
        let mut now = start;
        queue.touch("a", now);
        let mut waits = Vec::new();
        for _ in 0..8 {
            now = queue.next_due().unwrap();
            queue.take(now).unwrap();
            queue.end("a", TurnOutcome::Failed, now, 1.0);
            queue.touch("a", now);
            waits.push((queue.next_due().unwrap() - now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_namespace_is_looked_at_now_and_then_and_one_that_is_gone_is_not() {
        let start = Instant::now();
        let mut queue = NamespaceQueue::default();
        queue.touch("a", start);
        queue.touch("b", start);
        assert!(queue.take(start + SECOND).is_some() && queue.take(start + SECOND).is_some());
        queue.end("a", TurnOutcome::Done, start + SECOND, 0.5);
        queue.end("b", TurnOutcome::Gone, start + SECOND, 0.5);
        assert_eq!(queue.next_due(), Some(start + SECOND + RESYNC));
        assert_eq!(queue.entries.len(), 1);
    }
}
