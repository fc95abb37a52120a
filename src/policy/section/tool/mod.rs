//! `tools`: rules about the tool calls in a model's answers.

mod control_files;
mod decide;
mod derived;
mod explain;
mod listed;
mod lower;
mod names;
mod rule;
mod when;
pub(in crate::policy) mod written;

use super::page::Page;
use super::{Lowering, Owner, PolicySection};
use crate::decision::RuleId;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};
use rule::CallRule;

pub(in crate::policy) use control_files::is_place;
pub use names::covers;
pub(in crate::policy) use names::{NamePattern, ToolName};
pub(in crate::policy) use rule::Tools;

impl PolicySection for Tools {
    type Written = Vec<written::ToolRule>;
    type Lowered = Vec<CallRule>;
    type Listed = listed::ToolsListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, _: Mode) -> Self {
        Self::new(policies.into_iter().flat_map(|(_, rules)| rules).collect())
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        listed::list(self.all())
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        listed::rows(listed, page);
    }
}

impl Policy {
    /// The parameters that the condition of a tool rule reads, each once; none of another rule.
    pub fn parameters(&self, rule: &RuleId) -> Vec<String> {
        let rule = self.sections.tools.all().iter().find(|each| each.id == *rule);
        let mut names = Vec::new();
        if let Some(condition) = rule.and_then(|rule| rule.condition.as_ref()) {
            condition.add_params(&mut names);
        }
        names
    }
}
