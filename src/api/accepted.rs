//! From an object of the API server to the document that gateways are given, by the code with which they read it.

use crate::policy::document::Document;
use crate::problem::Problem;

/// Reads an `EgressPolicy` or `ClusterEgressPolicy` as the API server holds it. Its name and namespace stand for a file
/// in problems. What a laptop may write and a cluster may not (`fromEnv`, `fromFile`) is a problem.
///
/// # Errors
/// Everything that is wrong with it, with the path of each field.
pub fn accepted(object: &serde_json::Value) -> Result<Document, Vec<Problem>> {
    let mut documents = crate::policy::document::parse("object", &object.to_string())?;
    documents.pop().ok_or_else(Vec::new)
}
