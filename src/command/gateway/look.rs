//! The look at all files each second: what changed is read again, whole, and takes the place of what was.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::condition::{Condition, Facts};
use super::running::{build, problems, show};
use super::trusting::Trusting;
use crate::command::check::{self, Checked, Sources};
use crate::config::watch::Watched;
use crate::event::{Decision, Event, Kind, Verdict};
use crate::ledger::fresh_id;
use crate::policy::age::Freshness;
use crate::problem::Problem;
use crate::proxy::Gateway;
use crate::telemetry::label::Reload;
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
}

impl Look {
    /// `asked` reads everything again, changed or not.
    pub(super) fn once(&mut self, asked: bool) {
        let gateway = Arc::clone(&self.condition.gateway);
        if self.watched.changed() || asked {
            self.reload(&gateway, asked);
        }
        let snapshot = gateway.snapshot();
        let credentials = problems(&snapshot.credentials.refresh().problems);
        let trust = self.trusting.look(snapshot.settings.trust.as_ref());
        {
            let mut facts = self.condition.facts();
            (facts.credentials, facts.trust) = (credentials, trust);
        }
        if snapshot.set_expired(self.condition.age().freshness == Freshness::Expired) {
            gateway.decide_again();
        }
        snapshot.sweep();
    }

    /// All or nothing: where anything is wrong, everything stays as it was, and readiness says so.
    fn reload(&mut self, gateway: &Gateway, asked: bool) {
        let (watched, read) = check::read(&self.config, self.surroundings, SystemTime::now());
        self.watched = watched;
        match read {
            Ok(checked) if !asked && self.is_in_force(&checked) => self.refreshed(gateway, &checked),
            Ok(checked) => match self.take_over(gateway, checked) {
                Ok(()) => {}
                Err(problems) => self.failed(gateway, &problems),
            },
            Err(problems) => self.failed(gateway, &problems),
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
        let snapshot = build(checked, &gateway.drain, Some(&gateway.snapshot()))?;
        let revision = snapshot.policy().revision().to_owned();
        let credentials = problems(&snapshot.credentials.problems());
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

    fn failed(&self, gateway: &Gateway, problems: &[Problem]) {
        let all = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        tracing::error!(problems = %all, "the changed files are not in force; the last good ones stay");
        gateway.metrics.policy_reloaded(Reload::Failure);
        said(gateway, Verdict::Deny, format!("the changed files are not in force: {all}"));
        self.condition.facts().reload_error = Some(all);
    }
}

fn said(gateway: &Gateway, verdict: Verdict, reason: String) {
    let mut decision = Decision::of(verdict);
    decision.reason = Some(reason.into());
    gateway.ledger.emit(Event::new(fresh_id(), Kind::Policy, decision));
}
