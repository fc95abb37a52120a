//! What users write: the policy resources, in the words of the YAML. Requiredness and everything else that
//! serde cannot say is judged where a document is compiled, so that several mistakes are told at once.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

pub use super::section::audit::Audit;
pub use super::section::credential::written::{Credential, SecretKeyRef, SigV4};
pub use super::section::data_loss::written::{
    AllowedValue, DetectorGroup, DetectorHome, FindingAction, LeastConfidence, SecretPattern, WrittenDataLoss,
};
pub use super::section::destination::written::{
    Action, Destination, Endpoint, Protocol, Provider, Reach, Upgrade,
};
pub use super::section::edits::WrittenEdits;
pub use super::section::explain::Explain;
pub use super::section::failure_policy::FailurePolicy;
pub use super::section::hosted_tools::{HostedAction, WrittenHostedTools};
pub use super::section::limits::WrittenLimits;
pub use super::section::model::written::{Effort, Images, Params, WrittenModel};
pub use super::section::model_provider::written::{KeyIn, ModelDialect, WrittenModelProvider};
pub use super::section::route::written::{WrittenMatch, WrittenRoute};
pub use super::section::rule::written::{Rule, RuleAction};
pub use super::section::shell::{ShellFiles, WrittenShell};
pub use super::section::switch::Permission;
pub use super::section::tool::written::{Comparison, Scalar, ToolAction, ToolRule, When};
pub use super::section::tool_outputs::written::{
    WrittenAmount, WrittenCompress, WrittenOutputsOf, WrittenToolOutputs,
};
pub use super::source::parse;
pub use crate::decision::Enforcement;
pub use crate::yaml::origin::Origin;

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
    pub hosted_tools: Option<WrittenHostedTools>,
    /// Whether conversations may be kept at the provider (`previous_response_id`, `store`). Deny if any policy says
    /// so, and without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<Permission>,
    /// What becomes of tool calls that no rule names. Deny if any policy says so; without any, Allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_default: Option<Permission>,
    /// Rules about the tool calls in a model's answers. A Deny rule of any policy wins, then an Allow rule, then
    /// `toolDefault`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolRule>,
    /// Rules over the facts of requests, as expressions in CEL. A request goes on where no Deny rule of any policy holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What rules see of shell commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<WrittenShell>,
    /// Whether calls may write whole files onto others, and edit what is not there, as a workspace knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<WrittenEdits>,
    /// How much the agent may send and do. Of several policies the lowest of each limit counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<WrittenLimits>,
    /// What becomes of long results of tools in requests to models. Of several policies the namespace's decides; two of
    /// one tier that differ are a mistake. Absent: they pass as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_outputs: Option<WrittenToolOutputs>,
    /// What becomes of secrets in what leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_loss: Option<WrittenDataLoss>,
    /// What events keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What the agent may ask the gateway at `http://postern.internal/`. Of several policies the least counts; without
    /// any it is Denials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// Keys that the gateway puts in the place of placeholders, so that the agent never has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// Servers of models, for `models`. At most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_providers: Vec<WrittenModelProvider>,
    /// Models of `modelProviders`, for `routes`. At most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<WrittenModel>,
    /// Which models answer requests to models. The cluster's come first, then those of each policy by its id, then in
    /// their order; the first that matches decides. At most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<WrittenRoute>,
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
