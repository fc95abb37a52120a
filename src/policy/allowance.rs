//! Counts requests, tokens and denials per credential against limits; the time is given as a value (design sections 4,
//! 6.5).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::call::{Denial, DenialForm};
use crate::decision::{Decision, Verdict};

use super::Policy;
use super::limits::{Limit, PolicyLimits};
use super::outcome::Outcome;
use super::scope::PolicyScope;

/// How many seconds of requests count.
const WINDOW: u64 = 60;

const DAY: u64 = 24 * 60 * 60;

/// How many credentials have counters of their own; those beyond share the counters of requests without one.
const MOST_CREDENTIALS: usize = 1_024;

/// The counters of one pod. They outlive the policies that limit them: a reload gives nothing back.
#[derive(Debug, Default)]
pub struct Allowances(Mutex<HashMap<Box<str>, CredentialUsage>>);

/// The counters of one credential.
#[derive(Debug)]
struct CredentialUsage {
    recent: RecentRequests,
    /// The day of the last count, since 1970, UTC.
    day: u64,
    /// Tokens of that day.
    tokens: u64,
    /// Denied calls since the last allowed one.
    denials: u64,
    /// The revision of the policy that denied them.
    revision: Box<str>,
}

/// The requests of the last minute, by second.
#[derive(Debug)]
struct RecentRequests {
    latest: u64,
    counts: [u32; WINDOW as usize],
}

/// What a credential has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Since 00:00 UTC.
    pub tokens_today: u64,
    /// In the last 60 seconds.
    pub requests_this_minute: u64,
    /// Denied tool calls since the last allowed one, under the policy in force.
    pub denials_in_a_row: u64,
}

/// A limit that is reached.
struct ReachedLimit<'a> {
    limit: &'a Limit,
    reason: String,
    /// Seconds until it lifts; none if it does not lift by itself.
    wait: Option<u64>,
}

impl Allowances {
    /// Decides about one request, and counts it if it is admitted. `credential` is the name of the credential that will
    /// be attached. Returns the limit of an Audit policy that it exceeds, to be recorded.
    ///
    /// # Errors
    /// Fails with the denial by a limit that is reached, and its answer.
    pub fn admit(
        &self,
        policy: &Policy,
        credential: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Decision>, Denial> {
        let mut counters = self.lock();
        let used = usage_of(&mut counters, credential);
        let now = seconds(now);
        used.advance(now);
        let reached = |scope| used.reached(policy.sections.limits.at(scope), policy.revision(), now);
        let judgement = policy.weigh(|scope| match reached(scope) {
            Some(reached) => Outcome::Denied(reached.denial()),
            None => Outcome::Allowed(None),
        });
        if judgement.denies() {
            let wait = reached(PolicyScope::Enforced).and_then(|reached| reached.wait);
            let answer = wait.map_or(DenialForm::Forbidden, |retry_after_seconds| DenialForm::Limited {
                retry_after_seconds,
            });
            return Err(Denial::from(judgement.decision).answered(answer));
        }
        used.recent.count();
        let recorded = Some(judgement.decision).filter(|decision| decision.verdict == Verdict::WouldDeny);
        Ok(recorded.or(judgement.audited))
    }

    /// What a credential has used so far.
    pub fn used(&self, policy: &Policy, credential: Option<&str>, now: SystemTime) -> Used {
        let mut counters = self.lock();
        let used = usage_of(&mut counters, credential);
        used.advance(seconds(now));
        let denials = if *used.revision == *policy.revision() { used.denials } else { 0 };
        Used {
            tokens_today: used.tokens,
            requests_this_minute: used.recent.total(),
            denials_in_a_row: denials,
        }
    }

    /// Counts the tokens of an answer, input and output, as its provider reports them.
    pub fn spent(&self, credential: Option<&str>, tokens: u64, now: SystemTime) {
        let mut counters = self.lock();
        let used = usage_of(&mut counters, credential);
        used.advance(seconds(now));
        used.tokens = used.tokens.saturating_add(tokens);
    }

    /// Counts a tool call that this policy denied.
    pub fn denied(&self, policy: &Policy, credential: Option<&str>) {
        let mut counters = self.lock();
        let used = usage_of(&mut counters, credential);
        if *used.revision != *policy.revision() {
            used.revision = policy.revision().into();
            used.denials = 0;
        }
        used.denials = used.denials.saturating_add(1);
    }

    /// Resets the count of denials: a tool call was allowed.
    pub fn allowed(&self, credential: Option<&str>) {
        usage_of(&mut self.lock(), credential).denials = 0;
    }

    /// A poisoned lock is ignored: the counters are consistent after each step.
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, CredentialUsage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters of a credential.
fn usage_of<'a>(
    counters: &'a mut HashMap<Box<str>, CredentialUsage>,
    credential: Option<&str>,
) -> &'a mut CredentialUsage {
    let name = credential.unwrap_or_default();
    let known = counters.contains_key(name) || counters.len() < MOST_CREDENTIALS;
    counters.entry(if known { name } else { "" }.into()).or_default()
}

impl Default for CredentialUsage {
    fn default() -> Self {
        Self {
            recent: RecentRequests { latest: 0, counts: [0; WINDOW as usize] },
            day: 0,
            tokens: 0,
            denials: 0,
            revision: Box::default(),
        }
    }
}

impl CredentialUsage {
    fn advance(&mut self, now: u64) {
        self.recent.advance(now);
        if self.day != now / DAY {
            self.day = now / DAY;
            self.tokens = 0;
        }
    }

    /// Returns the reached limit that lasts longest.
    fn reached<'a>(&self, limits: &'a PolicyLimits, revision: &str, now: u64) -> Option<ReachedLimit<'a>> {
        let denials = if *self.revision == *revision { self.denials } else { 0 };
        let over = |limit: &'a Option<Limit>, used: u64| limit.as_ref().filter(|limit| used >= limit.most);
        if let Some(limit) = over(&limits.consecutive_denials, denials) {
            let reason = format!(
                "{denials} tool calls in a row were denied; nothing goes on until the policy is changed or the \
                 gateway is restarted"
            );
            return Some(ReachedLimit { limit, reason, wait: None });
        }
        if let Some(limit) = over(&limits.tokens_per_day, self.tokens) {
            let reason = format!("The limit of {} tokens a day is reached; it ends at 00:00 UTC", limit.most);
            return Some(ReachedLimit { limit, reason, wait: Some(DAY - now % DAY) });
        }
        let limit = over(&limits.requests_per_minute, self.recent.total())?;
        let reason = format!("The limit of {} requests a minute is reached", limit.most);
        Some(ReachedLimit { limit, reason, wait: Some(self.recent.wait(limit.most)) })
    }
}

impl RecentRequests {
    /// Moves on to this second. A clock that was set back by more than the window starts the count anew: else the agent
    /// would wait until the clock is where it was.
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

    /// Returns the seconds until fewer than `most` requests count.
    fn wait(&self, most: u64) -> u64 {
        let mut total = self.total();
        for passed in 1..WINDOW {
            // The second that has left the window by then.
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

impl ReachedLimit<'_> {
    fn denial(self) -> Decision {
        Decision::by(self.limit.rule.clone(), Verdict::Deny, self.reason)
    }
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
