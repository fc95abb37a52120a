//! The operator's objects in a cluster: how they are read, made, written and deleted.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::pod;

/// The label by which the operator knows what it wrote.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value, and the field manager.
pub(super) const MANAGER: &str = "postern-operator";
/// Seconds that kubelet lets a pod end by itself whose agent may be talking past a gateway.
const GRACE: u32 = 1;

/// The data of a Secret.
pub(super) type SecretData = BTreeMap<String, Vec<u8>>;

/// An operation that the API server did not carry out.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {}", reason(.source))]
pub(super) struct ObjectError {
    operation: String,
    source: kube::Error,
}

/// The operator's objects of a namespace as they are now.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) policy: Option<ConfigMap>,
    pub(super) ca: Option<SecretData>,
    pub(super) credentials: Option<SecretData>,
}

impl Current {
    pub(super) async fn read(client: &Client, namespace: &str) -> Result<Self, ObjectError> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let (policy, ca, credentials) = tokio::join!(
            maps.get_opt(pod::POLICY_CONFIG_MAP),
            secrets.get_opt(pod::CA_SECRET),
            secrets.get_opt(pod::CREDENTIALS_SECRET),
        );
        let read = |name| move |error| failed("read", namespace, name, error);
        Ok(Self {
            policy: policy.map_err(read(pod::POLICY_CONFIG_MAP))?,
            ca: ca.map_err(read(pod::CA_SECRET))?.as_ref().map(data),
            credentials: credentials.map_err(read(pod::CREDENTIALS_SECRET))?.as_ref().map(data),
        })
    }
}

/// A pod as Events refer to it.
pub(super) fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// The data of a Secret.
pub(super) fn data(secret: &Secret) -> SecretData {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

/// Data as a Secret holds it.
pub(super) fn byte_strings(data: SecretData) -> BTreeMap<String, ByteString> {
    data.into_iter().map(|(key, value)| (key, ByteString(value))).collect()
}

/// A Secret of the operator's.
pub(super) fn secret(namespace: &str, name: &str, data: &SecretData) -> Secret {
    let data = Some(byte_strings(data.clone()));
    Secret { metadata: metadata(namespace, name), data, ..Secret::default() }
}

/// Name, namespace and the label of the operator's objects.
pub(super) fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), MANAGER.to_owned())])),
        ..ObjectMeta::default()
    }
}

/// The parameters of a patch by the operator.
pub(super) fn patching() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// The parameters of a create or replace by the operator.
pub(super) fn writing() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// Writes an object whole by server-side apply. `force` takes over fields that others own: nobody else may write them.
pub(super) async fn apply<K>(client: &Client, object: &K) -> Result<(), ObjectError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Serialize + DeserializeOwned,
    K: Clone + std::fmt::Debug,
{
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    let applied = api.patch(&name, &patching().force(), &Patch::Apply(object)).await;
    applied.map(drop).map_err(|error| failed("write", &namespace, &name, error))
}

/// Deletes an object; one that is gone already is no error.
pub(super) async fn delete<K>(client: &Client, namespace: &str, name: &str) -> Result<(), ObjectError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(failed("delete", namespace, name, error)),
    }
}

/// Deletes a pod whose agent may be talking past a gateway; returns whether it was still there. The UID keeps it from
/// being another pod of the same name.
pub(super) async fn delete_pod(
    client: &Client,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<bool, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let parameters = DeleteParams {
        grace_period_seconds: Some(GRACE),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    match pods.delete(name, &parameters).await {
        Ok(_) => Ok(true),
        Err(error) if is_replaced(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the object that a request was about is gone, or is another one by now.
pub(super) fn is_replaced(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found() || status.is_conflict())
}

/// The error of an operation on an object.
pub(super) fn failed(verb: &str, namespace: &str, name: &str, source: kube::Error) -> ObjectError {
    ObjectError { operation: format!("{verb} {namespace}/{name}"), source }
}

/// An error of the API server in its own words, without the structure around them.
pub(super) fn reason(error: &kube::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only the API server's own answers have better words")]
    match error {
        kube::Error::Api(status) if status.message.is_empty() => format!("HTTP {}", status.code),
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
