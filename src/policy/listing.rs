//! Everything that applies to one pod, as plain data that people and programs read.

use serde::Serialize;

use super::Policy;
use super::scope::Mode;
use super::section::ListedSections;
use super::section::page::{Page, ProviderTables};
use crate::decision::Enforcement;

/// What applies to a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    pub revision: String,
    /// `Enforce`, `Audit` where only Audit policies select the pod, or `None`: everything is denied.
    pub enforcement: &'static str,
    /// Those that select the pod.
    pub policies: Vec<PolicyListed>,
    #[serde(flatten)]
    sections: ListedSections,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyListed {
    pub policy: String,
    pub enforcement: &'static str,
}

impl Policy {
    /// What applies to the pod that the policy was compiled for.
    pub fn listing(&self) -> Listing {
        let policies = self.selected().iter().map(|selected| PolicyListed {
            policy: selected.id.clone(),
            enforcement: Enforcement::of(selected.audit).as_str(),
        });
        Listing {
            revision: self.revision().to_owned(),
            enforcement: match self.mode {
                Mode::Missing | Mode::Unselected => "None",
                Mode::AuditOnly => Enforcement::Audit.as_str(),
                Mode::Enforced { .. } => Enforcement::Enforce.as_str(),
            },
            policies: policies.collect(),
            sections: self.sections.list(self.scope()),
        }
    }
}

impl Listing {
    /// The sections for people.
    pub fn page(&self, catalogue: ProviderTables) -> Page {
        let mut page = Page::new(self.enforcement == "Audit", catalogue);
        self.sections.rows(&mut page);
        page
    }
}
