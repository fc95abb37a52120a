//! The denials that are built in about routes.

use crate::decision::Decision;

/// The rule of what is built in about routes.
const RULE: &str = "route";

/// No route takes a request, at a host that only routes answer.
pub fn unrouted() -> Decision {
    Decision::builtin(RULE, "Only models of routes answer at this host here, and no route takes this request")
}

/// A marker names no model of its route.
pub fn unknown_label(label: &str, labels: &[&str]) -> Decision {
    let (label, labels) = (legible(label), labels.join(", "));
    Decision::builtin(RULE, format!("[postern] No model \"{label}\" can be chosen here. Labels: {labels}."))
}

/// A request had to be edited, and its provider takes it as its client made it alone. `what` had to be cut out.
pub fn attested(what: &str) -> Decision {
    let reason = format!(
        "{what} had to be cut out of this request, and the body of a request with the login of a Claude subscription must \
         stay as it is. Set CLAUDE_CODE_ATTRIBUTION_HEADER=0 for the agent, let it use an API key, or choose a model of a \
         route"
    );
    Decision::builtin("subscription-edit", reason)
}

/// A label as somebody wrote it into a system prompt, without what could pass for the end of it or change how the text is
/// shown.
fn legible(label: &str) -> String {
    label.chars().filter(|c| c.is_ascii_graphic() && *c != '"' || c.is_alphanumeric()).collect()
}
