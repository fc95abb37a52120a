//! `hostedTools`, judged and compiled.

use crate::policy::document::tool::{HostedAction, HostedTools};
use crate::policy::hosted::Section;
use crate::policy::tool::Pattern;
use crate::yaml::field;

use super::{Problems, each, text};

/// Compiles what a policy says of hosted tools; none where it writes neither `action` nor `allow`.
pub(super) fn lower(written: &HostedTools, problems: &mut Problems) -> Option<Section> {
    let list = field::key("spec.hostedTools", "allow");
    let allow = written.allow.as_deref().unwrap_or_default();
    if written.action == Some(HostedAction::Allow) && !allow.is_empty() {
        problems.add(list.as_str(), "belongs to Strip and Deny: the action Allow keeps every hosted tool");
    }
    let allow = each(&list, allow, problems, |name| {
        text::pattern(name)?;
        Ok(Pattern::read(name, str::to_owned))
    })?;
    let action = match (written.action, &written.allow) {
        (None, None) => return None,
        (action, _) => action.unwrap_or(HostedAction::Strip),
    };
    Some(Section { action, allow })
}
