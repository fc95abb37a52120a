//! Whether an event is evidence for a grant, or against one.

use crate::decision::Verdict;
use crate::event::{Event, Kind};

/// What an event says about a grant.
pub(super) enum Standing {
    /// It happened, and nothing but a missing rule spoke against it.
    Went,
    /// Nothing of its destination is granted.
    Closes(String),
    /// It is no evidence itself.
    Passes(String),
}

/// The denials that say no more than that a rule is missing.
const MISSING: &[&str] = &["default-deny", "endpoint", "no-policy"];

/// Parts of a policy that are rules themselves, and judge something else than the destination.
const BESIDE: &[&str] = &["hostedTools", "providerState", "limits", "failurePolicy", "credentials", "shell"];

/// Whether a secret went, or would have gone, to a host that is no model's: what an attacker did is in such a record too.
fn is_loss(event: &Event) -> bool {
    event.provider.is_none() && event.dlp.iter().any(|finding| finding.confidence == "High")
}

pub(super) fn standing(event: &Event) -> Standing {
    if is_loss(event) {
        return Standing::Closes(format!("a finding ({})", event.id));
    }
    let decision = &event.decision;
    let rule = decision.rule.as_ref().map_or("", |rule| rule.as_str());
    match decision.verdict {
        Verdict::Allow | Verdict::Audit => return Standing::Went,
        Verdict::Unknown => return Standing::Passes("a verdict of a later version".to_owned()),
        Verdict::Deny | Verdict::WouldDeny => {}
    }
    let is_recorded = decision.verdict == Verdict::WouldDeny;
    let part = rule.split('/').nth(2).unwrap_or_default();
    let denied = || format!("denied by {rule}");
    if rule.is_empty() || rule.starts_with("postern/builtin/") {
        return match part {
            "denied-address" => Standing::Closes("a floor: denied addresses".to_owned()),
            "minting" => Standing::Passes("mints credentials".to_owned()),
            "provider-unknown" => {
                Standing::Passes("nobody knows what speaks there: say `provider`".to_owned())
            }
            _ if is_recorded && (rule.is_empty() || MISSING.contains(&part)) => Standing::Went,
            _ if rule.is_empty() => Standing::Passes("denied, by no rule".to_owned()),
            _ => Standing::Passes(denied()),
        };
    }
    if is_recorded && part == "toolDefault" {
        return Standing::Went;
    }
    let is_beside = BESIDE.contains(&part) || event.kind == Kind::ToolCall;
    if is_beside { Standing::Passes(denied()) } else { Standing::Closes(denied()) }
}
