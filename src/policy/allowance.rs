//! What an agent has used of its limits, counted per credential; the time is given as a value (design sections 4, 6.5).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::call::{Answer, Denial};
use crate::decision::{Decision, Verdict};

use super::compile::Policy;

use super::destination::Sight;
use super::limits::{Limit, PolicyLimits};
use super::outcome::Outcome;

/// How many seconds of requests count.
const WINDOW: u64 = 60;

const DAY: u64 = 24 * 60 * 60;

/// How many credentials are counted apart; those beyond share what is counted without a credential.
const MOST_CREDENTIALS: usize = 1_024;

/// The counters of one pod. They outlive the policies that limit them: a reload gives nothing back.
#[derive(Debug, Default)]
pub struct Allowances(Mutex<HashMap<Box<str>, Used>>);

/// What was used with one credential.
#[derive(Debug)]
struct Used {
    recent: Recent,
    /// Since 1970, UTC.
    day: u64,
    /// On that day.
    tokens: u64,
    /// Since the last allowed call.
    denials: u64,
    /// Of the policy that denied them.
    revision: Box<str>,
}

/// The requests of the last minute, by second.
#[derive(Debug)]
struct Recent {
    latest: u64,
    counts: [u32; WINDOW as usize],
}

/// A limit that is reached.
struct Reached<'a> {
    limit: &'a Limit,
    reason: String,
    /// In seconds; none where time alone does not lift it.
    wait: Option<u64>,
}

impl Allowances {
    /// Decides about one request, and counts it if it goes on. `credential` is the name of the one that will be
    /// attached. What goes on may have something to record: the limits of Audit policies, never in the way.
    ///
    /// # Errors
    /// The denial by a limit, and how it is answered.
    pub fn admit(
        &self,
        policy: &Policy,
        credential: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Decision>, Denial> {
        let mut counters = self.lock();
        let used = of(&mut counters, credential);
        let now = seconds(now);
        used.advance(now);
        let reached = |sight| used.reached(policy.settings.limits.at(sight), policy.revision(), now);
        let judgement = policy.weigh(|sight| match reached(sight) {
            Some(reached) => Outcome::Denied(reached.ruling()),
            None => Outcome::Allowed(None),
        });
        if judgement.denies() {
            let wait = reached(Sight::Enforced).and_then(|reached| reached.wait);
            let answer =
                wait.map_or(Answer::Forbidden, |retry_after_seconds| Answer::Limited { retry_after_seconds });
            return Err(Denial::from(judgement.decision).answered(answer));
        }
        used.recent.count();
        let goes_on = Some(judgement.decision).filter(|decision| decision.verdict == Verdict::WouldDeny);
        Ok(goes_on.or(judgement.audited))
    }

    /// Counts the tokens of an answer, input and output, as its provider says them.
    pub fn spent(&self, credential: Option<&str>, tokens: u64, now: SystemTime) {
        let mut counters = self.lock();
        let used = of(&mut counters, credential);
        used.advance(seconds(now));
        used.tokens = used.tokens.saturating_add(tokens);
    }

    /// Counts a tool call that this policy denied.
    pub fn denied(&self, policy: &Policy, credential: Option<&str>) {
        let mut counters = self.lock();
        let used = of(&mut counters, credential);
        if *used.revision != *policy.revision() {
            used.revision = policy.revision().into();
            used.denials = 0;
        }
        used.denials = used.denials.saturating_add(1);
    }

    /// A tool call was allowed: denials are counted anew.
    pub fn allowed(&self, credential: Option<&str>) {
        of(&mut self.lock(), credential).denials = 0;
    }

    /// Counters are whole after every step, so that a lock whose holder failed is as good as another.
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters of a credential.
fn of<'a>(counters: &'a mut HashMap<Box<str>, Used>, credential: Option<&str>) -> &'a mut Used {
    let name = credential.unwrap_or_default();
    let known = counters.contains_key(name) || counters.len() < MOST_CREDENTIALS;
    counters.entry(if known { name } else { "" }.into()).or_default()
}

impl Default for Used {
    fn default() -> Self {
        Self {
            recent: Recent { latest: 0, counts: [0; WINDOW as usize] },
            day: 0,
            tokens: 0,
            denials: 0,
            revision: Box::default(),
        }
    }
}

impl Used {
    fn advance(&mut self, now: u64) {
        self.recent.advance(now);
        if self.day != now / DAY {
            self.day = now / DAY;
            self.tokens = 0;
        }
    }

    /// The first limit that is reached: what lasts longest is said first.
    fn reached<'a>(&self, limits: &'a PolicyLimits, revision: &str, now: u64) -> Option<Reached<'a>> {
        let denials = if *self.revision == *revision { self.denials } else { 0 };
        let over = |limit: &'a Option<Limit>, used: u64| limit.as_ref().filter(|limit| used >= limit.most);
        if let Some(limit) = over(&limits.consecutive_denials, denials) {
            let reason = format!(
                "{denials} tool calls in a row were denied; nothing goes on until the policy is changed or the \
                 gateway is restarted"
            );
            return Some(Reached { limit, reason, wait: None });
        }
        if let Some(limit) = over(&limits.tokens_per_day, self.tokens) {
            let reason = format!("The limit of {} tokens a day is reached; it ends at 00:00 UTC", limit.most);
            return Some(Reached { limit, reason, wait: Some(DAY - now % DAY) });
        }
        let limit = over(&limits.requests_per_minute, self.recent.total())?;
        let reason = format!("The limit of {} requests a minute is reached", limit.most);
        Some(Reached { limit, reason, wait: Some(self.recent.wait(limit.most)) })
    }
}

impl Recent {
    /// Moves on to this second. A clock that was set back by more than the window starts anew, so that nobody waits
    /// for it to come to where it was.
    fn advance(&mut self, now: u64) {
        if now <= self.latest && self.latest - now < WINDOW {
            return;
        }
        let passed = if now > self.latest { (now - self.latest).min(WINDOW) } else { WINDOW };
        for second in 0..passed {
            if let Some(count) = self.at(now.saturating_sub(second)) {
                *count = 0;
            }
        }
        self.latest = now;
    }

    fn count(&mut self) {
        if let Some(count) = self.at(self.latest) {
            *count = count.saturating_add(1);
        }
    }

    fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Seconds until fewer than `most` requests count.
    fn wait(&self, most: u64) -> u64 {
        let mut total = self.total();
        for passed in 1..WINDOW {
            // The second that leaves the window when that many have passed.
            let leaving = (self.latest + passed) % WINDOW;
            let count = usize::try_from(leaving).ok().and_then(|place| self.counts.get(place));
            total = total.saturating_sub(count.map_or(0, |count| u64::from(*count)));
            if total < most {
                return passed;
            }
        }
        WINDOW
    }

    fn at(&mut self, second: u64) -> Option<&mut u32> {
        usize::try_from(second % WINDOW).ok().and_then(|place| self.counts.get_mut(place))
    }
}

impl Reached<'_> {
    fn ruling(self) -> Decision {
        Decision::by(self.limit.rule.clone(), Verdict::Deny, self.reason)
    }
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
