//! Remembers which models gave no answer, so that a request passes over them while another one is left.
//!
//! Nothing is set by hand: after three failures in a row a model is passed over for 30 seconds, twice as long each time it
//! fails again, up to five minutes; or for as long as the provider itself says, up to a minute. Then one request tries it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row after which a model is passed over.
const FAILURES: u32 = 3;
/// How long it is passed over first, and at most.
const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(5);
/// The longest time for which a `retry-after` is believed.
const TOLD: Duration = Duration::from_mins(1);
/// How many models are remembered. Policies name them, so that only many changes of a policy could exceed it.
const MOST: usize = 4_096;

/// How the models of a gateway do.
#[derive(Debug, Default)]
pub(crate) struct Health {
    models: Mutex<HashMap<String, State>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    failures: u32,
    /// Until when it is passed over, and for how long that was.
    closed: Option<(Instant, Duration)>,
    /// Whether one request tries it anew: others pass it over until that has ended.
    is_tried: bool,
}

/// What a failure or an answer changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is passed over from now on, for so long.
    Closed(Duration),
    /// It is asked again.
    Opened,
}

impl Health {
    /// Whether a request may ask this model. The first one behind the time in which it is passed over tries it.
    pub(crate) fn may_ask(&self, model: &str, now: Instant) -> bool {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = models.get_mut(model) else { return true };
        match state.closed {
            None => true,
            Some((until, _)) if now < until || state.is_tried => false,
            Some(_) => {
                state.is_tried = true;
                true
            }
        }
    }

    /// The same question, of a model that is not asked now.
    pub(crate) fn is_open(&self, model: &str, now: Instant) -> bool {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let closed =
            models.get(model).and_then(|state| state.closed.map(|(until, _)| (until, state.is_tried)));
        closed.is_none_or(|(until, is_tried)| now >= until && !is_tried)
    }

    /// It answered.
    pub(crate) fn answered(&self, model: &str) -> Option<Change> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        models.remove(model).and_then(|state| state.closed.map(|_| Change::Opened))
    }

    /// It gave no answer. `told` is for how long the provider asked to be left alone.
    pub(crate) fn failed(&self, model: &str, told: Option<Duration>, now: Instant) -> Option<Change> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MOST && !models.contains_key(model) {
            models.clear();
        }
        let state = models.entry(model.to_owned()).or_default();
        state.failures = state.failures.saturating_add(1);
        state.is_tried = false;
        let grown = match state.closed {
            Some((_, before)) => Some(before.saturating_mul(2).clamp(FIRST, LONGEST)),
            None => (state.failures >= FAILURES).then_some(FIRST),
        };
        let told = told.map(|told| told.min(TOLD)).filter(|told| !told.is_zero());
        let closed = told.or(grown)?;
        state.closed = Some((now + closed, closed));
        Some(Change::Closed(closed))
    }

    /// The models that are passed over now, by name, and for how long.
    pub(crate) fn closed(&self, now: Instant) -> Vec<(String, Duration)> {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let left = |state: &State| state.closed.map(|(until, _)| until.saturating_duration_since(now));
        let mut closed: Vec<_> = models
            .iter()
            .filter_map(|(name, state)| Some((name.clone(), left(state).filter(|left| !left.is_zero())?)))
            .collect();
        closed.sort_unstable();
        closed
    }

    /// A request that asks it from now on. However it ends, another one may try the model then.
    pub(crate) fn trial(&self, model: String) -> Trial<'_> {
        Trial { health: self, model }
    }
}

/// A request on its way to a model.
pub(crate) struct Trial<'a> {
    health: &'a Health,
    model: String,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let mut models = self.health.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = models.get_mut(&self.model) {
            state.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn failing(health: &Health, times: u32, now: Instant) -> Option<Change> {
        (0..times).map(|_| health.failed("coder", None, now)).last().flatten()
    }

    #[test]
    fn three_failures_in_a_row_close_a_model_for_half_a_minute() {
        let (health, now) = (Health::default(), Instant::now());
        assert_eq!(failing(&health, 2, now), None);
        assert!(health.may_ask("coder", now));
        assert_eq!(failing(&health, 1, now), Some(Change::Closed(FIRST)));
        assert!(!health.may_ask("coder", now + FIRST - SECOND));
        assert!(health.may_ask("chat", now));
    }

    #[test]
    fn an_answer_forgets_the_failures_before_it() {
        let (health, now) = (Health::default(), Instant::now());
        failing(&health, 2, now);
        assert_eq!(health.answered("coder"), None);
        assert_eq!(failing(&health, 2, now), None);
        failing(&health, 1, now);
        assert_eq!(health.answered("coder"), Some(Change::Opened));
        assert!(health.may_ask("coder", now));
    }

    #[test]
    fn the_models_that_are_passed_over_are_listed_until_one_request_may_try_them() {
        let (health, now) = (Health::default(), Instant::now());
        failing(&health, 3, now);
        health.failed("chat", None, now);
        assert_eq!(health.closed(now + SECOND), [("coder".to_owned(), FIRST - SECOND)]);
        assert!(health.closed(now + FIRST).is_empty());
    }

    #[test]
    fn one_request_tries_a_model_that_was_passed_over() {
        let (health, now) = (Health::default(), Instant::now());
        failing(&health, 3, now);
        let later = now + FIRST;
        assert!(health.may_ask("coder", later));
        assert!(!health.may_ask("coder", later), "the first one has not ended yet");
        drop(health.trial("coder".to_owned()));
        assert!(health.may_ask("coder", later));
    }

    #[test]
    fn a_model_that_fails_again_is_passed_over_twice_as_long_up_to_five_minutes() {
        let (health, mut now) = (Health::default(), Instant::now());
        failing(&health, 3, now);
        for seconds in [60, 120, 240, 300, 300] {
            now += LONGEST;
            assert!(health.may_ask("coder", now));
            let closed = Duration::from_secs(seconds);
            assert_eq!(health.failed("coder", None, now), Some(Change::Closed(closed)));
        }
    }

    #[test]
    fn a_provider_says_itself_for_how_long_up_to_a_minute() {
        let (health, now) = (Health::default(), Instant::now());
        let told = |seconds| health.failed("coder", Some(Duration::from_secs(seconds)), now);
        assert_eq!(told(7), Some(Change::Closed(7 * SECOND)));
        assert_eq!(told(7_200), Some(Change::Closed(TOLD)));
    }
}
