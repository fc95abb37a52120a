//! The sections of a policy. Each is a file, or a directory: the types that users write, how they are judged, how several
//! policies unite, how the section is listed and explained.
//!
//! To add a section, add its file here with an implementation of `PolicySection`, its line in `sections!`, and its field
//! in [`super::document::Spec`]. Code that decides reads `Sections`.

pub mod audit;
pub mod credential;
pub mod data_loss;
pub mod destination;
pub mod edits;
pub mod explain;
pub mod failure_policy;
pub mod hosted_tools;
pub mod limits;
mod lowering;
pub(super) mod model;
pub(super) mod model_provider;
pub mod page;
mod provider_state;
pub mod route;
pub mod rule;
pub mod shell;
pub mod switch;
mod text;
pub mod tool;
mod tool_default;
pub mod tool_outputs;

use serde::Serialize;

use super::document::Spec;
use super::scope::{Mode, Owner, PolicyScope};
use page::Page;

pub(super) use lowering::{Lowering, Problems};
pub(super) use text::{namespace, policy_name};

/// A section of all policies that select a pod, united.
pub(super) trait PolicySection: Sized {
    /// The field of [`Spec`], as users write it.
    type Written;
    /// The section of one policy, judged and compiled.
    type Lowered;
    /// The section's keys in a listing.
    type Listed: Serialize;

    /// Judges and compiles the section of one policy; mistakes go to `lowering`.
    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered;

    /// Unites the section of all policies that select a pod, the cluster's first.
    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self;

    /// Lists the section as the policies of a scope set it.
    fn list(&self, scope: PolicyScope) -> Self::Listed;

    /// Adds the section's rows to the listing for people.
    fn rows(listed: &Self::Listed, page: &mut Page);
}

/// Declares the sections by their fields in [`Spec`], in the order of a listing.
macro_rules! sections {
    ($($field:ident: $section:ty,)*) => {
        /// All sections of one policy, judged.
        pub(super) struct LoweredSections {
            $(pub(super) $field: <$section as PolicySection>::Lowered,)*
        }

        /// All sections of the policies that select a pod, united.
        #[derive(Debug)]
        pub(super) struct Sections {
            $(pub(super) $field: $section,)*
        }

        /// All sections of a listing.
        #[derive(Serialize)]
        pub(super) struct ListedSections {
            $(#[serde(flatten)] $field: <$section as PolicySection>::Listed,)*
        }

        impl LoweredSections {
            pub(super) fn new<'a>(spec: &'a Spec, lowering: &mut Lowering<'a>) -> Self {
                // Named one by one, so that no field is forgotten: each is a section, or says whom the policy is for.
                let Spec { namespace_selector: _, pod_selector: _, enforcement: _, $($field,)* } = spec;
                Self { $($field: <$section>::lower($field, lowering),)* }
            }
        }

        impl Sections {
            pub(super) fn new(policies: Vec<(Owner, LoweredSections)>, mode: Mode) -> Self {
                let mut owners = Vec::with_capacity(policies.len());
                $(let mut $field = Vec::with_capacity(policies.len());)*
                for (owner, sections) in policies {
                    owners.push(owner);
                    $($field.push(sections.$field);)*
                }
                Self { $($field: <$section>::unite(owners.iter().zip($field).collect(), mode),)* }
            }

            pub(super) fn list(&self, scope: PolicyScope) -> ListedSections {
                ListedSections { $($field: self.$field.list(scope),)* }
            }
        }

        impl ListedSections {
            pub(super) fn rows(&self, page: &mut Page) {
                $(<$section>::rows(&self.$field, page);)*
            }
        }
    };
}

sections! {
    destinations: destination::Destinations,
    tool_default: tool_default::ToolDefault,
    tools: tool::Tools,
    rules: rule::FactRules,
    shell: shell::Shell,
    edits: edits::Edits,
    hosted_tools: hosted_tools::HostedTools,
    provider_state: provider_state::ProviderState,
    credentials: credential::Credentials,
    model_providers: model_provider::ModelProviders,
    models: model::Models,
    routes: route::Routes,
    limits: limits::Limits,
    tool_outputs: tool_outputs::Outputs,
    failure_policy: failure_policy::FailOpen,
    audit: audit::KeptInputs,
    data_loss: data_loss::DataLoss,
    explain: explain::Explained,
}
