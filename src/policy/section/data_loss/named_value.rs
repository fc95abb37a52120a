//! Values that a policy names, and that must not leave.

use std::sync::Arc;

use crate::decision::RuleId;
use crate::dlp;
use crate::policy::Policy;
use crate::policy::credential::Source;
use crate::problem::Problem;

/// A value that must not leave, without the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedValue {
    /// The rule of the policy's `dataLoss`.
    pub rule: RuleId,
    /// Usable in a file name: lower-case letters, digits, `-` and `.`, no dot first.
    pub name: String,
    pub source: Source,
    /// Where it is written.
    pub(super) place: Problem,
}

impl NamedValue {
    /// The name of its detector, `value:NAME`.
    pub fn detector(&self) -> String {
        dlp::value_detector(&self.name)
    }

    /// The file of `credentials.directory` in which it is mounted. No credential has such a name.
    pub fn file_name(name: &str) -> String {
        format!("value_{name}")
    }

    /// Why a request is denied that cannot be searched for it.
    pub fn unsearched(&self) -> String {
        format!(
            "The value {} that must not leave is not known yet, so that nothing can be searched for it: the Secret that \
             dataLoss.values names has to be there",
            self.name
        )
    }

    /// A problem with it, said where it is written.
    pub fn problem(&self, message: String) -> Problem {
        Problem { message, ..self.place.clone() }
    }
}

impl Policy {
    /// The values that must not leave, of the policies that decide.
    pub fn named_values(&self) -> &[Arc<NamedValue>] {
        &self.sections.data_loss.values
    }
}
