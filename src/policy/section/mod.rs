//! The sections of a policy: each is a file, or a directory, with what users write, how it is judged, what several
//! policies make of it together, and how it is listed and explained.
//!
//! To add one: its file here with an implementation of [`Section`], its line in `sections!`, its field in
//! [`super::document::Spec`]. Whoever decides by it reads [`Sections`].

pub mod audit;
pub mod credential;
pub mod destination;
pub mod failure_policy;
pub mod hosted_tools;
pub mod limits;
mod lowering;
pub mod page;
mod provider_state;
pub mod switch;
mod text;
pub mod tool;
mod tool_default;

use serde::Serialize;

use super::document::Spec;
use super::scope::{Mode, Owner, PolicyScope};
use page::Page;

pub(super) use lowering::{Lowering, Problems};
pub(super) use text::{namespace, policy_name};

/// One section, as the policies that select a pod decide it together.
pub(super) trait Section: Sized {
    /// Its field of [`Spec`].
    type Written;
    /// What one policy writes, judged.
    type Lowered;
    /// Its keys in a listing.
    type Listed: Serialize;

    /// Judges what one policy writes, and compiles it; mistakes are gathered.
    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered;

    /// Unites what the policies write that select a pod, the cluster's first.
    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self;

    /// The section as the policies set it that decide.
    fn list(&self, scope: PolicyScope) -> Self::Listed;

    /// The same for people.
    fn rows(listed: &Self::Listed, page: &mut Page);
}

/// Declares the sections by their fields in [`Spec`], in the order of a listing.
macro_rules! sections {
    ($($field:ident: $section:ty,)*) => {
        /// All sections of one policy, judged.
        pub(super) struct LoweredSections {
            $(pub(super) $field: <$section as Section>::Lowered,)*
        }

        /// All sections, as the policies that select a pod decide them together.
        #[derive(Debug)]
        pub(super) struct Sections {
            $(pub(super) $field: $section,)*
        }

        /// All sections of a listing.
        #[derive(Serialize)]
        pub(super) struct ListedSections {
            $(#[serde(flatten)] $field: <$section as Section>::Listed,)*
        }

        impl LoweredSections {
            pub(super) fn new<'a>(spec: &'a Spec, lowering: &mut Lowering<'a>) -> Self {
                Self { $($field: <$section>::lower(&spec.$field, lowering),)* }
            }
        }

        impl Sections {
            /// Unites the sections of all policies that select a pod, the cluster's first.
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
    hosted_tools: hosted_tools::HostedTools,
    provider_state: provider_state::ProviderState,
    credentials: credential::Credentials,
    limits: limits::Limits,
    failure_policy: failure_policy::FailOpen,
    audit: audit::KeptInputs,
}
