//! Counts requests, tokens and denials per credential against limits; the time is given as a value (design sections 4,
//! 6.5).

mod recent;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::call::{Denial, DenialForm};
use crate::decision::{Decision, Verdict};

use super::Policy;
use super::limits::{Limit, PolicyLimits};
use super::outcome::Outcome;
use super::scope::PolicyScope;
pub use recent::RecentRequests;

const DAY: u64 = 24 * 60 * 60;

/// How many credentials have counters of their own; those beyond share the counters of requests without one.
const MOST_CREDENTIALS: usize = 1_024;

/// How many counters there are at most, those of requests without a credential among them.
pub const MOST_COUNTERS: usize = MOST_CREDENTIALS + 1;

/// The counters of one pod. They outlive the policies that limit them: a reload gives nothing back, and neither does a
/// restart where a ledger keeps them.
#[derive(Debug, Default)]
pub struct Allowances(Mutex<Counters>);

#[derive(Debug, Default)]
struct Counters {
    by_credential: HashMap<Box<str>, CredentialUsage>,
    /// How many changes there were.
    changes: u64,
}

/// The counters of one credential, as they are kept beyond the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedUsage {
    /// The name of the credential; empty for requests without one.
    pub credential: Box<str>,
    /// The day of `tokens`, since 1970, UTC.
    pub day: u64,
    pub tokens: u64,
    pub minute: RecentRequests,
    /// Denied calls since the last allowed one.
    pub denials: u64,
    /// The revision of the policy that denied them.
    pub revision: Box<str>,
}

/// The counters of one credential.
#[derive(Debug, Default)]
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
    /// The number of the last change.
    change: u64,
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
    /// The counters of a process before, as [`Self::changed_since`] gave them.
    pub fn restored(saved: impl IntoIterator<Item = SavedUsage>) -> Self {
        let usage = |saved: SavedUsage| CredentialUsage {
            recent: saved.minute,
            day: saved.day,
            tokens: saved.tokens,
            denials: saved.denials,
            revision: saved.revision,
            change: 1,
        };
        let by_credential =
            saved.into_iter().map(|mut saved| (std::mem::take(&mut saved.credential), usage(saved)));
        Self(Mutex::new(Counters { by_credential: by_credential.take(MOST_COUNTERS).collect(), changes: 1 }))
    }

    /// How many changes there were.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Returns how many changes there were, and the counters that changed after the first `change` of them.
    pub fn changed_since(&self, change: u64) -> (u64, Vec<SavedUsage>) {
        let counters = self.lock();
        let changed = counters.by_credential.iter().filter(|(_, used)| used.change > change);
        let saved = changed.map(|(credential, used)| SavedUsage {
            credential: credential.clone(),
            day: used.day,
            tokens: used.tokens,
            minute: used.recent.clone(),
            denials: used.denials,
            revision: used.revision.clone(),
        });
        (counters.changes, saved.collect())
    }

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
        let used = counters.of(credential);
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
        counters.changed(credential);
        let recorded = Some(judgement.decision).filter(|decision| decision.verdict == Verdict::WouldDeny);
        Ok(recorded.or(judgement.audited))
    }

    /// What a credential has used so far.
    pub fn used(&self, policy: &Policy, credential: Option<&str>, now: SystemTime) -> Used {
        let mut counters = self.lock();
        let used = counters.of(credential);
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
        let used = counters.changed(credential);
        used.advance(seconds(now));
        used.tokens = used.tokens.saturating_add(tokens);
    }

    /// Counts a tool call that this policy denied.
    pub fn denied(&self, policy: &Policy, credential: Option<&str>) {
        let mut counters = self.lock();
        let used = counters.changed(credential);
        if *used.revision != *policy.revision() {
            used.revision = policy.revision().into();
            used.denials = 0;
        }
        used.denials = used.denials.saturating_add(1);
    }

    /// Resets the count of denials: a tool call was allowed.
    pub fn allowed(&self, credential: Option<&str>) {
        let mut counters = self.lock();
        if counters.of(credential).denials > 0 {
            counters.changed(credential).denials = 0;
        }
    }

    /// A poisoned lock is ignored: the counters are consistent after each step.
    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    /// The counters of a credential.
    fn of(&mut self, credential: Option<&str>) -> &mut CredentialUsage {
        let name = credential.unwrap_or_default();
        let known = self.by_credential.contains_key(name) || self.by_credential.len() < MOST_CREDENTIALS;
        self.by_credential.entry(if known { name } else { "" }.into()).or_default()
    }

    /// The same, where they are changed.
    fn changed(&mut self, credential: Option<&str>) -> &mut CredentialUsage {
        self.changes += 1;
        let change = self.changes;
        let used = self.of(credential);
        used.change = change;
        used
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
                "{denials} tool calls in a row were denied; nothing goes on until the policy is changed"
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

impl ReachedLimit<'_> {
    fn denial(self) -> Decision {
        Decision::by(self.limit.rule.clone(), Verdict::Deny, self.reason)
    }
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
