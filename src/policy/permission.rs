//! A switch that several policies may set: the strictest that is written decides.

use crate::decision::{Decision, RuleId, Verdict};

use super::destination::Sight;
use super::document::tool::Permission;
use super::lower::Scope;
use super::outcome::Outcome;

/// One switch: how the Enforce policies set it, and how all policies together do.
#[derive(Debug, Clone)]
pub(super) struct Switch {
    enforced: Outcome,
    all: Outcome,
}

impl Switch {
    /// Where nothing is written, `default` holds; what is written is its own rule, `namespace/policy/SECTION`.
    pub(super) fn new(
        section: &str,
        reason: &str,
        default: &Outcome,
        written: &[(&Scope, Permission)],
    ) -> Self {
        let set = |sight| {
            let visible = written.iter().filter(|(scope, _)| sight == Sight::All || !scope.audit);
            let first = |wanted| visible.clone().find(|(_, permission)| *permission == wanted);
            if let Some((scope, _)) = first(Permission::Deny) {
                return Outcome::Denied(ruling(scope, section, Verdict::Deny, reason));
            }
            match first(Permission::Allow) {
                Some((scope, _)) => Outcome::Allowed(Some(ruling(scope, section, Verdict::Allow, ""))),
                None => default.clone(),
            }
        };
        Self { enforced: set(Sight::Enforced), all: set(Sight::All) }
    }

    /// The switch as the policies set it that a sight shows.
    pub(super) fn at(&self, sight: Sight) -> &Outcome {
        match sight {
            Sight::Enforced => &self.enforced,
            Sight::All => &self.all,
        }
    }
}

/// What a section of a policy, being its own rule, says.
pub(super) fn ruling(scope: &Scope, section: &str, verdict: Verdict, reason: &str) -> Decision {
    let rule = RuleId::new(format!("{}/{section}", scope.policy));
    Decision::by(rule, verdict, reason.to_owned()).under(scope.enforcement())
}
