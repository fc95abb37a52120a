//! `EgressPolicy`, a namespace's policy.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Serialize};

use super::status::PolicyStatus;
use crate::policy::document::Spec;

/// As the API server holds it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressPolicy {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicyStatus>,
}

super::crd::resource!(EgressPolicy, NamespaceResourceScope, "EgressPolicy", "egresspolicies");
