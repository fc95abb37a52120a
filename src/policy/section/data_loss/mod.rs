//! `dataLoss`: what becomes of secrets in what leaves (record.md, sections 1.1 and 1.3).

mod decide;
mod files;
mod lower;
mod named_value;
pub mod written;

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

pub use decide::{AskedFinding, FindingPlace, FindingVerdict};
pub use files::NamedFile;
pub use named_value::NamedValue;
pub use written::{FindingAction, WrittenDataLoss};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::decision::RuleId;
use crate::dlp::{Confidence, Detector, Detectors};
use crate::policy::pattern::Pattern;
use crate::policy::scope::{Mode, PolicyScope};

const SECTION: &str = "dataLoss";

/// `dataLoss` of one policy.
pub(in crate::policy) struct LoweredDataLoss {
    stance: Stance,
    patterns: Vec<Detector>,
    /// With the field each stands in.
    pub(in crate::policy) values: Vec<(String, NamedValue)>,
}

/// What one policy says of secrets.
#[derive(Debug)]
struct Stance {
    /// None where it leaves that to the table.
    action: Option<FindingAction>,
    /// What is done about credential files and protected paths that are named; none where it leaves that to the table.
    files: [Option<FindingAction>; 2],
    /// From which confidence on something is done.
    least: Confidence,
    allow: HashSet<(String, [u8; 32])>,
    home: Vec<(String, Vec<Pattern>)>,
}

impl Default for Stance {
    fn default() -> Self {
        Self {
            action: None,
            files: [None; 2],
            least: Confidence::High,
            allow: HashSet::new(),
            home: Vec::new(),
        }
    }
}

/// `dataLoss` of all policies that write it.
#[derive(Debug)]
pub(in crate::policy) struct DataLoss {
    parts: Vec<PolicyStance>,
    detectors: Arc<Detectors>,
    values: Vec<Arc<NamedValue>>,
}

#[derive(Debug)]
struct PolicyStance {
    stance: Stance,
    audit: bool,
    rule: RuleId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct DataLossListed {
    data_loss: StanceListed,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StanceListed {
    action: &'static str,
    confidence: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patterns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    /// The groups of files that no call may name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied_files: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl PolicySection for DataLoss {
    type Written = Option<WrittenDataLoss>;
    type Lowered = Option<LoweredDataLoss>;
    type Listed = DataLossListed;

    fn lower(written: &Self::Written, lowering: &mut Lowering<'_>) -> Self::Lowered {
        Some(lower::lower(written.as_ref()?, lowering))
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self {
        let (mut parts, mut patterns, mut values) = (Vec::new(), Vec::<Detector>::new(), Vec::new());
        for (owner, lowered) in policies {
            let Some(LoweredDataLoss { stance, patterns: own, values: named }) = lowered else { continue };
            parts.push(PolicyStance { stance, audit: owner.audit, rule: owner.rule(SECTION) });
            patterns.extend(own);
            if mode.heeds(owner.audit) {
                values.extend(named.into_iter().map(|(_, value)| Arc::new(value)));
            }
        }
        // Each pattern was compiled, and there are 32 of a policy: the literals of many policies fit.
        let own = (!patterns.is_empty()).then(|| Detectors::with(patterns).ok().map(Arc::new)).flatten();
        Self { parts, detectors: own.unwrap_or_else(|| Arc::clone(Detectors::shared())), values }
    }

    fn list(&self, scope: PolicyScope) -> DataLossListed {
        let strictest =
            self.visible(scope).max_by_key(|part| part.stance.action.unwrap_or(FindingAction::Redact));
        let least = self.visible(scope).map(|part| part.stance.least).min().unwrap_or(Confidence::High);
        let own = self.detectors.iter().filter(|detector| detector.id.starts_with("pattern:"));
        DataLossListed {
            data_loss: StanceListed {
                action: strictest
                    .and_then(|part| part.stance.action)
                    .unwrap_or(FindingAction::Redact)
                    .as_str(),
                confidence: least.as_str(),
                denied_files: [NamedFile::Credential, NamedFile::Protected]
                    .into_iter()
                    .filter(|group| self.visible(scope).any(|part| part.stance.denies_files(*group)))
                    .map(NamedFile::kind)
                    .collect(),
                patterns: own.map(|detector| detector.id.clone()).collect(),
                values: self.values.iter().map(|value| value.detector()).collect(),
                rule: strictest.map(|part| part.rule.as_str().to_owned()),
            },
        }
    }

    fn rows(listed: &DataLossListed, page: &mut Page) {
        let StanceListed { action, confidence, patterns, values, denied_files, rule } = &listed.data_loss;
        let own = [&patterns[..], values].concat().join(", ");
        let also = if own.is_empty() { String::new() } else { format!(", {own} too") };
        let by = rule.as_deref().unwrap_or("default");
        page.add(Heading::Settings, row("secrets", format!("{action} ({confidence}){also}  [{by}]")));
        if !denied_files.is_empty() {
            page.add(Heading::Settings, row("files that no call may name", denied_files.join(", ")));
        }
    }
}

impl Stance {
    fn of_files(&self, group: NamedFile) -> Option<FindingAction> {
        match group {
            NamedFile::Credential => self.files[0],
            NamedFile::Protected => self.files[1],
        }
    }

    fn denies_files(&self, group: NamedFile) -> bool {
        self.of_files(group) >= Some(FindingAction::Redact)
    }
}

impl DataLoss {
    fn visible(&self, scope: PolicyScope) -> impl Iterator<Item = &PolicyStance> {
        self.parts.iter().filter(move |part| scope.shows(part.audit))
    }
}

#[cfg(test)]
mod tests;
