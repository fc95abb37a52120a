//! `credentials`, as users write them.

use serde::{Deserialize, Serialize};

/// A key that the gateway puts in a placeholder's place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(
    expecting = "a credential: {name, hosts, ports, placeholder, require, sigV4, secretKeyRef or fromEnv or fromFile}"
)]
pub struct Credential {
    /// Unique in the namespace: lower-case letters, digits, `-` and `.`, at most 63.
    pub name: String,
    /// Where the key may go: exact names, no patterns and no addresses.
    pub hosts: Vec<String>,
    /// Absent: 443.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<i64>>,
    /// The key: of a Secret in the policy's namespace, for a ClusterEgressPolicy in the pod's or in one that it names.
    /// Required in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A variable of the gateway's environment. Not in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// A file; a relative path starts at the policy's own. Not in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_file: Option<String>,
    /// What the agent holds instead of the key: 8 to 256 visible ASCII characters. Absent: `postern:NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The value is an access key of AWS, and requests are signed with it instead of carrying it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sig_v4: Option<SigV4>,
    /// Whether any key but the placeholder is refused on these hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<bool>,
}

/// What requests to AWS are signed for (Signature Version 4), and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "what is signed for: {service, region}"
)]
pub struct SigV4 {
    /// As AWS signs for it, such as `bedrock`.
    pub service: String,
    /// Such as `us-east-1`.
    pub region: String,
}

/// A key of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a key of a Secret: {name, key, namespace}"
)]
pub struct SecretKeyRef {
    /// The Secret.
    pub name: String,
    /// The key in it.
    pub key: String,
    /// Where the Secret is, in a ClusterEgressPolicy alone: a namespace of keys that the chart lists
    /// (`rbac.sourceNamespaces`), so that nobody who makes pods beside it can mount it. Absent: the pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
