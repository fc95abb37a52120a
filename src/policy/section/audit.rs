//! `audit`: what events keep.

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::call::Inputs;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};

/// What events keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {toolInputs}")]
pub struct Audit {
    /// What is kept of a tool call's input. Of several policies the least counts; without any it is Hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_inputs: Option<Inputs>,
}

/// How much of a tool's input events keep: the least that a policy which decides writes.
#[derive(Debug)]
pub(in crate::policy) struct KeptInputs(Inputs);

#[derive(Serialize)]
pub(in crate::policy) struct AuditListed {
    audit: KeptInputsListed,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeptInputsListed {
    tool_inputs: Inputs,
}

impl PolicySection for KeptInputs {
    type Written = Option<Audit>;
    type Lowered = Option<Inputs>;
    type Listed = AuditListed;

    fn lower(written: &Option<Audit>, _: &mut Lowering<'_>) -> Option<Inputs> {
        written.as_ref().and_then(|audit| audit.tool_inputs)
    }

    fn unite(policies: Vec<(&Owner, Option<Inputs>)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        Self(deciding.filter_map(|(_, written)| written).min().unwrap_or(Inputs::Hash))
    }

    fn list(&self, _: PolicyScope) -> AuditListed {
        AuditListed { audit: KeptInputsListed { tool_inputs: self.0 } }
    }

    fn rows(listed: &AuditListed, page: &mut Page) {
        page.add(Heading::Settings, row("tool inputs in events", format!("{:?}", listed.audit.tool_inputs)));
    }
}

impl Policy {
    /// How much of a tool's input an event keeps: `audit.toolInputs`.
    pub fn tool_inputs(&self) -> Inputs {
        self.sections.audit.0
    }
}
