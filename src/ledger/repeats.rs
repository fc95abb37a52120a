//! Counts refusals that come in floods, so that no agent can have the record of what it did rotated away.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::event::{Event, RefusalKey, RuleKey};

/// How long refusals are counted before their number is written.
const WINDOW: Duration = Duration::from_secs(1);
/// How many equal refusals are written by themselves in a window.
const EQUAL: usize = 20;
/// How many distinct refusals are told apart in a window; the rest is counted by rule. No more repeats than this are
/// written by themselves either.
const DISTINCT: usize = 200;

/// The refusals of one window.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    began: Option<Instant>,
    /// How many refusals were written by themselves.
    written: usize,
    equal: HashMap<RefusalKey, Repeat>,
    by_rule: HashMap<Option<RuleKey>, Box<Event>>,
}

#[derive(Debug)]
struct Repeat {
    written: usize,
    counted: Option<Box<Event>>,
}

impl Repeats {
    /// Counts a refusal; returns it where it is to be written by itself.
    pub(super) fn take(&mut self, event: Box<Event>, now: Instant) -> Option<Box<Event>> {
        self.began.get_or_insert(now);
        let key = event.refusal_key();
        if let Some(repeat) = self.equal.get_mut(&key) {
            if repeat.written < EQUAL && self.written < DISTINCT {
                repeat.written += 1;
                self.written += 1;
                return Some(event);
            }
            match &mut repeat.counted {
                Some(counted) => counted.absorb(&event),
                None => repeat.counted = Some(event),
            }
            return None;
        }
        if self.equal.len() < DISTINCT {
            self.equal.insert(key, Repeat { written: 1, counted: None });
            self.written += 1;
            return Some(event);
        }
        self.count_by_rule(event);
        None
    }

    /// Rules are a policy's, so an agent cannot make more of them; their number is bounded all the same.
    fn count_by_rule(&mut self, event: Box<Event>) {
        let rule = Some(event.rule_key());
        let key = if self.by_rule.len() < DISTINCT || self.by_rule.contains_key(&rule) { rule } else { None };
        match self.by_rule.get_mut(&key) {
            Some(counted) => counted.absorb(&event),
            None => drop(self.by_rule.insert(key, event)),
        }
    }

    /// Whether the window is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.began.is_some_and(|began| now.duration_since(began) >= WINDOW)
    }

    /// Returns when the counts are to be written; none where nothing was counted.
    pub(super) fn due(&self) -> Option<Instant> {
        let has_counted =
            !self.by_rule.is_empty() || self.equal.values().any(|repeat| repeat.counted.is_some());
        self.began.filter(|_| has_counted).map(|began| began + WINDOW)
    }

    /// Ends the window. Returns its counts in the order of time.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Box<Event>> + use<> {
        let Self { equal, by_rule, .. } = std::mem::take(self);
        let counted = equal.into_values().filter_map(|repeat| repeat.counted);
        let mut events: Vec<_> = counted.chain(by_rule.into_values()).collect();
        events.sort_unstable_by_key(|event| event.id);
        events.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::decision::RuleId;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Action, Destination, Kind};
    use crate::ledger::fresh_id;

    fn refused(host: &str, rule: &str) -> Event {
        let mut event = Event::new(fresh_id(), Kind::Connection, Decision::of(Verdict::Deny));
        event.decision.rule = Some(RuleId::new(rule));
        event.destination = Some(Arc::new(Destination {
            host: host.to_owned(),
            port: 443,
            action: Action::Deny,
            intercepted: false,
            reason: None,
        }));
        event
    }

    /// Takes refusals at one moment. Returns those that are written by themselves, and the counts.
    fn window(refusals: impl IntoIterator<Item = Event>) -> (Vec<Event>, Vec<Event>) {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let single = refusals
            .into_iter()
            .filter_map(|event| repeats.take(Box::new(event), now).map(|event| *event))
            .collect();
        (single, repeats.end().map(|event| *event).collect())
    }

    fn sum<'a>(events: impl IntoIterator<Item = &'a Event>) -> u64 {
        events.into_iter().map(|event| event.count).sum()
    }

    #[test]
    fn twenty_equal_ones_are_written_and_the_rest_is_counted() {
        let (single, counted) = window((0..5_000).map(|_| refused("a.example", "a/b/c")));
        assert_eq!((single.len(), counted.len(), counted[0].count), (20, 1, 4_980));
        assert!(single.iter().all(|event| event.count == 1 && event.last.is_none()));
        assert_eq!(counted[0].destination.as_ref().unwrap().host, "a.example");
        assert!(counted[0].last.is_some_and(|last| last >= counted[0].time));
    }

    #[test]
    fn below_the_number_nothing_is_counted() {
        let (single, counted) = window((0..200).map(|n| refused(&format!("h{}.example", n / 20), "a/b/c")));
        assert_eq!((single.len(), counted.len()), (200, 0));
    }

    #[test]
    fn beyond_two_hundred_distinct_ones_they_are_counted_by_rule() {
        let refusals = (0..5_000).map(|n| refused(&format!("h{n}.example"), ["a/b/c", "a/b/d"][n % 2]));
        let (single, counted) = window(refusals);
        assert_eq!((single.len(), counted.len()), (200, 2));
        assert_eq!(sum(&counted), 4_800);
        assert!(counted.iter().all(|event| event.destination.is_none() && event.decision.rule.is_some()));
    }

    #[test]
    fn many_of_many_stay_few_lines_and_none_is_lost() {
        let refusals = (0..60_000).map(|n| refused(&format!("h{}.example", n % 300), &format!("a/b/r{n}")));
        let (single, counted) = window(refusals);
        assert!(single.len() <= 2 * DISTINCT && counted.len() <= 2 * DISTINCT + 1, "{}", counted.len());
        assert_eq!(sum(&single) + sum(&counted), 60_000);
    }

    #[test]
    fn a_window_is_over_after_a_second_and_due_only_where_something_was_counted() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        for _ in 0..20 {
            repeats.take(Box::new(refused("a.example", "a/b/c")), now);
        }
        assert_eq!((repeats.due(), repeats.is_over(now)), (None, false));
        repeats.take(Box::new(refused("a.example", "a/b/c")), now);
        assert_eq!(repeats.due(), Some(now + WINDOW));
        assert!(repeats.is_over(now + WINDOW));
        assert_eq!(repeats.end().count(), 1);
        assert_eq!((repeats.due(), repeats.is_over(now + WINDOW)), (None, false));
        assert!(repeats.take(Box::new(refused("a.example", "a/b/c")), now + WINDOW).is_some());
    }
}
