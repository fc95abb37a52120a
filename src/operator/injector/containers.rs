//! Postern's own containers: the redirect, which starts before all others, and the gateway, which starts next.

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::choices::Choices;
use super::hardening::unprivileged;
use super::ports::ListenPorts;
use super::shape::{INIT_CONTAINERS, edit_list, edit_object, is_true, list, ours, text};
use super::volumes::is_token_volume;
use super::workspace::{self, Workspace};
use crate::operator::amount::RESOURCES;
use crate::operator::settings::{Settings, VARIABLE_PREFIX};
use crate::pod;

/// The UIDs of gateways: up to the greatest that the API server accepts, so that nobody hits one by trying; in a pod
/// with a user namespace, up to the greatest that is mapped.
const LEAST_UID: u32 = 60_000;
const GREATEST_UID: u32 = 2_147_483_647;
const GREATEST_MAPPED_UID: u32 = 65_533;

/// The mount of the service account's token; the API server adds it to every container of a pod that asks for it.
const TOKEN_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The parts of which Postern's containers of one pod are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContainerParts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) choices: &'a Choices,
    pub(super) ports: &'a ListenPorts,
    pub(super) uid: u32,
    /// Declared ports of the pod, sorted.
    pub(super) inbound: &'a [u16],
    /// Mounts of CA files that the pod's containers bring along.
    pub(super) own_roots: &'a [Value],
    /// The volume that a companion reads, where the pod asks for one.
    pub(super) workspace: Option<&'a Workspace>,
}

/// Puts the redirect first, the gateway second and the companion third, before the pod's own init containers.
pub(super) fn place(pod: &mut Value, parts: &ContainerParts<'_>) {
    let Some(spec) = pod.get_mut("spec") else { return };
    let shared = spec.get("resources").cloned().unwrap_or_default();
    edit_list(spec, INIT_CONTAINERS, |containers| {
        let companion = parts.workspace.map(|workspace| {
            let pull_policy = json!(parts.settings.gateway.image_pull_policy);
            workspace.container(&parts.choices.image, &pull_policy, beside(parts.uid))
        });
        let expected = [redirect(parts), gateway(parts)].into_iter().chain(companion);
        let placed = expected.map(|container| sharing(container, &shared)).map(|expected| {
            let name = text(&expected, "name");
            let stored = containers.iter().find(|container| text(container, "name") == name);
            // A stored container keeps what the API server added, or a second injection would change it.
            stored.filter(|stored| is_as_made(stored, &expected)).cloned().unwrap_or(expected)
        });
        let placed: Vec<_> = placed.collect();
        containers.retain(|container| !super::shape::is_ours(text(container, "name")));
        containers.splice(0..0, placed);
    });
}

/// Drops the container's resources that the pod sets for all of its containers together: the API server refuses a pod
/// whose containers ask for more than the pod has.
fn sharing(mut container: Value, shared: &Value) -> Value {
    let of_pod = |name: &str| ["requests", "limits"].iter().any(|kind| !shared[*kind][name].is_null());
    edit_object(&mut container, "resources", |resources| {
        for kind in ["requests", "limits"] {
            edit_object(resources, kind, |part| {
                if let Some(part) = part.as_object_mut() {
                    part.retain(|name, _| !of_pod(name));
                }
            });
        }
    });
    container
}

/// The gateway's UID, as the redirect of an injected pod names it.
pub(super) fn uid(pod: &Value) -> Option<u32> {
    let arguments = list(ours(pod, pod::REDIRECT_CONTAINER)?, "args");
    let at = arguments.iter().position(|argument| argument == "--uid")?;
    let uid = arguments.get(at + 1)?.as_str()?.parse().ok()?;
    (LEAST_UID..=greatest_uid(pod)).contains(&uid).then_some(uid)
}

/// The UID of the companion of a gateway with this one: the next, so that nobody else has to keep it, and never one that
/// the redirect lets out.
fn beside(uid: u32) -> u32 {
    if uid == LEAST_UID { uid + 1 } else { uid - 1 }
}

/// Draws a UID that no container of the pod asks for; `random` chooses among them.
pub(super) fn draw(pod: &Value, taken: &[u64], random: u32) -> u32 {
    let count = greatest_uid(pod) - LEAST_UID + 1;
    let candidates = (0..count).map(|step| LEAST_UID + (random % count + step) % count);
    let mut free = candidates.filter(|uid| !taken.contains(&u64::from(*uid)));
    free.next().unwrap_or(LEAST_UID)
}

fn greatest_uid(pod: &Value) -> u32 {
    if has_user_namespace(pod) { GREATEST_MAPPED_UID } else { GREATEST_UID }
}

/// Whether the pod has a user namespace of its own.
pub(super) fn has_user_namespace(pod: &Value) -> bool {
    pod["spec"]["hostUsers"] == Value::Bool(false)
}

/// Whether a stored container equals the one that was made, except for what the API server itself adds: resources and
/// `resizePolicy`, the pull policy `Always`, the token's mount. Its rights and its command are compared exactly.
fn is_as_made(stored: &Value, made: &Value) -> bool {
    let (Some(stored), Some(made)) = (stored.as_object(), made.as_object()) else { return false };
    let keys = stored.keys().chain(made.keys());
    keys.filter(|key| key.as_str() != "resizePolicy").all(|key| {
        let (stored, made) = (stored.get(key), made.get(key));
        match key.as_str() {
            "resources" => stored == made || stored.is_none_or(has_no_device),
            "imagePullPolicy" => stored == made || stored.is_some_and(|policy| policy == "Always"),
            "volumeMounts" => {
                let stored = stored.and_then(Value::as_array).into_iter().flatten();
                let made = made.and_then(Value::as_array).into_iter().flatten();
                stored.filter(|mount| !is_token(mount)).eq(made)
            }
            _ => stored == made,
        }
    })
}

fn has_no_device(resources: &Value) -> bool {
    let named = |part: &Value| {
        part.as_object().is_some_and(|part| part.keys().all(|key| RESOURCES.contains(&key.as_str())))
    };
    let parts = resources.as_object().into_iter().flatten();
    parts.into_iter().all(|(key, part)| ["requests", "limits"].contains(&key.as_str()) && named(part))
}

fn is_token(mount: &Value) -> bool {
    text(mount, "mountPath") == TOKEN_DIRECTORY
        && is_token_volume(text(mount, "name"))
        && is_true(mount, "readOnly")
}

fn redirect(parts: &ContainerParts<'_>) -> Value {
    let mut arguments = vec![
        "redirect".to_owned(),
        "--uid".to_owned(),
        parts.uid.to_string(),
        "--config".to_owned(),
        settings_file(),
        "--keep-names".to_owned(),
        pod::RUN_DIRECTORY.to_owned(),
    ];
    if !parts.inbound.is_empty() {
        let ports: Vec<String> = parts.inbound.iter().map(u16::to_string).collect();
        arguments.extend(["--inbound-ports".to_owned(), ports.join(",")]);
    }
    // Root for NET_ADMIN alone, which is why the pod's `runAsNonRoot` is not to hold here.
    json!({
        "name": pod::REDIRECT_CONTAINER,
        "image": parts.choices.image,
        "imagePullPolicy": parts.settings.gateway.image_pull_policy,
        "args": arguments,
        "resources": parts.choices.redirect,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsGroup": 0,
            "runAsNonRoot": false,
            "runAsUser": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount(pod::POLICY_CONFIG_MAP, pod::POLICY_DIRECTORY),
            json!({"name": super::volumes::RUN, "mountPath": pod::RUN_DIRECTORY}),
        ],
    })
}

fn gateway(parts: &ContainerParts<'_>) -> Value {
    let mut mounts = vec![
        mount(pod::POLICY_CONFIG_MAP, pod::POLICY_DIRECTORY),
        mount(pod::CA_SECRET, pod::CA_DIRECTORY),
        mount(pod::CREDENTIALS_SECRET, pod::CREDENTIALS_DIRECTORY),
        mount(super::volumes::POD_INFO, pod::POD_INFO_DIRECTORY),
        json!({"name": super::volumes::RUN, "mountPath": pod::RUN_DIRECTORY}),
        json!({"name": super::volumes::TRUST, "mountPath": pod::TRUST_DIRECTORY}),
    ];
    let gateway = &parts.settings.gateway;
    let kept = [gateway.ledger_bytes(), gateway.evidence_bytes()];
    mounts.extend(pod::NAME_FILES.map(kept_by_the_redirect));
    let on_disk = [
        (super::volumes::LEDGER, pod::LEDGER_DIRECTORY),
        (super::volumes::EVIDENCE, pod::EVIDENCE_DIRECTORY),
    ];
    for ((name, path), _) in on_disk.into_iter().zip(kept).filter(|(_, bytes)| bytes.is_some()) {
        mounts.push(json!({"name": name, "mountPath": path}));
    }
    mounts.extend(parts.workspace.map(|_| workspace::socket_mount()));
    mounts.extend_from_slice(parts.own_roots);
    json!({
        "name": pod::GATEWAY_CONTAINER,
        "image": parts.choices.image,
        "imagePullPolicy": gateway.image_pull_policy,
        "args": ["gateway", "--config", settings_file()],
        "env": variables(kept, &gateway.env),
        "livenessProbe": probe("/healthz", parts.ports.admin, [20, 10, 6]),
        "ports": [{"containerPort": parts.ports.admin, "name": super::ports::METRICS, "protocol": "TCP"}],
        "readinessProbe": probe("/readyz", parts.ports.admin, [5, 2, 3]),
        "resources": parts.choices.gateway,
        "restartPolicy": "Always",
        "securityContext": unprivileged(parts.uid),
        // Later containers start only once this probe succeeds, so it runs often and gives up late.
        "startupProbe": probe("/readyz", parts.ports.admin, [1, 1, 120]),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

fn settings_file() -> String {
    format!("{}/{}", pod::POLICY_DIRECTORY, pod::SETTINGS_KEY)
}

fn mount(volume: &str, path: &str) -> Value {
    json!({"name": volume, "mountPath": path, "readOnly": true})
}

/// Mounts the redirect's copy of a file over the one that agents may write.
fn kept_by_the_redirect(file: &str) -> Value {
    let name = file.rsplit('/').next();
    json!({"name": super::volumes::RUN, "mountPath": file, "readOnly": true, "subPath": name})
}

/// Postern's own variables, then those of the settings, which may refer to earlier ones and never replace them.
fn variables(kept: [Option<u64>; 2], further: &[EnvVar]) -> Vec<Value> {
    let fields = [
        (pod::POD_NAME_VARIABLE, "metadata.name"),
        (pod::POD_NAMESPACE_VARIABLE, "metadata.namespace"),
        (pod::SERVICE_ACCOUNT_VARIABLE, "spec.serviceAccountName"),
        (pod::NODE_VARIABLE, "spec.nodeName"),
        (pod::NODE_ADDRESSES_VARIABLE, "status.hostIPs"),
    ];
    let read = |(name, path)| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let intercept = json!({"name": "POSTERN_INTERCEPT", "value": "1"});
    let names = [pod::LEDGER_BYTES_VARIABLE, pod::EVIDENCE_BYTES_VARIABLE];
    let kept = names.into_iter().zip(kept);
    let kept = kept.filter_map(|(name, bytes)| Some(json!({"name": name, "value": bytes?.to_string()})));
    let further = further.iter().filter(|variable| !variable.name.starts_with(VARIABLE_PREFIX)).map(filled);
    std::iter::once(intercept).chain(fields.map(read)).chain(kept).chain(further).collect()
}

/// A variable as the API server stores it, with its defaults written out: otherwise a stored pod would seem changed.
fn filled(variable: &EnvVar) -> Value {
    let mut variable = variable.clone();
    variable.value = variable.value.filter(|value| !value.is_empty());
    if let Some(source) = &mut variable.value_from {
        if let Some(field) = &mut source.field_ref {
            field.api_version.get_or_insert_with(|| "v1".to_owned());
        }
        if let Some(resource) = &mut source.resource_field_ref {
            resource.divisor.get_or_insert_with(|| Quantity("0".to_owned()));
        }
    }
    json!(variable)
}

/// A probe of the admin port: every `period` seconds, with a `timeout`, failed after `failures` in a row. The API
/// server's defaults are written out.
fn probe(path: &str, port: u16, [period, timeout, failures]: [u32; 3]) -> Value {
    json!({
        "failureThreshold": failures,
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "periodSeconds": period,
        "successThreshold": 1,
        "timeoutSeconds": timeout,
    })
}
