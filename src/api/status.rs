//! What the operator says of a policy, in its status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the operator says of the policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// The generation of the policy that all of this is said of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: it could be read, and compiles. `Programmed`: every pod that it selects enforces its newest
    /// revision. `Ready`: both. `Stalled`, while the policy is not accepted: somebody must change it.
    pub conditions: Vec<Condition>,
    /// How many pods the policy selects, those included that should have a gateway and have none.
    pub selected_pods: i64,
    /// How many of them say that they enforce the newest revision.
    pub enforcing_pods: i64,
    /// `N/M`: of M selected pods N enforce the newest revision. `N/M, K unguarded`: K of them have no gateway.
    pub enforcing: String,
    /// The selected pods that do not, as `namespace/pod`, while they are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_enforcing: Vec<String>,
    /// How many selected pods have no gateway although their namespace is labelled: they ran before the label, or were
    /// made while the webhook was not installed. They reach any address.
    pub unguarded_pods: i64,
    /// Those, as `namespace/pod`, while they are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unguarded: Vec<String>,
    /// The revision of the namespace's policies together. A cluster policy has none, since each namespace has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When the operator last compared all of this with the cluster: at most some fifteen minutes ago, while one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Time>,
}
