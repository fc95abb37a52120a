//! Rules about tool calls, judged and compiled.

use crate::decision::RuleId;
use crate::fold::fold;
use crate::policy::condition::Room;
use crate::policy::document::tool::{self as document, Action};
use crate::policy::field;
use crate::policy::tool::{Name, Rule};

use super::{Names, Problems, Scope, each, text, when};

/// Compiles the tool rules of a policy; those with mistakes are left out.
pub(super) fn lower<'a>(
    written: &'a [document::Rule],
    scope: &Scope,
    names: &mut Names<'a>,
    problems: &mut Problems,
) -> Vec<Rule> {
    let mut room = Room::default();
    let all = written.iter().enumerate().map(|(number, written)| {
        let path = field::item("spec.tools", number);
        names.add(&path, &written.name, problems);
        rule(&path, written, scope, (&mut room, problems))
    });
    all.flatten().collect()
}

fn rule(
    path: &str,
    written: &document::Rule,
    scope: &Scope,
    (room, problems): (&mut Room, &mut Problems),
) -> Option<Rule> {
    let names = tools(path, written, problems);
    let condition = written.when.as_ref().map(|condition| {
        when::lower(&field::key(path, "when"), condition, written.kind.is_some(), room, problems)
    });
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
    Some(Rule {
        id: RuleId::new(format!("{}/{}", scope.policy, written.name)),
        tier: scope.tier,
        audit: scope.audit,
        kind: written.kind,
        names: names?,
        action: written.action?,
        condition,
        reason,
    })
}

/// Reads the names of a rule; none but a kind is fine.
fn tools(path: &str, written: &document::Rule, problems: &mut Problems) -> Option<Vec<Name>> {
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
    let folded = written.action != Some(Action::Allow);
    each(&list, names, problems, |name| {
        text::pattern(name)?;
        if folded && fold(name).is_empty() {
            return Err("has no visible character".to_owned());
        }
        Ok(if folded { Name::spelled(name) } else { Name::exact(name) })
    })
}
