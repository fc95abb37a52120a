//! The text that replaces a denied tool call (design section 6.5).

use crate::call::CallVerdict;
use crate::id::Id;

/// The longest name that is shown, in characters.
const SHOWN: usize = 128;

/// Returns the text that replaces a call; `event` is the id of the call's event, and `ask_at` where the agent may ask about
/// it. It ends a paragraph, because clients join the next text to it.
pub(super) fn text(
    (name, namespace): (&str, Option<&str>),
    verdict: &CallVerdict,
    event: Id,
    ask_at: Option<&str>,
) -> String {
    let decision = &verdict.decision;
    let rule = decision.rule.as_ref().map_or("postern/builtin/default-deny", |rule| rule.as_str());
    let reason = decision.reason.as_deref().unwrap_or("Denied by policy");
    let tool = namespace.map_or_else(|| shown(name), |namespace| shown(&format!("{namespace}.{name}")));
    let advice = verdict.advice.as_str();
    let ask = ask_at.map(|place| format!("Ask: {place}{event}\n")).unwrap_or_default();
    format!(
        "[postern] Tool call blocked by policy\nTool: {tool}\nRule: {rule}\nReason: {reason}\n{advice}\n\
         {ask}Event: {event}\n\n"
    )
}

/// Returns a name that a model chose, fit to be shown: a plain name as it is, any other in quotes and without control
/// characters, quotes and direction marks, so that it cannot pass for other lines of the text.
pub(crate) fn shown(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    if !name.is_empty() && name.chars().count() <= SHOWN && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let fit = name.chars().filter(|c| *c == ' ' || (!c.is_control() && !c.is_whitespace() && *c != '"'));
    let kept: String = fit.filter(|c| c.is_ascii() || c.is_alphanumeric()).take(SHOWN).collect();
    format!("\"{kept}\"")
}
