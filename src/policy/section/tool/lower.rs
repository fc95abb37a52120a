//! Rules about tool calls, judged and compiled.

use crate::fold::fold;
use crate::policy::condition::RegexBudget;
use crate::yaml::field;

use super::super::lowering::each;
use super::super::{Lowering, Problems, text};
use super::names::ToolName;
use super::rule::CallRule;
use super::when;
use super::written::{ToolAction, ToolRule};

/// Compiles the tool rules of a policy; those with mistakes are left out.
pub(super) fn lower<'a>(written: &'a [ToolRule], lowering: &mut Lowering<'a>) -> Vec<CallRule> {
    let mut room = RegexBudget::default();
    let rules = written.iter().enumerate().map(|(number, written)| {
        let path = field::item("spec.tools", number);
        lowering.rule_name(&path, &written.name);
        rule(&path, written, &mut room, lowering)
    });
    rules.flatten().collect()
}

fn rule(
    path: &str,
    written: &ToolRule,
    room: &mut RegexBudget,
    lowering: &mut Lowering<'_>,
) -> Option<CallRule> {
    let (owner, problems) = (lowering.owner, &mut lowering.problems);
    let names = tools(path, written, problems);
    let condition = written
        .when
        .as_ref()
        .map(|condition| when::lower(&field::key(path, "when"), condition, written.kind, room, problems));
    if written.action.is_none() {
        problems.add(field::key(path, "action"), "is required: Deny, Audit or Allow");
    }
    let reason = written.reason.clone().unwrap_or_default();
    problems.keep(&field::key(path, "reason"), text::reason(&reason));
    // A condition with a mistake must not be taken for none.
    let condition = match condition {
        Some(compiled) => Some(compiled?),
        None => None,
    };
    Some(CallRule {
        id: owner.rule(&written.name),
        tier: owner.tier,
        audit: owner.audit,
        kind: written.kind,
        names: names?,
        action: written.action?,
        condition,
        reason,
    })
}

/// Reads the names of a rule; none but a kind is fine.
fn tools(path: &str, written: &ToolRule, problems: &mut Problems) -> Option<Vec<ToolName>> {
    let list = field::key(path, "tools");
    let Some(names) = &written.tools else {
        if written.kind.is_none() {
            problems.add(path, "needs `kind` or `tools`");
        }
        return Some(Vec::new());
    };
    if names.is_empty() {
        problems.add(list.as_str(), "name at least one tool, or leave the field out");
    }
    let folded = written.action != Some(ToolAction::Allow);
    each(&list, names, problems, |name| {
        text::pattern(name)?;
        if folded && fold(name).is_empty() {
            return Err("has no visible character".to_owned());
        }
        Ok(if folded { ToolName::spelled(name) } else { ToolName::exact(name) })
    })
}
