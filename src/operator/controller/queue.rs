//! Which namespace is looked at next: debounced, never twice at once, and after a failure ever more rarely. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long changes of one namespace are gathered.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How long after a turn has begun a namespace has no other one: at least this long, and so many times what that turn took.
/// Whose policies change all the time, or take long to judge, has a turn now and then.
const APART: Duration = Duration::from_secs(1);
const TIMES: u32 = 4;
/// After how long a namespace is looked at though nothing was heard.
const RESYNC: Duration = Duration::from_mins(10);
/// The first and the longest wait after a failure.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The namespaces, by when they are due.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Instant>,
    /// When the last turn began, and before when there is no other one.
    began: Option<Instant>,
    rests: Option<Instant>,
    failures: u32,
    running: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Done,
    Failed,
    /// There is no such namespace any more.
    Gone,
}

impl Queue {
    /// Something of the namespace has changed. One that has failed waits its time all the same: what it reacts to may
    /// be its own doing.
    pub(super) fn touch(&mut self, namespace: &str, now: Instant) {
        let entry = self.entries.entry(namespace.to_owned()).or_default();
        if entry.failures > 0 && entry.due.is_some() {
            return;
        }
        let due = entry.rests.map_or(now, |until| until.max(now)).max(now + DEBOUNCE);
        entry.due = Some(entry.due.map_or(due, |sooner| sooner.min(due)));
    }

    /// Takes a namespace that is due; it is not given again before its turn has ended.
    pub(super) fn take(&mut self, now: Instant) -> Option<String> {
        let due = |entry: &Entry| entry.due.filter(|due| !entry.running && *due <= now);
        let (namespace, entry) = self
            .entries
            .iter_mut()
            .filter_map(|(namespace, entry)| Some((due(entry)?, namespace, entry)))
            .min_by_key(|(due, _, _)| *due)
            .map(|(_, namespace, entry)| (namespace, entry))?;
        (entry.due, entry.began, entry.running) = (None, Some(now), true);
        Some(namespace.clone())
    }

    /// The turn has ended. `jitter` is between 0 and 1: namespaces that failed together do not return together.
    pub(super) fn end(&mut self, namespace: &str, turn: Turn, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(namespace) else { return };
        entry.running = false;
        let rests = entry.began.map_or(now, |began| began + APART.max(TIMES * (now - began)));
        entry.rests = Some(rests);
        entry.due = entry.due.map(|due| due.max(rests));
        match turn {
            Turn::Gone if entry.due.is_none() => {
                self.entries.remove(namespace);
            }
            Turn::Done | Turn::Gone => {
                entry.failures = 0;
                let resync = now + RESYNC.mul_f64(0.9 + 0.2 * jitter);
                entry.due = Some(entry.due.map_or(resync, |sooner| sooner.min(resync)));
            }
            Turn::Failed => {
                let wait = FIRST.saturating_mul(1 << entry.failures.min(10)).min(LONGEST);
                entry.failures += 1;
                entry.due = Some(now + wait.mul_f64(0.5 + 0.5 * jitter));
            }
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.values().filter(|entry| !entry.running).filter_map(|entry| entry.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn changes_close_to_each_other_are_one_turn() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.touch("a", start);
        queue.touch("a", start + DEBOUNCE / 2);
        assert_eq!(queue.take(start), None);
        assert_eq!(queue.take(start + DEBOUNCE).as_deref(), Some("a"), "later changes do not put it off");
        assert_eq!(queue.take(start + SECOND), None);
    }

    #[test]
    fn what_changes_during_a_turn_gets_another_one_after_it() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.touch("a", start);
        queue.take(start + SECOND).unwrap();
        queue.touch("a", start + SECOND);
        assert_eq!(queue.take(start + 2 * SECOND), None, "never twice at once");
        queue.end("a", Turn::Done, start + 2 * SECOND, 0.5);
        assert_eq!(queue.take(start + 5 * SECOND).as_deref(), Some("a"));
    }

    #[test]
    fn a_namespace_that_changes_all_the_time_has_a_turn_a_second_and_one_that_changes_once_does_not_wait() {
        let start = Instant::now();
        let mut queue = Queue::default();
        let mut turns = Vec::new();
        for tenth in 0..50 {
            let now = start + tenth * SECOND / 10;
            queue.touch("noisy", now);
            if tenth == 25 {
                queue.touch("quiet", now);
            }
            while let Some(namespace) = queue.take(now) {
                queue.end(&namespace, Turn::Done, now, 0.5);
                turns.push((tenth, namespace));
            }
        }
        let turn = |(tenth, namespace): &(u32, String)| format!("{namespace} {tenth}");
        let turns: Vec<String> = turns.iter().map(turn).collect();
        assert_eq!(turns, ["noisy 2", "noisy 12", "noisy 22", "quiet 27", "noisy 32", "noisy 42"]);
    }

    #[test]
    fn a_namespace_that_takes_long_has_its_turns_further_apart() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.touch("a", start);
        queue.take(start + SECOND).unwrap();
        queue.touch("a", start + 2 * SECOND);
        queue.end("a", Turn::Done, start + 6 * SECOND, 0.5);
        assert_eq!(queue.next_due(), Some(start + 21 * SECOND));
    }

    #[test]
    fn failures_come_back_ever_later_and_a_change_does_not_hurry_them() {
        let start = Instant::now();
        let mut queue = Queue::default();
        let mut now = start;
        queue.touch("a", now);
        let mut waits = Vec::new();
        for _ in 0..8 {
            now = queue.next_due().unwrap();
            queue.take(now).unwrap();
            queue.end("a", Turn::Failed, now, 1.0);
            queue.touch("a", now);
            waits.push((queue.next_due().unwrap() - now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_namespace_is_looked_at_now_and_then_and_one_that_is_gone_is_not() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.touch("a", start);
        queue.touch("b", start);
        assert!(queue.take(start + SECOND).is_some() && queue.take(start + SECOND).is_some());
        queue.end("a", Turn::Done, start + SECOND, 0.5);
        queue.end("b", Turn::Gone, start + SECOND, 0.5);
        assert_eq!(queue.next_due(), Some(start + SECOND + RESYNC));
        assert_eq!(queue.entries.len(), 1);
    }
}
