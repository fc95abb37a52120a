//! `explain`: what an agent may ask the gateway about its own policy.

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};

/// What an agent may ask at `http://postern.internal/`; the later is the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Explain {
    /// Nothing of denials and policies.
    None,
    /// Why something was denied to this pod: the rule, its reason, and the parameter that mattered.
    Denials,
    /// Also which hosts, paths, tools and limits the policies name.
    Policy,
}

/// What may be asked: the least that a policy which decides writes.
#[derive(Debug)]
pub(in crate::policy) struct Explained(Explain);

#[derive(Serialize)]
pub(in crate::policy) struct ExplainListed {
    explain: Explain,
}

impl PolicySection for Explained {
    type Written = Option<Explain>;
    type Lowered = Option<Explain>;
    type Listed = ExplainListed;

    fn lower(written: &Option<Explain>, _: &mut Lowering<'_>) -> Option<Explain> {
        *written
    }

    fn unite(policies: Vec<(&Owner, Option<Explain>)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        Self(deciding.filter_map(|(_, written)| written).min().unwrap_or(Explain::Denials))
    }

    fn list(&self, _: PolicyScope) -> ExplainListed {
        ExplainListed { explain: self.0 }
    }

    fn rows(listed: &ExplainListed, page: &mut Page) {
        let words = match listed.explain {
            Explain::None => "nothing",
            Explain::Denials => "why something was denied",
            Explain::Policy => "why something was denied, and what the policies name",
        };
        page.add(Heading::Settings, row("the agent may ask", words));
    }
}

impl Policy {
    /// What the agent may ask: `explain`.
    pub fn explains(&self) -> Explain {
        self.sections.explain.0
    }
}
