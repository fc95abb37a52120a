//! `toolDefault`: what becomes of tool calls that no rule names.

use serde::Serialize;

use super::page::{Heading, Page, row};
use super::switch::{Permission, Setting, Switch};
use super::{Lowering, Owner, PolicySection};
use crate::policy::outcome::Outcome;
use crate::policy::scope::{Mode, PolicyScope};

/// `toolDefault` of all policies.
#[derive(Debug)]
pub(in crate::policy) struct ToolDefault(pub(in crate::policy) Switch);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct ToolDefaultListed {
    tool_default: Setting,
}

impl PolicySection for ToolDefault {
    type Written = Option<Permission>;
    type Lowered = Option<Permission>;
    type Listed = ToolDefaultListed;

    fn lower(written: &Option<Permission>, _: &mut Lowering<'_>) -> Option<Permission> {
        *written
    }

    fn unite(policies: Vec<(&Owner, Option<Permission>)>, _: Mode) -> Self {
        Self(Switch::new("toolDefault", "No rule allows this tool", &Outcome::Allowed(None), &policies))
    }

    fn list(&self, scope: PolicyScope) -> ToolDefaultListed {
        ToolDefaultListed { tool_default: self.0.list(scope) }
    }

    fn rows(listed: &ToolDefaultListed, page: &mut Page) {
        let setting = &listed.tool_default;
        let words = if setting.action == "Deny" { "are denied" } else { "are allowed" };
        page.add(Heading::UnnamedCalls, row(words, setting.set_by()));
    }
}
