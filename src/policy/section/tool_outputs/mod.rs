//! `toolOutputs`: which results of tools are shortened in requests to models, and how. It is no protection: nothing is
//! stricter or recorded by it, and where only Audit policies select the pod nothing is shortened.

mod lower;
#[cfg(test)]
mod tests;
pub(in crate::policy) mod written;

use std::sync::Arc;

use serde::Serialize;

use super::page::{Heading, Page, row};
use super::tool::ToolName;
use super::{Lowering, Owner, PolicySection};
use crate::call::name::Called;
use crate::call::{Kind, Tool};
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope, TIERS, Tier};
use crate::tool_output::Shortening;
use crate::tool_output::request::Settings;
use written::WrittenToolOutputs;

/// Which results are shortened, and how.
#[derive(Debug)]
pub struct ToolOutputs {
    of: Vec<OutputsOf>,
    shortening: Shortening,
}

#[derive(Debug)]
enum OutputsOf {
    Kind(Kind),
    Tools(Vec<ToolName>),
}

impl PartialEq for ToolOutputs {
    fn eq(&self, other: &Self) -> bool {
        self.shortening == other.shortening && self.of == other.of
    }
}

impl PartialEq for OutputsOf {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Kind(kind), Self::Kind(others)) => kind == others,
            (Self::Tools(names), Self::Tools(others)) => {
                names.iter().map(|name| &name.written).eq(others.iter().map(|name| &name.written))
            }
            (Self::Kind(_), Self::Tools(_)) | (Self::Tools(_), Self::Kind(_)) => false,
        }
    }
}

impl Settings for ToolOutputs {
    fn shortening(&self) -> &Shortening {
        &self.shortening
    }

    fn covers(&self, tool: &Tool<'_>) -> bool {
        self.of.iter().any(|of| match of {
            OutputsOf::Kind(kind) => tool.kinds.contains(kind),
            OutputsOf::Tools(names) => {
                let called = Called::of(tool);
                names.iter().any(|name| name.covers(&called))
            }
        })
    }

    /// Of the same tools, and of those that read files.
    fn covers_repeats(&self, tool: &Tool<'_>) -> bool {
        tool.kinds.contains(&Kind::Read) || self.covers(tool)
    }
}

/// The section of all policies: the namespace's where it writes one, else the cluster's.
#[derive(Debug)]
pub(in crate::policy) struct Outputs {
    enforced: Option<Arc<ToolOutputs>>,
    rule: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct OutputsListed {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_outputs: Option<OutputsSetting>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputsSetting {
    of: Vec<String>,
    /// Above what a result is cut, in words; absent where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    compress_above: Option<String>,
    repeats: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl PolicySection for Outputs {
    type Written = Option<WrittenToolOutputs>;
    type Lowered = Option<LoweredOutputs>;
    type Listed = OutputsListed;

    fn lower(written: &Option<WrittenToolOutputs>, lowering: &mut Lowering<'_>) -> Option<LoweredOutputs> {
        let written = written.as_ref()?;
        lower::lower(written, &mut lowering.problems).map(|outputs| LoweredOutputs(Arc::new(outputs)))
    }

    fn unite(policies: Vec<(&Owner, Option<LoweredOutputs>)>, _: Mode) -> Self {
        let enforced = policies.into_iter().filter(|(owner, _)| PolicyScope::Enforced.shows(owner.audit));
        // The cluster's come first.
        let last =
            enforced.filter_map(|(owner, outputs)| Some((owner, outputs?))).max_by_key(|(owner, _)| {
                // Of one tier all say the same: the first is named.
                (owner.tier != Tier::Cluster, std::cmp::Reverse(owner.policy.clone()))
            });
        match last {
            None => Self { enforced: None, rule: None },
            Some((owner, LoweredOutputs(outputs))) => {
                Self { enforced: Some(outputs), rule: Some(owner.rule("toolOutputs").to_string()) }
            }
        }
    }

    fn list(&self, _: PolicyScope) -> OutputsListed {
        let setting = self.enforced.as_ref().map(|outputs| OutputsSetting {
            of: outputs.of.iter().flat_map(OutputsOf::words).collect(),
            compress_above: outputs.shortening.compress.map(|compress| compress.above.to_string()),
            repeats: outputs.shortening.repeats.as_str(),
            rule: self.rule.clone(),
        });
        OutputsListed { tool_outputs: setting }
    }

    fn rows(listed: &OutputsListed, page: &mut Page) {
        let Some(OutputsSetting { of, compress_above, repeats, rule }) = &listed.tool_outputs else { return };
        let cut = compress_above
            .as_ref()
            .map_or_else(|| "nothing is cut".to_owned(), |above| format!("cut above {above}"));
        let rule = rule.as_deref().unwrap_or_default();
        let words = format!("{cut}, repeats: {repeats}  [{rule}]");
        page.add(Heading::Settings, row(&format!("results of {}", of.join(", ")), words));
    }
}

impl OutputsOf {
    fn words(&self) -> Vec<String> {
        match self {
            Self::Kind(kind) => vec![format!("kind {}", kind.as_str())],
            Self::Tools(names) => names.iter().map(|name| name.written.to_string()).collect(),
        }
    }
}

/// The section of one policy.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::policy) struct LoweredOutputs(Arc<ToolOutputs>);

/// The sections of policies that apply together, one for each tier.
#[derive(Default)]
pub(in crate::policy) struct OutputsClaims([Option<(LoweredOutputs, String)>; TIERS]);

impl OutputsClaims {
    /// Returns the field and what is wrong with it, where another policy of the tier says something else. `place` is where
    /// this one is written.
    pub(in crate::policy) fn clash(
        &mut self,
        tier: Tier,
        lowered: Option<&LoweredOutputs>,
        place: impl FnOnce(&str) -> String,
    ) -> Option<(&'static str, String)> {
        let (lowered, first) = (lowered?, self.0.get_mut(tier.index())?);
        let Some((other, at)) = first else {
            *first = Some((lowered.clone(), place(SECTION)));
            return None;
        };
        let message = format!("differs from that of {at}; policies that apply together write the same");
        (lowered != other).then_some((SECTION, message))
    }
}

const SECTION: &str = "spec.toolOutputs";

impl Policy {
    /// Which results of tools are shortened, by the Enforce policies.
    pub fn tool_outputs(&self) -> Option<&Arc<ToolOutputs>> {
        self.sections.tool_outputs.enforced.as_ref()
    }
}
