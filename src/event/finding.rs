//! A secret or a file that was found in what an agent sends: the facts, and never the value.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a detector found, where, and what was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// The id of the detector.
    pub detector: Cow<'static, str>,
    /// `Secrets`, `CredentialFiles`, `ProtectedPaths` or `Binary`.
    pub kind: Cow<'static, str>,
    /// `High`, `Medium` or `Low`.
    pub confidence: Cow<'static, str>,
    /// Whether the checksum that such a secret has is right; none of a secret without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<bool>,
    /// Whose text it stands in: `System`, `User`, `Assistant`, `ToolCall`, `ToolResult` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'static, str>>,
    /// The tool whose call or result it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where in the request: `body/messages/14/content`, `header/x-debug`, `path`, `host`.
    pub location: String,
    /// Where in that text it begins, in bytes.
    pub at: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The codings that were undone to find it, the outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<Cow<'static, str>>,
    /// `Redact`, `Deny`, `Audit` or `Allow`.
    pub action: Cow<'static, str>,
    /// Of the value, in hex; only of a detector whose values nobody can guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How many findings of a request are told.
const MOST: usize = 32;

/// Keeps as many as an event has, and of too many those for which most was done.
pub fn keep_worst(findings: &mut Vec<Finding>) {
    if findings.len() > MOST {
        let done = |finding: &Finding| match &*finding.action {
            "Deny" => 0,
            "Redact" => 1,
            _ if finding.confidence == "High" => 2,
            _ => 3,
        };
        findings.sort_by_key(done);
        findings.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_findings_the_denied_one_stays() {
        let of = |action: &'static str| Finding { action: action.into(), ..Finding::default() };
        let mut findings: Vec<Finding> = (0..40).map(|_| of("Audit")).collect();
        findings.push(of("Deny"));
        keep_worst(&mut findings);
        assert_eq!((findings.len(), &*findings[0].action), (MOST, "Deny"));
    }
}
