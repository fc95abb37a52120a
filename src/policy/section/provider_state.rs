//! `providerState`: whether conversations may be kept at the provider.

use serde::Serialize;

use super::page::{Heading, Page, row};
use super::switch::{Permission, Setting, Switch};
use super::{Lowering, Owner, PolicySection};
use crate::decision::Decision;
use crate::policy::outcome::Outcome;
use crate::policy::scope::{Mode, PolicyScope};

const REASON: &str = "The conversation would be kept at the provider, out of sight";

/// `providerState` of all policies.
#[derive(Debug)]
pub(in crate::policy) struct ProviderState(pub(in crate::policy) Switch);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct ProviderStateListed {
    provider_state: Setting,
}

impl PolicySection for ProviderState {
    type Written = Option<Permission>;
    type Lowered = Option<Permission>;
    type Listed = ProviderStateListed;

    fn lower(written: &Option<Permission>, _: &mut Lowering<'_>) -> Option<Permission> {
        *written
    }

    fn unite(policies: Vec<(&Owner, Option<Permission>)>, _: Mode) -> Self {
        let default = Outcome::Denied(Decision::builtin("provider-state", REASON));
        Self(Switch::new("providerState", REASON, &default, &policies))
    }

    fn list(&self, scope: PolicyScope) -> ProviderStateListed {
        ProviderStateListed { provider_state: self.0.list(scope) }
    }

    fn rows(listed: &ProviderStateListed, page: &mut Page) {
        page.add(Heading::AtProvider, row("conversations kept there", listed.provider_state.row("")));
    }
}
