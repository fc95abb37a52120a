//! `edits`: whether calls may write whole files onto others, and edit what is not there.

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::switch::{Permission, Setting, Switch};
use super::{Lowering, Owner, PolicySection};
use crate::call::EditTerms;
use crate::policy::Policy;
use crate::policy::outcome::Outcome;
use crate::policy::scope::{Mode, PolicyScope};

/// What calls may do to files, as a workspace knows them (docs/workspace.md). It is about quality, not safety: a file may
/// change before the call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {overwrite, match}")]
pub struct WrittenEdits {
    /// Whether a call may write a whole file onto a text that is there and not empty. Deny if any policy says so; without
    /// any, Allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<Permission>,
    /// Whether a call may replace a text that does not stand exactly once in its file, or as often as the call says. Deny if
    /// any policy says so; without any, Allow.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Permission>,
}

impl WrittenEdits {
    /// Whether it denies some edits, which a workspace alone can judge.
    pub fn denies_some(&self) -> bool {
        [self.overwrite, self.mismatch].contains(&Some(Permission::Deny))
    }
}

/// The section of all policies.
#[derive(Debug)]
pub(in crate::policy) struct Edits {
    overwrite: Switch,
    mismatch: Switch,
}

#[derive(Serialize)]
pub(in crate::policy) struct EditsListed {
    edits: EditSettings,
}

#[derive(Serialize)]
struct EditSettings {
    overwrite: Setting,
    #[serde(rename = "match")]
    mismatch: Setting,
}

impl PolicySection for Edits {
    type Written = Option<WrittenEdits>;
    type Lowered = WrittenEdits;
    type Listed = EditsListed;

    fn lower(written: &Option<WrittenEdits>, _: &mut Lowering<'_>) -> WrittenEdits {
        written.clone().unwrap_or_default()
    }

    fn unite(policies: Vec<(&Owner, WrittenEdits)>, _: Mode) -> Self {
        let switch = |reason, of: fn(&WrittenEdits) -> Option<Permission>| {
            let written: Vec<_> = policies.iter().map(|(owner, written)| (*owner, of(written))).collect();
            Switch::new("edits", reason, &Outcome::Allowed(None), &written)
        };
        Self {
            overwrite: switch("A whole file would be written onto one that is there", |written| {
                written.overwrite
            }),
            mismatch: switch("The text to replace does not stand there once", |written| written.mismatch),
        }
    }

    fn list(&self, scope: PolicyScope) -> EditsListed {
        let (overwrite, mismatch) = (self.overwrite.list(scope), self.mismatch.list(scope));
        EditsListed { edits: EditSettings { overwrite, mismatch } }
    }

    fn rows(listed: &EditsListed, page: &mut Page) {
        let EditSettings { overwrite, mismatch } = &listed.edits;
        for (title, setting) in
            [("overwriting texts", overwrite), ("editing texts that are not there", mismatch)]
        {
            if setting.rule.is_some() {
                page.add(Heading::Settings, row(title, setting.row("")));
            }
        }
    }
}

impl Policy {
    /// What is said of edits; none where every policy allows all of them.
    pub(crate) fn edits(&self) -> Option<EditTerms> {
        let Edits { overwrite, mismatch } = &self.sections.edits;
        let denies = |switch: &Switch| matches!(switch.at(PolicyScope::All), Outcome::Denied(_));
        match self.mode {
            Mode::Missing | Mode::Unselected => return None,
            Mode::AuditOnly | Mode::Enforced { .. } if !denies(overwrite) && !denies(mismatch) => {
                return None;
            }
            Mode::AuditOnly | Mode::Enforced { .. } => {}
        }
        let directory = self.sections.shell.directory(self.scope()).map(Into::into);
        let overwrite = self.weigh(|scope| overwrite.at(scope).clone());
        let mismatch = self.weigh(|scope| mismatch.at(scope).clone());
        Some(EditTerms { overwrite, mismatch, directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Verdict;
    use crate::policy::document::parse;

    fn terms(policies: &[&str]) -> Option<EditTerms> {
        let document = |(number, spec): (usize, &&str)| {
            format!(
                "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p{number}, namespace: a}}\n\
                 spec: {spec}\n"
            )
        };
        let text: Vec<_> = policies.iter().enumerate().map(document).collect();
        let documents = parse("p.yaml", &text.join("---\n")).unwrap();
        Policy::compile(&documents, &Default::default()).unwrap().edits()
    }

    #[test]
    fn edits_are_judged_where_a_policy_denies_some_and_by_the_strictest() {
        for none in [&["{}"][..], &["{edits: {}}"], &["{edits: {overwrite: Allow, match: Allow}}"]] {
            assert_eq!(terms(none), None, "{none:?}");
        }
        let some = terms(&["{edits: {overwrite: Deny}}", "{edits: {overwrite: Allow}}"]).unwrap();
        assert_eq!(some.overwrite.decision.rule_id(), "a/p0/edits");
        assert!(some.overwrite.denies() && !some.mismatch.denies());
        assert_eq!(some.directory, None);
        let other = terms(&["{edits: {match: Deny}, shell: {directory: /w}}"]).unwrap();
        assert!(!other.overwrite.denies() && other.mismatch.denies());
        assert_eq!(other.directory.as_deref(), Some("/w"));
    }

    #[test]
    fn a_policy_that_only_records_denies_nothing() {
        let alone = terms(&["{enforcement: Audit, edits: {match: Deny}}"]).unwrap();
        assert_eq!(alone.mismatch.decision.verdict, Verdict::WouldDeny);
        let beside = terms(&["{}", "{enforcement: Audit, edits: {match: Deny}}"]).unwrap().mismatch;
        assert!(!beside.denies() && beside.audited.is_some_and(|audited| audited.would_deny()));
    }
}
