//! Decides what becomes of a secret, by what it is, where it stands and where it goes.

use std::sync::Arc;

use super::written::FindingAction;
use super::{DataLoss, Stance};
use crate::decision::{Decision, RuleId, Verdict};
use crate::dlp::{Confidence, Detector, Detectors};
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::pattern::Pattern;
use crate::policy::scope::{Mode, PolicyScope};

/// Where a secret stands, as far as that decides what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingPlace {
    /// A text that somebody tells a model, and the model did not write.
    Told,
    /// A text that the model wrote. It came from the provider where the request has a key of the gateway's
    /// (`is_vouched`); else the agent may have made it up.
    OfModel { is_vouched: bool },
    /// Where a request authenticates: a field for that, or the URL of a webhook.
    Carrier,
    /// A key, a name, an id, a field of the head, an attachment, or the body of a request to no model.
    Rest,
}

/// A secret that policy is asked about.
#[derive(Debug, Clone, Copy)]
pub struct AskedFinding<'a> {
    pub detector: &'a Detector,
    pub confidence: Confidence,
    /// Of the decoded value.
    pub sha256: &'a [u8; 32],
    pub place: FindingPlace,
    /// Where it goes.
    pub host: &'a Host,
}

/// What becomes of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingVerdict {
    /// What is done: Audit where nothing is enforced.
    pub action: FindingAction,
    /// Deny, or WouldDeny where it is only recorded; none where it is replaced or let through. It has no reason yet.
    pub decision: Option<Decision>,
}

impl Policy {
    /// The detectors to search with; none where every policy allows secrets.
    pub fn detectors(&self) -> Option<&Arc<Detectors>> {
        let section = &self.sections.data_loss;
        let allows = |stance: &Stance| stance.action == Some(FindingAction::Allow);
        let is_off = !section.parts.is_empty() && section.parts.iter().all(|part| allows(&part.stance));
        (!is_off).then_some(&section.detectors)
    }

    /// Whether values of a detector are allowed by their hash.
    pub fn allows_values_of(&self, detector: &str) -> bool {
        let parts = &self.sections.data_loss.parts;
        parts.iter().any(|part| part.stance.allow.iter().any(|(of, _)| of == detector))
    }

    /// Decides about a secret.
    pub fn judge_finding(&self, asked: &AskedFinding<'_>) -> FindingVerdict {
        if self.sections.credentials.is_placeholder(asked.sha256) {
            return FindingVerdict { action: FindingAction::Allow, decision: None };
        }
        self.settle(|scope| self.sections.data_loss.strictest(scope, asked))
    }

    /// Combines what the policies that decide say with what those say that only record.
    pub(super) fn settle(&self, ruled: impl Fn(PolicyScope) -> Ruled) -> FindingVerdict {
        match self.mode {
            Mode::Missing | Mode::Unselected => {
                FindingVerdict { action: FindingAction::Deny, decision: Some(self.unselected()) }
            }
            Mode::AuditOnly => ruled(PolicyScope::All).recorded(),
            Mode::Enforced { audits } => {
                let enforced = ruled(PolicyScope::Enforced);
                if enforced.action >= FindingAction::Redact || !audits {
                    return enforced.decided();
                }
                ruled(PolicyScope::All).recorded()
            }
        }
    }
}

/// An action, and whose it is.
pub(super) struct Ruled {
    pub(super) action: FindingAction,
    pub(super) rule: RuleId,
}

impl Ruled {
    fn decided(self) -> FindingVerdict {
        let denies = self.action == FindingAction::Deny;
        let decision = denies.then(|| Decision::by(self.rule, Verdict::Deny, ""));
        FindingVerdict { action: self.action, decision }
    }

    /// The same where it is not enforced.
    fn recorded(self) -> FindingVerdict {
        if self.action < FindingAction::Redact {
            return FindingVerdict { action: self.action, decision: None };
        }
        let decision = Decision::by(self.rule, Verdict::Deny, "").into_would_deny();
        FindingVerdict { action: FindingAction::Audit, decision: Some(decision) }
    }
}

impl DataLoss {
    /// The strictest action of the policies that write one, or that of the table.
    fn strictest(&self, scope: PolicyScope, asked: &AskedFinding<'_>) -> Ruled {
        let parts = self.visible(scope).map(|part| (part.stance.action(asked), &part.rule));
        // Of equals the first one, which is the cluster's.
        let strictest = parts.reduce(|one, other| if other.0 > one.0 { other } else { one });
        strictest.map_or_else(
            || Ruled {
                action: Stance::default().action(asked),
                rule: RuleId::builtin("outbound-exfiltration"),
            },
            |(action, rule)| Ruled { action, rule: rule.clone() },
        )
    }
}

impl Stance {
    fn action(&self, asked: &AskedFinding<'_>) -> FindingAction {
        if self.is_at_home(asked) || self.allows(asked) {
            return FindingAction::Allow;
        }
        if asked.confidence < self.least {
            return FindingAction::Audit.min(self.action.unwrap_or(FindingAction::Audit));
        }
        match self.action {
            None | Some(FindingAction::Redact) => by_table(asked.place),
            Some(written) => written,
        }
    }

    /// Whether it stands where it belongs.
    fn is_at_home(&self, asked: &AskedFinding<'_>) -> bool {
        let AskedFinding { detector, host, place, .. } = asked;
        let is_built_in = || detector.home.iter().filter_map(|home| Pattern::parse(home).ok());
        let own = self.home.iter().filter(|(of, _)| *of == detector.id).flat_map(|(_, hosts)| hosts);
        *place == FindingPlace::Carrier
            && (is_built_in().any(|home| home.matches(host))
                || own.into_iter().any(|home| home.matches(host)))
    }

    fn allows(&self, asked: &AskedFinding<'_>) -> bool {
        !self.allow.is_empty() && self.allow.contains(&(asked.detector.id.clone(), *asked.sha256))
    }
}

/// What is done where nobody writes an action, and for Redact.
fn by_table(place: FindingPlace) -> FindingAction {
    match place {
        FindingPlace::Told => FindingAction::Redact,
        FindingPlace::OfModel { is_vouched: true } => FindingAction::Audit,
        FindingPlace::OfModel { is_vouched: false } | FindingPlace::Carrier | FindingPlace::Rest => {
            FindingAction::Deny
        }
    }
}
