//! The custom resources: Kubernetes' traits around the documents of `policy`, and the schemas that the API server holds.

pub mod accepted;
pub mod cluster_egress_policy;
mod constraints;
pub mod crd;
pub mod egress_policy;
mod schema;
pub mod status;
