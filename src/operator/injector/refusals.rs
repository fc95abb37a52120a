//! Refuses pods that a gateway cannot guard: in the host's namespaces, of another system, behind a mesh's redirect.

use serde_json::Value;

use super::hardening;
use super::shape::{
    CONTAINERS, INIT_CONTAINERS, Located, agents, annotation, is_ours, is_true, probes_and_hooks, spec, text,
};
use super::{containers, references, volumes};
use crate::operator::settings::{Injection, Settings};
use crate::pod;

/// The containers that meshes inject, and their annotations.
const MESH_CONTAINERS: [&str; 6] = [
    "istio-proxy",
    "istio-init",
    "istio-validation",
    "linkerd-proxy",
    "linkerd-init",
    "linkerd-network-validator",
];
const MESH_ANNOTATIONS: [&str; 2] = ["sidecar.istio.io/status", "linkerd.io/proxy-version"];

/// Everything that would let the pod's agents past the gateway, whatever is injected.
pub(super) fn refuse(pod: &Value, settings: &Settings) -> Vec<String> {
    let mut problems = host_namespaces(pod);
    problems.extend(system(pod));
    problems.extend(meshes(pod));
    problems.extend(resolvers(pod, &settings.injection));
    problems.extend(guessable(pod));
    problems.extend(names(pod));
    problems.extend(hardening::refuse(pod));
    problems.extend(volumes::refuse(pod, &settings.injection));
    problems.extend(references::refuse(pod));
    problems.extend(agents(pod).flat_map(|agent| hosts_of_probes(&agent)));
    problems.extend(apparmor(pod));
    problems
}

/// Refuses containers with the gateway's UID: the redirect would take them for the gateway.
pub(super) fn refuse_user(pod: &Value, uid: u32) -> Vec<String> {
    let same = hardening::users(pod).filter(|(_, user)| *user == u64::from(uid));
    same.map(|(path, _)| format!("{path} is {uid}, which is the gateway's: choose a UID below 60000"))
        .collect()
}

fn host_namespaces(pod: &Value) -> Vec<String> {
    let fields = [
        ("hostNetwork", "the node's network has no redirect"),
        ("hostPID", "the gateway's memory and files would be within reach"),
        ("hostIPC", "the node's memory would be within reach"),
        ("shareProcessNamespace", "the gateway's memory and files would be within reach"),
    ];
    let set = fields.into_iter().filter(|(field, _)| is_true(&pod["spec"], field));
    set.map(|(field, reason)| format!("spec.{field} is true, and {reason}: remove it")).collect()
}

fn system(pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let mut problems = Vec::new();
    let selected = text(&spec["nodeSelector"], "kubernetes.io/os");
    for (path, system) in
        [("os.name", text(&spec["os"], "name")), ("nodeSelector[kubernetes.io/os]", selected)]
    {
        if !matches!(system, "" | "linux") {
            problems.push(format!("spec.{path} is {system:?}: there is a gateway for Linux alone"));
        }
    }
    if !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        problems.push(
            "the pod is a static one, which its node runs as it is: create it through the API, or keep it in a namespace \
             that is not injected"
                .to_owned(),
        );
    }
    problems
}

fn meshes(pod: &Value) -> Vec<String> {
    let remedy = "which redirects the pod's traffic past the gateway: keep the pod out of that mesh";
    let spec = spec(pod);
    let containers = spec.items(INIT_CONTAINERS).chain(spec.items(CONTAINERS));
    let containers = containers.filter(|container| MESH_CONTAINERS.contains(&container.name()));
    let mut problems: Vec<String> =
        containers.map(|container| format!("{} is {}, {remedy}", container.path, container.name())).collect();
    let annotated = MESH_ANNOTATIONS.into_iter().filter(|key| !annotation(pod, key).is_empty());
    problems.extend(annotated.map(|key| format!("metadata.annotations[{key}] is of a mesh, {remedy}")));
    let label = "istio.io/dataplane-mode";
    if !matches!(text(&pod["metadata"]["labels"], label), "" | "none") {
        problems.push(format!("metadata.labels[{label}] is of a mesh, {remedy}"));
    }
    problems
}

/// Refuses name servers of the author's choice: the gateway resolves by them, so they would decide where names lead.
fn resolvers(pod: &Value, injection: &Injection) -> Vec<String> {
    let servers = pod["spec"]["dnsConfig"]["nameservers"].as_array().into_iter().flatten().enumerate();
    let foreign = servers.filter(|(_, server)| {
        server.as_str().is_none_or(|server| !injection.nameservers.iter().any(|listed| listed == server))
    });
    foreign
        .map(|(number, server)| {
            format!(
                "spec.dnsConfig.nameservers[{number}] is {server}, and the gateway would resolve by it: leave name servers \
                 to the cluster, or have that one listed in the chart's injection.nameservers"
            )
        })
        .collect()
}

/// With a user namespace, refuses containers that name no user: so few UIDs are mapped that an image's `USER` could hit
/// the gateway's.
fn guessable(pod: &Value) -> Vec<String> {
    let guessable = containers::has_user_namespace(pod);
    let unnamed = unnamed(pod).filter(|_| guessable);
    unnamed
        .map(|agent| {
            let path = agent.path;
            format!("{path}.securityContext.runAsUser is missing, and with hostUsers: false the image's user could be the gateway's: name a UID")
        })
        .collect()
}

/// Refuses each container that names no user, in a namespace that demands one.
pub(super) fn refuse_unnamed(pod: &Value) -> Vec<String> {
    unnamed(pod)
        .map(|agent| {
            let path = agent.path;
            format!(
                "{path}.securityContext.runAsUser is missing, and the namespace demands it ({}): name a UID here or in \
                 spec.securityContext",
                pod::REQUIRE_RUN_AS_USER
            )
        })
        .collect()
}

/// The containers that run as the `USER` of their image.
fn unnamed(pod: &Value) -> impl Iterator<Item = Located<'_>> {
    let of_all = hardening::user(&spec(pod)).is_some();
    agents(pod).filter(move |agent| !of_all && hardening::user(agent).is_none())
}

/// Refuses other containers with a name that is reserved for Postern's.
fn names(pod: &Value) -> Vec<String> {
    let spec = spec(pod);
    let init = spec.items(INIT_CONTAINERS).filter(|container| !is_ours(container.name()));
    init.chain(spec.items(CONTAINERS)).filter_map(|container| refuse_name(&container)).collect()
}

pub(super) fn refuse_name(container: &Located<'_>) -> Option<String> {
    let reserved = container.name().starts_with(pod::CONTAINER_PREFIX);
    reserved.then(|| format!("{}.name begins with \"postern-\": rename the container", container.path))
}

/// Refuses probes and hooks with a host: kubelet connects to it from the node, past the gateway.
fn hosts_of_probes(container: &Located<'_>) -> Vec<String> {
    let actions =
        probes_and_hooks(container).flat_map(|part| ["httpGet", "tcpSocket"].map(|key| part.field(key)));
    let named = actions.filter(|action| !text(action.value, "host").is_empty());
    named
        .map(|action| {
            format!("{}.host: the node would connect there, past the gateway: remove it", action.path)
        })
        .collect()
}

/// Refuses `unconfined` in the older annotation for AppArmor, which the API server still reads.
fn apparmor(pod: &Value) -> Vec<String> {
    let prefix = "container.apparmor.security.beta.kubernetes.io/";
    let annotations = pod["metadata"]["annotations"].as_object().into_iter().flatten();
    let unconfined = annotations.filter(|(key, value)| key.starts_with(prefix) && *value == "unconfined");
    unconfined.map(|(key, _)| format!("metadata.annotations[{key}] is unconfined: remove it")).collect()
}
