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
pub use crate::decision::Enforcement;

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

/// What a policy says. All policies that select a pod apply together; `namespaceSelector` is a cluster policy's alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a policy's spec, a mapping")]
pub struct Spec {
    /// Which namespaces, by their labels. Absent or empty: every namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    /// Which pods, by their labels. Absent or empty: every injected pod. Whoever may change a pod's labels
    /// chooses its policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<Selector>,
    /// Whether the policy is enforced, or only records what it would do. Absent: Enforce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// What becomes of a provider's answer that cannot be understood where a rule could deny a call in it. Of
    /// several policies Closed wins; a policy that does not write it takes no part, and without any it is Closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Where the pods may connect, and what is looked at on the way. What no rule allows is denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
    /// What becomes of tools that run at the provider, beyond the pod's reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_tools: Option<tool::HostedTools>,
    /// Whether conversations may be kept at the provider (`previous_response_id`, `store`). Deny if any policy says
    /// so, and without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<tool::Permission>,
    /// What becomes of tool calls that no rule names. Deny if any policy says so; without any, Allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_default: Option<tool::Permission>,
    /// Rules about the tool calls in a model's answers. A Deny rule of any policy wins, then an Allow rule, then
    /// `toolDefault`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<tool::Rule>,
    /// How much the agent may send and do. Of several policies the lowest of each limit counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<limits::Limits>,
    /// What events keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<tool::Audit>,
    /// Keys that the gateway puts in the place of placeholders, so that the agent never has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
}

/// Labels to compare: all of `matchLabels` and all of `matchExpressions` must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a selector: {matchLabels, matchExpressions}")]
pub struct Selector {
    /// Labels with the value that each must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further tests of labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// One test of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "an expression: {key, operator, values}")]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In` and `NotIn` compare with `values`; `NotIn` and `DoesNotExist` hold where the label is missing.
    pub operator: Option<Operator>,
    /// With `In` and `NotIn`, at least one; with the others none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// It has none of them, or is missing.
    NotIn,
    /// The label is there.
    Exists,
    /// It is missing.
    DoesNotExist,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum FailurePolicy {
    /// It is refused.
    Closed,
    /// It passes as it came, with an event; no bound is lifted.
    Open,
}

/// A rule about hosts or address ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a destination: {name, hosts or cidrs, ports, action, …}")]
pub struct Destination {
    /// Unique in the policy, tools included: lower-case letters, digits, `-` and `.`, at most 63. The rule's id is
    /// `namespace/policy/name`.
    pub name: String,
    /// Names, or addresses that are connected to without a name: `api.example.com`, `*.example.com` (exactly one
    /// label before it), `**.example.com` (one or more), `**` (every name). Either `hosts` or `cidrs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Ranges of addresses, for connections that name no host: `10.20.0.0/16`. The rule is then Deny, or Tunnel with
    /// `ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidrs: Option<Vec<String>>,
    /// Absent: 443, for Inspect also plain HTTP on 80, for Deny every port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<i64>>,
    /// What becomes of a connection.
    pub action: Option<Action>,
    /// With Inspect: the methods and paths that are allowed. Absent: everything, at an LLM provider its inference
    /// endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// With Inspect: the LLM API that speaks there, at a host that is not known. Absent: recognised by host and path,
    /// and at a host that is not known a request that looks like inference is denied. None: nothing speaks there, and
    /// nothing is guarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// With Inspect: whether WebSockets are allowed. Absent: Deny. At an LLM provider `providerState` decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// With Tunnel: whether a TLS handshake that hides its name (ECH) passes. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_ech: Option<bool>,
    /// With Tunnel and `ports`: Opaque passes any bytes, not TLS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Action {
    /// TLS is ended, or plain HTTP read, and each request is decided.
    Inspect,
    /// The bytes pass as they are; Postern sees the name and how many, no more.
    Tunnel,
    /// It is refused, whatever another rule says.
    Deny,
}

/// What speaks at a host that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAIChat,
    /// OpenAI Responses.
    OpenAIResponses,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Bedrock's Converse and InvokeModel.
    Bedrock,
    /// No LLM API: whatever looks like one passes unguarded.
    None,
}

impl Provider {
    /// The dialect that is guarded there.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Anthropic => Some(Dialect::Anthropic),
            Self::OpenAIChat => Some(Dialect::OpenAIChat),
            Self::OpenAIResponses => Some(Dialect::OpenAIResponses),
            Self::Gemini => Some(Dialect::Gemini),
            Self::Bedrock => Some(Dialect::Bedrock),
            Self::None => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Upgrade {
    /// WebSockets are allowed.
    Allow,
    /// They are refused.
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// Any bytes.
    Opaque,
}

/// One entry of a method and path allow-list; what is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "an endpoint: {methods, path}")]
pub struct Endpoint {
    /// In upper case; GET includes HEAD. Absent: every method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Without the query: `*` is one segment, `**` any number, as in `/acme/**`. Absent: every path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

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
