//! Volumes: Postern's own, and those that a pod may bring along.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::shape::{
    Located, agents, annotation, edit_agents, edit_list, edit_object, is_true, list, put, spec, text,
};
use super::workspace;
use crate::operator::settings::Injection;
use crate::pod;

/// The volume with the pod's labels and annotations.
pub(super) const POD_INFO: &str = "postern-podinfo";
/// The volume with the gateway's status socket.
pub(super) const RUN: &str = "postern-run";
/// The volume with the certificates that agents trust. Agents mount it too.
pub(super) const TRUST: &str = "postern-trust";

/// The volume with the gateway's ledger.
pub(super) const LEDGER: &str = "postern-ledger";

/// The volume with the tool results that were cut out of requests. Agents mount it too.
pub(super) const EVIDENCE: &str = "postern-evidence";

/// The volume with the socket of the workspace's companion.
pub(super) const WORKSPACE: &str = "postern-workspace";

/// How much larger the first two volumes are than what is kept in them may become: WAL and what SQLite needs beside; the
/// file that is written before another one goes, and the directory.
const ROOM: u64 = 64 << 20;

/// By this annotation the cluster's autoscaler is told which volumes on the node's disk keep no pod from being moved.
const MOVABLE_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

/// The kinds of volumes that a pod may have. The node mounts the others over the network itself, past the gateway.
const KINDS: [&str; 7] =
    ["configMap", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "secret"];

/// CSI drivers of inline volumes with nothing but certificates and secrets. Others mount what the pod's author names,
/// which may be a server.
const DRIVERS: [&str; 3] = ["secrets-store.csi.k8s.io", "csi.cert-manager.io", "csi.spiffe.io"];

/// Paths of the node that give access to the node or other pods. They are refused even if the settings list them.
const FORBIDDEN_PATHS: [&str; 9] = [
    "/proc",
    "/sys",
    "/dev",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/run/containerd",
    "/run/crio",
    "/run/docker.sock",
    "/run/netns",
];

/// Adds Postern's volumes; replaces others with the same names. `kept` is the most bytes of a ledger and of tool results,
/// where there are such; `has_workspace` says whether the pod has a companion.
pub(super) fn place(pod: &mut Value, kept: [Option<u64>; 2], has_workspace: bool) {
    let Some(spec) = pod.get_mut("spec") else { return };
    let on_disk = [LEDGER, EVIDENCE].into_iter().zip(kept);
    edit_list(spec, "volumes", |volumes| {
        for (name, _) in on_disk.clone().filter(|(_, bytes)| bytes.is_none()) {
            volumes.retain(|volume| text(volume, "name") != name);
        }
        if !has_workspace {
            volumes.retain(|volume| text(volume, "name") != WORKSPACE);
        }
        let on_disk = on_disk.filter_map(|(name, bytes)| Some(disk_volume(name, bytes?)));
        let socket = has_workspace.then(workspace::volume);
        for ours in made().into_iter().chain(on_disk).chain(socket) {
            let same_name = |volume: &&mut Value| text(volume, "name") == text(&ours, "name");
            if let Some(theirs) = volumes.iter_mut().find(same_name) {
                *theirs = ours;
            } else {
                volumes.push(ours);
            }
        }
    });
}

/// Mounts the volumes that agents read: the certificates that they trust, and, where the pod `has_evidence`, the tool results
/// that were cut out of requests.
pub(super) fn mount_shared(container: &mut Value, has_evidence: bool) {
    edit_list(container, "volumeMounts", |mounts| {
        if !has_evidence {
            mounts.retain(|mount| text(mount, "name") != EVIDENCE);
        }
        for ours in [Some(trust_mount()), has_evidence.then(evidence_mount)].into_iter().flatten() {
            if !mounts.contains(&ours) {
                mounts.push(ours);
            }
        }
    });
}

/// Whether the pod has a volume for tool results.
pub(super) fn has_evidence(pod: &Value) -> bool {
    list(&pod["spec"], "volumes").iter().any(|volume| text(volume, "name") == EVIDENCE)
}

fn evidence_mount() -> Value {
    json!({"name": EVIDENCE, "mountPath": pod::AGENT_EVIDENCE_DIRECTORY, "readOnly": true})
}

pub(super) fn trust_mount() -> Value {
    json!({"name": TRUST, "mountPath": pod::TRUST_DIRECTORY, "readOnly": true})
}

/// Removes the service account's token, which the API server adds before it calls any webhook.
pub(super) fn remove_tokens(pod: &mut Value) {
    if keeps_token(pod) {
        return;
    }
    let is_automatic = |volume: &Value| is_token_volume(text(volume, "name")) && holds_token(volume);
    let volumes = list(&pod["spec"], "volumes").iter().filter(|volume| is_automatic(volume));
    let names: Vec<String> = volumes.map(|volume| text(volume, "name").to_owned()).collect();
    if !names.is_empty() {
        edit_agents(pod, |_, container| {
            edit_list(container, "volumeMounts", |mounts| {
                mounts.retain(|mount| !names.iter().any(|name| name == text(mount, "name")));
            });
        });
    }
    if let Some(spec) = pod.get_mut("spec") {
        edit_list(spec, "volumes", |volumes| volumes.retain(|volume| !is_automatic(volume)));
        put(spec, "automountServiceAccountToken", Value::Bool(false));
    }
}

/// Refuses volumes and mounts that lead past the gateway.
pub(super) fn refuse(pod: &Value, injection: &Injection) -> Vec<String> {
    let mut problems = Vec::new();
    let ours = made();
    for volume in spec(pod).items("volumes") {
        let is_chosen = [LEDGER, EVIDENCE, WORKSPACE].contains(&volume.name());
        if is_chosen || ours.iter().any(|ours| text(ours, "name") == volume.name()) {
            continue;
        }
        if volume.name().starts_with(pod::CONTAINER_PREFIX) {
            let path = &volume.path;
            problems.push(format!(
                "{path}.name begins with \"postern-\", which is Postern's own: rename the volume"
            ));
        }
        problems.extend(refuse_kind(&volume, injection));
        if holds_token(volume.value) && !is_token_volume(volume.name()) && !keeps_token(pod) {
            problems.push(format!(
                "{} projects a token of the service account: remove it, or annotate the pod with {}: \"true\"",
                volume.path,
                pod::SERVICE_ACCOUNT_TOKEN
            ));
        }
    }
    problems.extend(agents(pod).flat_map(|agent| refuse_mounts(&agent)));
    problems
}

/// Refuses mounts of Postern's volumes, except those with certificates and with tool results exactly as they are made.
pub(super) fn refuse_mounts(container: &Located<'_>) -> Vec<String> {
    let mounts = container.items("volumeMounts").filter(|mount| {
        let name = mount.name();
        let path = text(mount.value, "mountPath").trim_end_matches('/');
        let is_over_ours = [pod::TRUST_DIRECTORY, pod::AGENT_EVIDENCE_DIRECTORY].contains(&path);
        (is_over_ours || name.starts_with(pod::CONTAINER_PREFIX))
            && ![trust_mount(), evidence_mount()].contains(mount.value)
    });
    let devices =
        container.items("volumeDevices").filter(|device| device.name().starts_with(pod::CONTAINER_PREFIX));
    let refuse = |part: Located<'_>| {
        format!(
            "{} mounts a volume of Postern's, or over one: remove it, agents get what they need",
            part.path
        )
    };
    mounts.chain(devices).map(refuse).collect()
}

/// The kind of a volume: the key beside its name. A volume without any is an emptyDir.
pub(super) fn kind(volume: &Value) -> &str {
    let keys = volume.as_object().into_iter().flat_map(|object| object.keys());
    keys.map(String::as_str).find(|key| *key != "name").unwrap_or("emptyDir")
}

/// Postern's volumes, with the API server's defaults written out.
fn made() -> [Value; 6] {
    // In memory: an emptyDir on the node's disk would keep the cluster's autoscaler from moving the pod, unless it is told.
    let memory = json!({"medium": "Memory", "sizeLimit": "32Mi"});
    let field = |key: &str| json!({"path": key, "fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.{key}")}});
    [
        json!({"name": pod::POLICY_CONFIG_MAP, "configMap": {"name": pod::POLICY_CONFIG_MAP, "defaultMode": 0o444}}),
        json!({"name": pod::CA_SECRET, "secret": {"secretName": pod::CA_SECRET, "defaultMode": 0o444}}),
        json!({
            "name": pod::CREDENTIALS_SECRET,
            "secret": {"secretName": pod::CREDENTIALS_SECRET, "defaultMode": 0o444},
        }),
        json!({
            "name": POD_INFO,
            "downwardAPI": {"defaultMode": 0o444, "items": [field("labels"), field("annotations")]},
        }),
        json!({"name": RUN, "emptyDir": memory}),
        json!({"name": TRUST, "emptyDir": memory}),
    ]
}

/// A volume for so many bytes on the node's disk: in memory it would count against the gateway's limit.
fn disk_volume(name: &str, bytes: u64) -> Value {
    json!({"name": name, "emptyDir": {"sizeLimit": mebibytes(bytes.saturating_add(ROOM))}})
}

/// An amount of bytes, rounded up to MiB, as the API server writes it.
fn mebibytes(bytes: u64) -> String {
    let mut amount = bytes.div_ceil(1 << 20);
    let mut units = ["Mi", "Gi", "Ti"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while amount.is_multiple_of(1_024)
        && let Some(next) = units.next()
    {
        (amount, unit) = (amount / 1_024, next);
    }
    format!("{amount}{unit}")
}

/// Tells the cluster's autoscaler that it may move the pod, although the ledger and the tool results are on the node's disk and
/// go with it. It guards nothing, so a pod that loses the words is still stored.
pub(super) fn let_be_moved(pod: &mut Value) {
    let written = annotation(pod, MOVABLE_VOLUMES).to_owned();
    let mut names: Vec<&str> = written.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let volumes = list(&pod["spec"], "volumes").iter().map(|volume| text(volume, "name"));
    let ours =
        volumes.filter(|name| [LEDGER, EVIDENCE].contains(name)).map(str::to_owned).collect::<Vec<_>>();
    let missing: Vec<&str> = ours.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
    if missing.is_empty() {
        return;
    }
    names.extend(missing);
    let names = Value::from(names.join(","));
    edit_object(pod, "metadata", |metadata| {
        edit_object(metadata, "annotations", |annotations| put(annotations, MOVABLE_VOLUMES, names));
    });
}

fn refuse_kind(volume: &Located<'_>, injection: &Injection) -> Option<String> {
    let path = &volume.path;
    match kind(volume.value) {
        "hostPath" => refuse_host_path(volume, &injection.host_paths),
        "csi" => refuse_driver(volume, &injection.csi_drivers),
        "projected" => None,
        kind if KINDS.contains(&kind) => None,
        kind => Some(format!(
            "{path}.{kind} is mounted by the node, past the gateway: use a PersistentVolumeClaim, or what comes with the \
             cluster"
        )),
    }
}

fn refuse_driver(volume: &Located<'_>, drivers: &[String]) -> Option<String> {
    let path = &volume.path;
    let driver = text(&volume.value["csi"], "driver");
    let listed = DRIVERS.contains(&driver) || drivers.iter().any(|listed| listed == driver);
    (!listed).then(|| {
        format!(
            "{path}.csi.driver {driver:?} may mount what is past the gateway: use a PersistentVolumeClaim, or have \
             injection.csiDrivers of Postern's settings list it"
        )
    })
}

fn refuse_host_path(volume: &Located<'_>, host_paths: &[String]) -> Option<String> {
    let field = volume.field("hostPath").field("path");
    let written = field.value.as_str().unwrap_or_default();
    let path = canonical(written);
    let forbidden = FORBIDDEN_PATHS.iter().any(|other| is_within(&path, other) || is_within(other, &path));
    if forbidden {
        return Some(format!(
            "{} {written:?} would reach the node or other containers: remove the volume",
            field.path
        ));
    }
    let listed = host_paths.iter().any(|listed| is_within(&path, &canonical(listed)));
    (!listed).then(|| {
        format!(
            "{} {written:?} is not one that pods may mount: remove the volume, or have injection.hostPaths of \
             Postern's settings list it",
            field.path
        )
    })
}

/// A path without empty and dot segments; `/var/run` is a link to `/run`.
pub(super) fn canonical(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        if segment == ".." {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    if segments.starts_with(&["var", "run"]) {
        segments.remove(0);
    }
    format!("/{}", segments.join("/"))
}

/// Whether a path equals the other or lies below it.
pub(super) fn is_within(path: &str, other: &str) -> bool {
    other == "/" || path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn keeps_token(pod: &Value) -> bool {
    annotation(pod, pod::SERVICE_ACCOUNT_TOKEN) == "true"
}

/// Whether it is the name of the volume by which the API server adds the service account's token.
pub(super) fn is_token_volume(name: &str) -> bool {
    name.starts_with("kube-api-access-")
}

/// Whether a volume projects a proof of the pod's identity to the API server.
pub(super) fn holds_token(volume: &Value) -> bool {
    let sources = list(&volume["projected"], "sources");
    sources
        .iter()
        .any(|source| !source["serviceAccountToken"].is_null() || !source["podCertificate"].is_null())
}

/// The volumes that no container of the pod can write to, so that the gateway may read files from them.
pub(super) fn read_only(pod: &Value) -> BTreeSet<&str> {
    let mounts = agents(pod).flat_map(|agent| list(agent.value, "volumeMounts"));
    let written: BTreeSet<&str> =
        mounts.filter(|mount| !is_true(mount, "readOnly")).map(|mount| text(mount, "name")).collect();
    let volumes = list(&pod["spec"], "volumes").iter();
    let read_only = volumes.filter(|volume| match kind(volume) {
        "configMap" | "secret" | "projected" | "downwardAPI" | "image" => true,
        "persistentVolumeClaim" | "hostPath" | "csi" => !written.contains(text(volume, "name")),
        _ => false,
    });
    read_only.map(|volume| text(volume, "name")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_the_api_server_stores_them() {
        for (bytes, text) in [
            (320 << 20, "320Mi"),
            (1 << 30, "1Gi"),
            (1536 << 20, "1536Mi"),
            ((8 << 20) + 1, "9Mi"),
            (1 << 40, "1Ti"),
        ] {
            assert_eq!(mebibytes(bytes), text);
        }
    }

    #[test]
    fn the_autoscaler_is_told_of_the_volumes_on_disk_beside_what_the_author_wrote() {
        let told = |written: &str| {
            let volumes = json!([{"name": LEDGER}, {"name": TRUST}, {"name": EVIDENCE}]);
            let mut pod = json!({"metadata": {"annotations": {MOVABLE_VOLUMES: written}}, "spec": {"volumes": volumes}});
            let_be_moved(&mut pod);
            pod["metadata"]["annotations"][MOVABLE_VOLUMES].as_str().unwrap().to_owned()
        };
        assert_eq!(told(""), "postern-ledger,postern-evidence");
        assert_eq!(told("cache, tmp"), "cache,tmp,postern-ledger,postern-evidence");
        assert_eq!(told("cache, postern-ledger"), "cache,postern-ledger,postern-evidence");
        assert_eq!(told("postern-evidence, postern-ledger"), "postern-evidence, postern-ledger");
    }
}
