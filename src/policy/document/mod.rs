//! What users write: the policy resources, in the words of the YAML. Requiredness and everything else that
//! serde cannot say is judged where a document is compiled, so that several mistakes are told at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

pub mod limits;
pub mod tool;

pub use super::source::{Origin, parse};
use crate::call::Dialect;

/// The group and version of every policy resource.
pub const API_VERSION: &str = "postern.dev/v1alpha1";

/// One policy resource: an `EgressPolicy` (namespaced) or a `ClusterEgressPolicy`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a policy document")]
pub struct Document {
    pub api_version: String,
    pub kind: Option<Kind>,
    pub metadata: Metadata,
    pub spec: Spec,
    /// Written by the operator; read from a cluster's own output and not looked at.
    #[serde(skip_serializing)]
    pub status: Ignored,
    /// Where it was read.
    #[serde(skip)]
    pub origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    EgressPolicy,
    ClusterEgressPolicy,
}

impl Document {
    /// `-` for the cluster's; `default` where an `EgressPolicy` names none.
    pub fn namespace(&self) -> &str {
        match (self.kind, &self.metadata.namespace) {
            (Some(Kind::ClusterEgressPolicy), _) => "-",
            (Some(Kind::EgressPolicy) | None, None) => "default",
            (Some(Kind::EgressPolicy) | None, Some(namespace)) => namespace,
        }
    }

    /// `namespace/policy`, or `-/policy`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.namespace(), self.metadata.name)
    }
}

/// A resource's metadata: name and namespace; what else Kubernetes keeps there is accepted and not looked at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping with `name`")]
pub struct Metadata {
    pub name: String,
    /// `default` where an `EgressPolicy` names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing)]
    pub labels: Ignored,
    #[serde(skip_serializing)]
    pub annotations: Ignored,
    #[serde(skip_serializing)]
    pub uid: Ignored,
    #[serde(skip_serializing)]
    pub resource_version: Ignored,
    #[serde(skip_serializing)]
    pub generation: Ignored,
    #[serde(skip_serializing)]
    pub creation_timestamp: Ignored,
    #[serde(skip_serializing)]
    pub deletion_timestamp: Ignored,
    #[serde(skip_serializing)]
    pub deletion_grace_period_seconds: Ignored,
    #[serde(skip_serializing)]
    pub managed_fields: Ignored,
    #[serde(skip_serializing)]
    pub owner_references: Ignored,
    #[serde(skip_serializing)]
    pub finalizers: Ignored,
}

/// What both kinds share; `namespaceSelector` belongs to the cluster's alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a policy's spec, a mapping")]
pub struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    /// Empty or absent: every injected pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_tools: Option<tool::HostedTools>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<tool::Permission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_default: Option<tool::Permission>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<tool::Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<limits::Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<tool::Audit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
}

/// Labels to compare: all of `matchLabels` and all of `matchExpressions` must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a selector: {matchLabels, matchExpressions}")]
pub struct Selector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "an expression: {key, operator, values}")]
pub struct Expression {
    pub key: String,
    pub operator: Option<Operator>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enforcement {
    Enforce,
    Audit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    Closed,
    Open,
}

/// A rule about hosts or address ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a destination: {name, hosts or cidrs, ports, action, …}")]
pub struct Destination {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<i64>>,
    pub action: Option<Action>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Dialect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_ech: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Inspect,
    Tunnel,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upgrade {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    Opaque,
}

/// One entry of a method and path allow-list; what is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "an endpoint: {methods, path}")]
pub struct Endpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A key that the gateway puts in a placeholder's place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(
    expecting = "a credential: {name, hosts, ports, placeholder, require, sigV4, secretKeyRef or fromEnv or fromFile}"
)]
pub struct Credential {
    pub name: String,
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The value is an access key, and requests are signed with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sig_v4: Option<SigV4>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "what is signed for: {service, region}"
)]
pub struct SigV4 {
    pub service: String,
    pub region: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a key of a Secret: {name, key}")]
pub struct SecretKeyRef {
    pub name: String,
    pub key: String,
}

/// Something that may stand there and has no meaning here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Serialize for Ignored {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "Inspect",
            Self::Tunnel => "Tunnel",
            Self::Deny => "Deny",
        })
    }
}
