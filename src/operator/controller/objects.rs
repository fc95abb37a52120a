//! The operator's objects in a namespace: how they are read, made and written.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::pod;

/// The label by which the operator knows what it wrote.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value, and the field manager.
pub(super) const MANAGER: &str = "postern-operator";

/// What the API server did not do.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {}", said(.source))]
pub(super) struct ObjectError {
    what: String,
    source: kube::Error,
}

/// The objects of a namespace as they are now.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) policy: Option<ConfigMap>,
    pub(super) ca: Option<BTreeMap<String, Vec<u8>>>,
    pub(super) credentials: Option<BTreeMap<String, Vec<u8>>>,
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
            ca: ca.map_err(read(pod::CA_SECRET))?.map(bytes),
            credentials: credentials.map_err(read(pod::CREDENTIALS_SECRET))?.map(bytes),
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

/// What a Secret holds.
pub(super) fn bytes(secret: Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
}

/// What a Secret is to hold.
pub(super) fn secret_data(data: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, ByteString> {
    data.iter().map(|(key, value)| (key.clone(), ByteString(value.clone()))).collect()
}

/// A Secret of the operator's.
pub(super) fn secret(namespace: &str, name: &str, data: &BTreeMap<String, Vec<u8>>) -> Secret {
    Secret { metadata: metadata(namespace, name), data: Some(secret_data(data)), ..Secret::default() }
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

/// Writes an object whole by server-side apply: fields that others own are taken over, nobody else may write these.
pub(super) async fn apply<K>(client: &Client, object: &K) -> Result<(), ObjectError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Serialize + DeserializeOwned,
    K: Clone + std::fmt::Debug,
{
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    let parameters = PatchParams::apply(MANAGER).force();
    let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
    applied.map(drop).map_err(|error| failed("write", &namespace, &name, error))
}

/// Deletes an object; one that is gone already is well.
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

/// What could not be done with an object.
pub(super) fn failed(verb: &str, namespace: &str, name: &str, source: kube::Error) -> ObjectError {
    ObjectError { what: format!("{verb} {namespace}/{name}"), source }
}

/// An error of the API server in its own words, without the structure around them.
pub(super) fn said(error: &kube::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only the API server's own answers have better words")]
    match error {
        kube::Error::Api(status) if status.message.is_empty() => format!("HTTP {}", status.code),
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
