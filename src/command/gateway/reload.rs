//! Reload: looks at all files each second; where one has changed, reads all again and replaces the snapshot.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::health::{GatewayFacts, GatewayHealth, ReloadError, ReloadFailure, UnreadableFiles, texts};
use super::kept_evidence;
use super::kept_ledger;
use super::snapshot::{build, credentials, warn_of_edits, with_age};
use super::trusted_roots::TrustedRootsWriter;
use super::unreadable::{StreakNews, UnreadStreak};
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

/// How often files, ages and idle connections are looked at.
const TICK: Duration = Duration::from_secs(1);
/// The same after a new policy: the files that it needs are mounted a moment later, and connections wait for them.
const BRISK_TICK: Duration = Duration::from_millis(100);

/// The files that are watched, and what is in force.
pub(super) struct FileReloader {
    pub(super) config: PathBuf,
    pub(super) watched: Watched,
    pub(super) surroundings: Surroundings,
    /// The files that the snapshot in force was built from.
    pub(super) sources: Sources,
    pub(super) roots_writer: TrustedRootsWriter,
    pub(super) health: Arc<GatewayHealth>,
    /// Set where files could not be read at the last look: they are read again, changed or not. Holds whether somebody
    /// had asked.
    pub(super) owed: Option<bool>,
    pub(super) unread: UnreadStreak,
}

impl FileReloader {
    /// Looks at the files each second, and when `asked`, until the gateway stops.
    pub(super) async fn run(mut self, asked: Arc<Notify>) {
        let gateway = Arc::clone(&self.health.gateway);
        loop {
            let tick = if gateway.snapshot().is_settling() { BRISK_TICK } else { TICK };
            let is_asked = tokio::select! {
                () = tokio::time::sleep(tick) => false,
                () = asked.notified() => true,
                () = gateway.drain.stopping() => return,
            };
            self.look(is_asked);
        }
    }

    /// Reads everything again where it is `asked` or a file has changed.
    fn look(&mut self, asked: bool) {
        let gateway = Arc::clone(&self.health.gateway);
        let is_changed = self.watched.changed();
        if is_changed || asked || self.owed.is_some() {
            let asked = asked || self.owed.take() == Some(true);
            self.reload(&gateway, asked);
        }
        let snapshot = gateway.snapshot();
        let credentials = snapshot.credentials.refresh().problems;
        let trust = self.roots_writer.look(snapshot.settings.trust.as_ref());
        self.note_unread(&gateway, &credentials, trust.as_ref());
        {
            let mut facts = self.health.facts();
            (facts.credentials, facts.trust) = (texts(&credentials), trust);
        }
        if snapshot.set_expired(self.health.age().freshness == Freshness::Expired) {
            gateway.decide_again();
        }
        snapshot.sweep();
    }

    /// Reports for how long files could not be read: those of the settings, credentials and roots alike.
    fn note_unread(&mut self, gateway: &Gateway, credentials: &[Problem], trust: Option<&String>) {
        let now = Instant::now();
        let files =
            self.health.facts().reload_error.clone().filter(|error| error.why == ReloadFailure::Unread);
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
            Some(StreakNews::Lasting) => {
                tracing::error!(problems = %text, "files cannot be read; the last good ones stay in force");
                record_event(
                    gateway,
                    Verdict::Deny,
                    format!("files cannot be read for {} s: {text}", lasts.as_secs()),
                );
            }
            Some(StreakNews::Over) => {
                record_event(gateway, Verdict::Allow, "all files can be read again".to_owned())
            }
        }
        let is_lasting = self.unread.is_lasting();
        let unreadable = (!unread.is_empty()).then_some(UnreadableFiles { text, lasts, is_lasting });
        self.health.facts().unread = unreadable;
    }

    /// Replaces all or nothing: with any mistake in the files, everything stays as it was, and readiness names it.
    fn reload(&mut self, gateway: &Gateway, asked: bool) {
        let (watched, read) = check::read(&self.config, self.surroundings, SystemTime::now());
        let before = std::mem::replace(&mut self.watched, watched);
        let was_unknown = self.health.facts().expected.unknown.clone();
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
            // BrokenAnswer settings end the reading before the policy's files.
            let of_policy = self.take_over_policy(gateway).err().unwrap_or_default();
            let new = of_policy.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>();
            problems.extend(new);
            let is_unread = problems.iter().any(|problem| problem.unread.is_some());
            self.owed = is_unread.then_some(asked);
            self.failed(gateway, &problems, is_unread);
        }
        let unknown = self.health.facts().expected.unknown.clone();
        if let Some(unknown) = unknown.filter(|unknown| was_unknown.as_ref() != Some(unknown)) {
            tracing::error!(problems = %unknown, "the newest policies are not known to this version");
            record_event(
                gateway,
                Verdict::Deny,
                format!("the newest policies are not known to this version: {unknown}"),
            );
        }
    }

    /// Whether the files differ at most in the policy's age, and in the revision that is stamped on the pod.
    fn is_in_force(&self, checked: &Checked) -> bool {
        checked.sources == self.sources && self.health.facts().reload_error.is_none()
    }

    /// Takes over the policy's age alone, without an event: the operator vouches for a policy every few minutes.
    fn refreshed(&self, gateway: &Gateway, checked: &Checked) {
        {
            let mut facts = self.health.facts();
            let credentials = std::mem::take(&mut facts.credentials);
            let trust = facts.trust.take();
            *facts = GatewayFacts { credentials, trust, ..GatewayFacts::of(checked) };
        }
        self.health.update_metrics();
        gateway.metrics.policy_reloaded(Reload::Success);
    }

    fn take_over(&mut self, gateway: &Gateway, mut checked: Checked) -> Result<(), Vec<Problem>> {
        let (facts, sources) = (GatewayFacts::of(&checked), checked.sources.clone());
        let before = gateway.snapshot();
        let kept = before.settings.ledger.as_ref();
        let new = checked.settings.ledger.as_ref();
        let ledger = kept_ledger::carry_over(kept, new, self.surroundings.kubernetes);
        checked.settings.ledger =
            ledger.map_err(|problem| vec![problem.in_file(self.config.display().to_string())])?;
        let evidence = (before.settings.evidence.as_ref(), checked.settings.evidence.as_ref());
        let evidence = kept_evidence::carry_over(evidence.0, evidence.1, self.surroundings.kubernetes);
        checked.settings.evidence =
            evidence.map_err(|problem| vec![problem.in_file(self.config.display().to_string())])?;
        let kept = (before.upstreams.places().clone(), before.upstreams.listeners().to_vec());
        let snapshot = build(checked, (&gateway.drain, &gateway.metrics), Some(&before), kept)?;
        let revision = snapshot.policy().revision().to_owned();
        let credentials = texts(&snapshot.credentials.problems());
        if let (Some(retention), Some(ledger)) = (&self.health.retention, &snapshot.settings.ledger) {
            retention.change(&ledger.store());
        }
        log::write_as(snapshot.settings.log.format);
        gateway.replace(snapshot);
        self.sources = sources;
        {
            let mut before = self.health.facts();
            let trust = before.trust.take();
            *before = GatewayFacts { credentials, trust, ..facts };
        }
        self.health.update_metrics();
        gateway.metrics.policy_reloaded(Reload::Success);
        record_event(gateway, Verdict::Allow, format!("policy {revision} is in force"));
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
            let credentials = credentials(&policy, &before.settings, Some(&before.credentials))?;
            let snapshot = with_age(before.with_policy(policy, credentials));
            warn_of_edits(&snapshot, Some(&before));
            gateway.replace(snapshot);
            record_event(gateway, Verdict::Allow, format!("policy {revision} is in force"));
        }
        self.sources = sources;
        {
            let mut facts = self.health.facts();
            (facts.loaded_at, facts.synced_at, facts.expected) = (SystemTime::now(), synced_at, expected);
        }
        self.health.update_metrics();
        Ok(())
    }

    /// Returns the kind of reason that keeps files with these problems from being in force.
    fn why(&self, problems: &[Problem]) -> ReloadFailure {
        let settings = self.config.display().to_string();
        let is_of_settings = |problem: &Problem| problem.file == settings;
        if problems.iter().any(|problem| problem.is_unknown && !is_of_settings(problem)) {
            return ReloadFailure::UnknownPolicies;
        }
        let by_operator = self.health.facts().expected.published.is_some();
        let all_unknown = problems.iter().all(|problem| problem.is_unknown && is_of_settings(problem));
        if by_operator && all_unknown { ReloadFailure::UnknownSettings } else { ReloadFailure::Wrong }
    }

    fn failed(&self, gateway: &Gateway, problems: &[Problem], is_unread: bool) {
        let text = texts(problems).join("; ");
        let before = self.health.facts().reload_error.clone();
        // Files that held a mistake before and cannot be read now count as mistaken still.
        let was_wrong = before.as_ref().map(|error| error.why).filter(|why| *why != ReloadFailure::Unread);
        let why = match (is_unread, was_wrong) {
            (true, was_wrong) => was_wrong.unwrap_or(ReloadFailure::Unread),
            (false, _) => self.why(problems),
        };
        let error = Some(ReloadError { text, why });
        // Reported once: it is tried each second, or each time that the operator vouches for the policy.
        let is_reported = (is_unread || why != ReloadFailure::Wrong) && before == error;
        if !is_reported {
            let text = error.as_ref().map(|error| error.text.as_str()).unwrap_or_default();
            tracing::error!(problems = %text, "the changed files are not in force; the last good ones stay");
            record_event(gateway, Verdict::Deny, format!("the changed files are not in force: {text}"));
            let mut facts = self.health.facts();
            facts.reload_error = error;
            gateway.metrics.policy_unknown(facts.is_unknown());
        }
        // Last, so that whoever sees the count finds the reason in the status.
        gateway.metrics.policy_reloaded(Reload::Failure);
    }
}

/// Records a change of the policy in an event.
fn record_event(gateway: &Gateway, verdict: Verdict, reason: String) {
    let mut decision = Decision::of(verdict);
    decision.reason = Some(reason.into());
    gateway.ledger.emit(Event::new(fresh_id(), Kind::Policy, decision));
}
