//! An injected pod, as much of it as is asked for: clusters have many.

use std::borrow::Cow;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::ResourceExt;
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::Event;

use crate::pod;
use crate::policy::compile::Labels;

/// An injected pod.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Labels,
    pub(super) policy_stamp: Option<String>,
    pub(super) secrets_stamp: Option<String>,
    pub(super) address: Option<IpAddr>,
    pub(super) running: bool,
    /// Its containers will run no more.
    pub(super) ended: bool,
    /// It is being deleted.
    pub(super) leaving: bool,
}

impl Guarded {
    pub(super) fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let stamp = |name| pod.annotations().get(name).cloned();
        Self {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            labels: pod.labels().clone(),
            policy_stamp: stamp(pod::POLICY_REVISION),
            secrets_stamp: stamp(pod::SECRETS_REVISION),
            address: status.and_then(|status| status.pod_ip.as_deref()?.parse().ok()),
            running: phase == "Running",
            ended: phase == "Succeeded" || phase == "Failed",
            leaving: pod.metadata.deletion_timestamp.is_some(),
        }
    }

    /// An event about pods as one about these.
    pub(super) fn seen(event: Event<Pod>) -> Event<Self> {
        match event {
            Event::Apply(pod) => Event::Apply(Self::of(&pod)),
            Event::Delete(pod) => Event::Delete(Self::of(&pod)),
            Event::InitApply(pod) => Event::InitApply(Self::of(&pod)),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        }
    }

    /// As events refer to it.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

/// What a store of them asks.
impl Lookup for Guarded {
    type DynamicType = ();

    fn kind((): &()) -> Cow<'_, str> {
        <Pod as Lookup>::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        <Pod as Lookup>::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        <Pod as Lookup>::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        <Pod as Lookup>::plural(&())
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.name))
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.namespace))
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.uid))
    }
}
