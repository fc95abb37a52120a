//! Reads the annotations of a pod's namespace from the API server: a review does not contain them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use kube::{Api, Client};

use super::review::AdmissionQuestion;
use crate::operator::injector::Annotations;

/// How long an answer may take. The API server itself is waiting for the webhook's.
const PATIENCE: Duration = Duration::from_secs(4);

/// The annotations of the namespace of a new pod; none for any other question. They are read anew each time, so that
/// they count for a pod that is created right after its namespace was annotated.
///
/// # Errors
/// Fails if they cannot be read. The pod is then not created: with other resources than were chosen, a quota might
/// refuse it, or it might run with them for long.
pub(super) async fn annotations(
    client: &Client,
    question: AdmissionQuestion,
    request: &AdmissionRequest<DynamicObject>,
) -> Result<Annotations, String> {
    let is_new_pod = question == AdmissionQuestion::MutatePod
        && request.operation == Operation::Create
        && request.sub_resource.is_none();
    // The client is not authenticated: only a valid name may become part of a path.
    let Some(name) = request.namespace.as_deref().filter(|name| is_new_pod && is_name(name)) else {
        return Ok(Annotations::new());
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = tokio::time::timeout(PATIENCE, namespaces.get_metadata_opt(name)).await;
    let failed = |why: String| format!("the annotations of namespace {name} cannot be read: {why}");
    let read = read.map_err(|_| failed("the API server did not answer in time".to_owned()))?;
    let namespace = read.map_err(|error| failed(error.to_string()))?;
    // If the namespace does not exist, the API server refuses the pod itself.
    Ok(namespace.and_then(|namespace| namespace.metadata.annotations).unwrap_or_default())
}

/// Whether it can be the name of a namespace (RFC 1123 label).
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(inner)
}
