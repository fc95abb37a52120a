//! `dataLoss`, as users write it.

use serde::{Deserialize, Serialize};

use crate::policy::credential::written::SecretKeyRef;

/// What becomes of secrets in what leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {action, detectors, confidence, allow, home, patterns, values}")]
pub struct WrittenDataLoss {
    /// What is done about a secret. Redact is what happens where nobody writes it: it is replaced in what a model is told,
    /// and a request is refused that holds it elsewhere. Of several policies Deny goes before Redact before Audit before
    /// Allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<FindingAction>,
    /// What the action is about. Absent: Secrets. A call of a tool that names a file of the other two is denied by Deny and
    /// Redact, before it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detectors: Vec<DetectorGroup>,
    /// From which confidence on that is done; what is less sure is recorded. Absent: High.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<LeastConfidence>,
    /// Values that are no secrets, each by the SHA-256 of its decoded bytes; `postern dlp hash` makes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<AllowedValue>,
    /// Further hosts that a secret is for: there it may stand where requests authenticate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub home: Vec<DetectorHome>,
    /// Further secrets, as regular expressions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<SecretPattern>,
    /// Further secrets, as exact values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<SecretValue>,
}

/// What is done about a secret; the later is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum FindingAction {
    /// Nothing.
    Allow,
    /// It is recorded.
    Audit,
    /// It is replaced where somebody tells it a model; elsewhere the request is refused.
    Redact,
    /// The request is refused.
    Deny,
}

impl FindingAction {
    /// The word in events and policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Audit => "Audit",
            Self::Redact => "Redact",
            Self::Deny => "Deny",
        }
    }
}

/// Detectors that an action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum DetectorGroup {
    /// Everything that `postern dlp list` has, and patterns.
    Secrets,
    /// Files that hold credentials, by their names: `.env`, `id_rsa`, `.netrc`, `*.pem` and their like.
    CredentialFiles,
    /// Places by their names: `.ssh`, `.aws`, `.kube`, `secrets`, `/proc/*/environ` and their like.
    ProtectedPaths,
}

impl DetectorGroup {
    /// The word in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secrets => "Secrets",
            Self::CredentialFiles => "CredentialFiles",
            Self::ProtectedPaths => "ProtectedPaths",
        }
    }
}

/// From which confidence on something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum LeastConfidence {
    /// It is a secret, or looks like nothing else.
    High,
    /// It may be one.
    Medium,
}

/// A value that is no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a value: {detector, sha256}")]
pub struct AllowedValue {
    /// The detector that finds it; `postern dlp list` has them.
    pub detector: String,
    /// 64 hexadecimal digits.
    pub sha256: String,
}

/// Hosts that a secret is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {detector, hosts}")]
pub struct DetectorHome {
    /// The detector that finds it; `postern dlp list` has them.
    pub detector: String,
    /// Names and patterns, as in `destinations`.
    pub hosts: Vec<String>,
}

/// A secret that looks like this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a pattern: {name, regex, confidence}")]
pub struct SecretPattern {
    /// Unique in the policy; the detector is `pattern:NAME`.
    pub name: String,
    /// Over bytes, without backreferences; in every branch stands a literal of 3 characters or more.
    pub regex: String,
    /// Absent: High.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<LeastConfidence>,
}

/// A value that must not leave, in whatever form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a value: {name, secretKeyRef or fromEnv or fromFile}")]
pub struct SecretValue {
    /// Unique in the namespace: lower-case letters, digits, `-` and `.`, at most 63. The detector is `value:NAME`.
    pub name: String,
    /// The value, of 8 bytes or more: of a Secret in the policy's namespace, for a ClusterEgressPolicy in the pod's or in
    /// one that it names. Required in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A variable of the gateway's environment. Not in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// A file; a relative path starts at the policy's own. Not in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_file: Option<String>,
}
