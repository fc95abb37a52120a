//! A pod that is labelled as injected, with only the facts that the controller needs: clusters have many.

use std::borrow::Cow;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, ObjectReference, Pod};
use kube::ResourceExt;
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::Event;

use crate::operator::objects::pod_reference;
use crate::pod;
use crate::policy::compile::Labels;

/// A pod that is labelled as injected.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Labels,
    pub(super) policy_stamp: Option<String>,
    pub(super) secrets_stamp: Option<String>,
    pub(super) settings_stamp: Option<String>,
    /// None if the pod has the label and no gateway: without the webhook and the admission policies anybody can create
    /// such a pod.
    pub(super) gateway: Option<GatewayContainer>,
    pub(super) address: Option<IpAddr>,
    pub(super) running: bool,
    /// Its containers have ended for good.
    pub(super) ended: bool,
    /// It is being deleted.
    pub(super) leaving: bool,
}

/// The gateway's container as kubelet sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GatewayContainer {
    /// How often it was restarted.
    pub(super) restarts: u32,
    /// How its last process ended: `OOMKilled, exit code 137`.
    pub(super) ended: Option<String>,
    /// How long kubelet waits before it restarts it (`10s`), if it waits.
    pub(super) back_off: Option<String>,
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
            settings_stamp: stamp(pod::SETTINGS_REVISION),
            gateway: GatewayContainer::of(pod),
            address: status.and_then(|status| status.pod_ip.as_deref()?.parse().ok()),
            running: phase == "Running",
            ended: phase == "Succeeded" || phase == "Failed",
            leaving: pod.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Converts an event about a pod.
    pub(super) fn seen(event: Event<Pod>) -> Event<Self> {
        match event {
            Event::Apply(pod) => Event::Apply(Self::of(&pod)),
            Event::Delete(pod) => Event::Delete(Self::of(&pod)),
            Event::InitApply(pod) => Event::InitApply(Self::of(&pod)),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        }
    }

    /// The reference for Events.
    pub(super) fn reference(&self) -> ObjectReference {
        pod_reference(&self.namespace, &self.name, &self.uid)
    }
}

impl GatewayContainer {
    fn of(pod: &Pod) -> Option<Self> {
        let containers = pod.spec.as_ref()?.init_containers.as_ref()?;
        let has = |name| containers.iter().any(|container| container.name == name);
        if !has(pod::GATEWAY_CONTAINER) || !has(pod::REDIRECT_CONTAINER) {
            return None;
        }
        let mut statuses =
            pod.status.iter().flat_map(|status| status.init_container_statuses.iter().flatten());
        let status = statuses.find(|status| status.name == pod::GATEWAY_CONTAINER);
        Some(status.map(Self::seen).unwrap_or_default())
    }

    fn seen(status: &ContainerStatus) -> Self {
        let ended = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
        let ended = ended(&status.state).or_else(|| ended(&status.last_state));
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        let backs_off = waiting.filter(|it| it.reason.as_deref() == Some(BACK_OFF));
        Self {
            restarts: u32::try_from(status.restart_count).unwrap_or_default(),
            ended: ended.map(|it| format!("{}, exit code {}", it.reason.unwrap_or_default(), it.exit_code)),
            back_off: backs_off.map(|it| delay(it.message.as_deref().unwrap_or_default())),
        }
    }
}

/// Kubelet's reason for a container that it will start later.
const BACK_OFF: &str = "CrashLoopBackOff";

/// Reads the time in kubelet's message `back-off 1m20s restarting failed container=…`.
fn delay(message: &str) -> String {
    let time = message.split_once("back-off ").and_then(|(_, rest)| rest.split_whitespace().next());
    let time = time.filter(|time| time.len() <= 8 && time.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    time.unwrap_or("some time").to_owned()
}

/// Lets a store index it.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gateway(names: [&str; 2], status: &serde_json::Value) -> Option<GatewayContainer> {
        let containers: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let pod = json!({
            "spec": { "containers": [], "initContainers": containers },
            "status": { "initContainerStatuses": [status] },
        });
        Guarded::of(&serde_json::from_value(pod).unwrap()).gateway
    }

    #[test]
    fn what_kubelet_says_of_the_gateway_is_read() {
        let status = json!({
            "name": "postern-gateway", "image": "", "imageID": "", "ready": false, "restartCount": 2,
            "state": { "waiting": {
                "reason": "CrashLoopBackOff",
                "message": "back-off 1m20s restarting failed container=postern-gateway pod=coder_agents(1)",
            } },
            "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
        });
        let seen = gateway(["postern-redirect", "postern-gateway"], &status).unwrap();
        assert_eq!((seen.restarts, seen.back_off.as_deref()), (2, Some("1m20s")));
        assert_eq!(seen.ended.as_deref(), Some("OOMKilled, exit code 137"));
        assert_eq!(gateway(["postern-redirect", "theirs"], &status), None, "it has no gateway");
    }

    #[test]
    fn a_delay_that_kubelet_does_not_name_is_some_time() {
        assert_eq!(delay("back-off 10s restarting failed container"), "10s");
        assert_eq!(delay("waiting"), "some time");
    }
}
