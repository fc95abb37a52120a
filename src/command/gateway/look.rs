//! The look at all files each second: what changed is read again, whole, and takes the place of what was.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::condition::{Condition, Facts, ReloadError, Unreadable, Why};
use super::running::{aged, build, credentials, problems, show};
use super::trusting::Trusting;
use super::unread::{News, Unread};
use crate::command::check::{self, Checked, Sources};
use crate::config::watch::Watched;
use crate::decision::{Decision, Verdict};
use crate::event::{Event, Kind};
use crate::ledger::fresh_id;
use crate::policy::age::Freshness;
use crate::problem::Problem;
use crate::proxy::Gateway;
use crate::telemetry::label::Reload;
use crate::telemetry::log;
use crate::tls::gate::Surroundings;

/// What is looked at, and what is in force.
pub(super) struct Look {
    pub(super) config: PathBuf,
    pub(super) watched: Watched,
    pub(super) surroundings: Surroundings,
    /// What the snapshot in force was made of.
    pub(super) sources: Sources,
    pub(super) trusting: Trusting,
    pub(super) condition: Arc<Condition>,
    /// Files could not be read at the last look: they are looked at again, changed or not. Whether somebody had asked.
    pub(super) owed: Option<bool>,
    pub(super) unread: Unread,
}

impl Look {
    /// `asked` reads everything again, changed or not.
    pub(super) fn once(&mut self, asked: bool) {
        let gateway = Arc::clone(&self.condition.gateway);
        let is_changed = self.watched.changed();
        if is_changed || asked || self.owed.is_some() {
            let asked = asked || self.owed.take() == Some(true);
            self.reload(&gateway, asked);
        }
        let snapshot = gateway.snapshot();
        let credentials = snapshot.credentials.refresh().problems;
        let trust = self.trusting.look(snapshot.settings.trust.as_ref());
        self.note_unread(&gateway, &credentials, trust.as_ref());
        {
            let mut facts = self.condition.facts();
            (facts.credentials, facts.trust) = (problems(&credentials), trust);
        }
        if snapshot.set_expired(self.condition.age().freshness == Freshness::Expired) {
            gateway.decide_again();
        }
        snapshot.sweep();
    }

    /// Says for how long anything could not be read, the files of the settings, credentials and roots alike.
    fn note_unread(&mut self, gateway: &Gateway, credentials: &[Problem], trust: Option<&String>) {
        let now = Instant::now();
        let files = self.condition.facts().reload_error.clone().filter(|error| error.why == Why::Unread);
        let credentials = credentials.iter().filter(|problem| problem.unread.is_some());
        let unread: Vec<String> = (files.map(|error| error.text).into_iter())
            .chain(credentials.map(ToString::to_string))
            .chain(trust.cloned())
            .collect();
        let (text, news) = (unread.join("; "), self.unread.note(unread.is_empty(), now));
        let lasts = self.unread.lasts(now);
        gateway.metrics.files_unread(lasts);
        match news {
            None => {}
            Some(News::Lasting) => {
                tracing::error!(problems = %text, "files cannot be read; the last good ones stay in force");
                said(
                    gateway,
                    Verdict::Deny,
                    format!("files cannot be read for {} s: {text}", lasts.as_secs()),
                );
            }
            Some(News::Over) => said(gateway, Verdict::Allow, "all files can be read again".to_owned()),
        }
        let is_lasting = self.unread.is_lasting();
        let unreadable = (!unread.is_empty()).then_some(Unreadable { text, lasts, is_lasting });
        self.condition.facts().unread = unreadable;
    }

    /// All or nothing: where anything is wrong, everything stays as it was, and readiness says so.
    fn reload(&mut self, gateway: &Gateway, asked: bool) {
        let (watched, read) = check::read(&self.config, self.surroundings, SystemTime::now());
        let before = std::mem::replace(&mut self.watched, watched);
        let was_unknown = self.condition.facts().expected.unknown.clone();
        if let Ok(checked) = &read {
            log::follow(checked.expected.log_level);
        }
        let outcome = match read {
            Ok(checked) if !asked && self.is_in_force(&checked) => {
                self.refreshed(gateway, &checked);
                Ok(())
            }
            Ok(checked) => self.take_over(gateway, checked),
            Err(problems) => Err(problems),
        };
        if let Err(mut problems) = outcome {
            self.watched.keep(before);
            // Where the settings are broken nobody has looked at the policy yet.
            let of_policy = self.take_over_policy(gateway).err().unwrap_or_default();
            let new = of_policy.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>();
            problems.extend(new);
            let is_unread = problems.iter().any(|problem| problem.unread.is_some());
            self.owed = is_unread.then_some(asked);
            self.failed(gateway, &problems, is_unread);
        }
        let unknown = self.condition.facts().expected.unknown.clone();
        if let Some(unknown) = unknown.filter(|unknown| was_unknown.as_ref() != Some(unknown)) {
            tracing::error!(problems = %unknown, "the newest policies are not known to this version");
            said(
                gateway,
                Verdict::Deny,
                format!("the newest policies are not known to this version: {unknown}"),
            );
        }
    }

    /// Whether nothing but the policy's age differs, and what is stamped on the pod.
    fn is_in_force(&self, checked: &Checked) -> bool {
        checked.sources == self.sources && self.condition.facts().reload_error.is_none()
    }

    /// Connections, leaves and pools stay, and nobody is told: the operator vouches for a policy every few minutes.
    fn refreshed(&self, gateway: &Gateway, checked: &Checked) {
        {
            let mut facts = self.condition.facts();
            let credentials = std::mem::take(&mut facts.credentials);
            let trust = facts.trust.take();
            *facts = Facts { credentials, trust, ..Facts::of(checked) };
        }
        show(&self.condition);
        gateway.metrics.policy_reloaded(Reload::Success);
    }

    fn take_over(&mut self, gateway: &Gateway, checked: Checked) -> Result<(), Vec<Problem>> {
        let (facts, sources) = (Facts::of(&checked), checked.sources.clone());
        let before = gateway.snapshot();
        let places = before.upstreams.places().clone();
        let snapshot = build(checked, &gateway.drain, Some(&before), places)?;
        let revision = snapshot.policy().revision().to_owned();
        let credentials = problems(&snapshot.credentials.problems());
        log::write_as(snapshot.settings.log_format);
        gateway.replace(snapshot);
        self.sources = sources;
        {
            let mut before = self.condition.facts();
            let trust = before.trust.take();
            *before = Facts { credentials, trust, ..facts };
        }
        show(&self.condition);
        gateway.metrics.policy_reloaded(Reload::Success);
        said(gateway, Verdict::Allow, format!("policy {revision} is in force"));
        Ok(())
    }

    /// A new policy waits for no other file: where the CA or the settings are wrong or out of reach, it is in force under
    /// the last good ones, so that what it denies is denied.
    ///
    /// # Errors
    /// Everything that is wrong with the policy itself.
    fn take_over_policy(&mut self, gateway: &Gateway) -> Result<(), Vec<Problem>> {
        let before = gateway.snapshot();
        let (policy, labels, expected) = check::policy(&before.settings.policy)?;
        let sources = self.sources.under(&policy, labels);
        let synced_at = policy.synced_at();
        if sources != self.sources {
            let revision = policy.revision().to_owned();
            let credentials = credentials(&policy, &before.settings, Some(&before.credentials));
            gateway.replace(aged(before.with_policy(policy, credentials)));
            said(gateway, Verdict::Allow, format!("policy {revision} is in force"));
        }
        self.sources = sources;
        {
            let mut facts = self.condition.facts();
            (facts.loaded_at, facts.synced_at, facts.expected) = (SystemTime::now(), synced_at, expected);
        }
        show(&self.condition);
        Ok(())
    }

    /// What keeps files with these problems from being in force.
    fn why(&self, problems: &[Problem]) -> Why {
        let settings = self.config.display().to_string();
        let is_of_settings = |problem: &Problem| problem.file == settings;
        if problems.iter().any(|problem| problem.is_unknown && !is_of_settings(problem)) {
            return Why::UnknownPolicies;
        }
        let by_operator = self.condition.facts().expected.published.is_some();
        let all_unknown = problems.iter().all(|problem| problem.is_unknown && is_of_settings(problem));
        if by_operator && all_unknown { Why::UnknownSettings } else { Why::Wrong }
    }

    fn failed(&self, gateway: &Gateway, problems: &[Problem], is_unread: bool) {
        let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let before = self.condition.facts().reload_error.clone();
        // Files that were wrong are not forgiven for being out of reach now.
        let was_wrong = before.as_ref().map(|error| error.why).filter(|why| *why != Why::Unread);
        let why = match (is_unread, was_wrong) {
            (true, was_wrong) => was_wrong.unwrap_or(Why::Unread),
            (false, _) => self.why(problems),
        };
        let error = Some(ReloadError { text, why });
        // What is tried each second, or each time that the operator vouches for the policy, is said once.
        let is_said = (is_unread || why != Why::Wrong) && before == error;
        if !is_said {
            let all = error.as_ref().map(|error| error.text.as_str()).unwrap_or_default();
            tracing::error!(problems = %all, "the changed files are not in force; the last good ones stay");
            said(gateway, Verdict::Deny, format!("the changed files are not in force: {all}"));
            let mut facts = self.condition.facts();
            facts.reload_error = error;
            gateway.metrics.policy_unknown(facts.is_unknown());
        }
        // Whoever sees it counted finds the reason in the status.
        gateway.metrics.policy_reloaded(Reload::Failure);
    }
}

fn said(gateway: &Gateway, verdict: Verdict, reason: String) {
    let mut decision = Decision::of(verdict);
    decision.reason = Some(reason.into());
    gateway.ledger.emit(Event::new(fresh_id(), Kind::Policy, decision));
}
