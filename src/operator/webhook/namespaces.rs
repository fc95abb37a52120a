//! Asks the API server what is written at a pod's namespace: a review does not say.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use kube::{Api, Client};

use super::review::Question;
use crate::operator::injector::Annotations;

/// How long an answer may take. The API server itself waits for ours.
const PATIENCE: Duration = Duration::from_secs(4);

/// The annotations of the namespace of a new pod; none for any other question. They are asked for anew each time, so that a
/// pod that is created right after its namespace was annotated has what was chosen.
///
/// # Errors
/// Why they are not known. The pod is then not made: it might be refused by a quota, or run for long with other
/// resources than were chosen.
pub(super) async fn annotations(
    client: &Client,
    question: Question,
    request: &AdmissionRequest<DynamicObject>,
) -> Result<Annotations, String> {
    let is_new_pod = question == Question::MutatePod
        && request.operation == Operation::Create
        && request.sub_resource.is_none();
    // Whoever asks is not authenticated: what is no name goes into no path.
    let Some(name) = request.namespace.as_deref().filter(|name| is_new_pod && is_name(name)) else {
        return Ok(Annotations::new());
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = tokio::time::timeout(PATIENCE, namespaces.get_metadata_opt(name)).await;
    let failed = |why: String| format!("the annotations of namespace {name} cannot be read: {why}");
    let found = found.map_err(|_| failed("the API server did not answer in time".to_owned()))?;
    let found = found.map_err(|error| failed(error.to_string()))?;
    // Of one that is not there the API server refuses the pod itself.
    Ok(found.and_then(|namespace| namespace.metadata.annotations).unwrap_or_default())
}

/// Whether it is the name of a namespace (RFC 1123 label).
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(inner)
}
