//! Security contexts of a pod's own containers, on which the redirect depends.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::shape::{Located, agents, edit_agents, edit_object, is_true, list, put, text};

/// The capabilities that a container may add: with them it cannot change the redirect, become another user or look into
/// another container. All others are dropped.
const CAPABILITIES: [&str; 6] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"];

/// The one sysctl that a guarded pod may set.
const SYSCTL: &str = "kernel.shm_rmid_forced";

/// The SELinux types that confine a container, as the Pod Security Standards list them.
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Hardens every container that runs beside the gateway.
pub(super) fn harden(pod: &mut Value) {
    let confined = is_confined(&pod["spec"]["securityContext"]);
    edit_agents(pod, |_, container| harden_container(container, confined));
}

/// Hardens one container; `confined` if the pod has a seccomp profile for all.
pub(super) fn harden_container(container: &mut Value, confined: bool) {
    edit_object(container, "securityContext", |context| {
        put(context, "allowPrivilegeEscalation", Value::Bool(false));
        edit_object(context, "capabilities", |capabilities| {
            let mut added = named(capabilities, "add");
            let mut seen = BTreeSet::new();
            added.retain(|name| seen.insert(name.clone()));
            put(capabilities, "add", json!(added));
            put(capabilities, "drop", json!(["ALL"]));
        });
        if !confined && !is_confined(context) {
            put(context, "seccompProfile", json!({"type": "RuntimeDefault"}));
        }
    });
}

/// Refuses security contexts that would let an agent past the gateway.
pub(super) fn refuse(pod: &Value) -> Vec<String> {
    let context = super::shape::spec(pod).field("securityContext");
    let mut problems = refuse_profiles(&context);
    problems.extend(context.items("sysctls").filter_map(|sysctl| {
        let name = sysctl.name();
        (name != SYSCTL).then(|| {
            format!("{}: a guarded pod may not set {name:?}: remove it, {SYSCTL} alone may stay", sysctl.path)
        })
    }));
    problems.extend(agents(pod).flat_map(|agent| refuse_container(&agent)));
    problems
}

/// The same of one container.
pub(super) fn refuse_container(container: &Located<'_>) -> Vec<String> {
    let context = container.field("securityContext");
    let path = &context.path;
    let mut problems = refuse_profiles(&context);
    if is_true(context.value, "privileged") {
        problems.push(format!("{path}.privileged: the container could remove the redirect: leave it out"));
    }
    if !matches!(text(context.value, "procMount"), "" | "Default") {
        problems.push(format!("{path}.procMount is not Default: leave it out"));
    }
    let mut added = named(&context.value["capabilities"], "add");
    added.retain(|name| !CAPABILITIES.contains(&name.as_str()));
    if !added.is_empty() {
        problems.push(format!(
            "{path}.capabilities.add: {} could undo the redirect or change the user: remove it{}; there may be {}",
            added.join(", "),
            remedy(container.path.as_str()),
            CAPABILITIES.join(", ")
        ));
    }
    problems
}

/// Every UID that the pod asks for, with its path.
pub(super) fn users<'a>(pod: &'a Value) -> impl Iterator<Item = (String, u64)> + use<'a> {
    let contexts = std::iter::once(super::shape::spec(pod)).chain(agents(pod));
    contexts.filter_map(|part| user(&part))
}

/// The UID that a container asks for.
pub(super) fn user(part: &Located<'_>) -> Option<(String, u64)> {
    let user = part.field("securityContext").field("runAsUser");
    Some((user.path, user.value.as_u64()?))
}

fn refuse_profiles(context: &Located<'_>) -> Vec<String> {
    let path = &context.path;
    let mut problems = Vec::new();
    for profile in ["seccompProfile", "appArmorProfile"] {
        if text(&context.value[profile], "type") == "Unconfined" {
            problems.push(format!("{path}.{profile}.type is Unconfined: use RuntimeDefault"));
        }
    }
    let selinux = &context.value["seLinuxOptions"];
    if !SELINUX_TYPES.contains(&text(selinux, "type")) {
        problems.push(format!("{path}.seLinuxOptions.type does not confine the container: use container_t"));
    }
    for field in ["user", "role"] {
        if !text(selinux, field).is_empty() {
            problems
                .push(format!("{path}.seLinuxOptions.{field} may be one that is not confined: leave it out"));
        }
    }
    if !context.value["windowsOptions"].is_null() {
        problems.push(format!("{path}.windowsOptions: there is no gateway for Windows: remove them"));
    }
    problems
}

/// `kubectl debug` adds capabilities unless it is told a profile that does not.
fn remedy(path: &str) -> &'static str {
    if path.starts_with("spec.ephemeralContainers") {
        " (kubectl debug --profile=restricted adds none)"
    } else {
        ""
    }
}

/// Whether a context has a seccomp profile.
pub(super) fn is_confined(context: &Value) -> bool {
    matches!(text(&context["seccompProfile"], "type"), "RuntimeDefault" | "Localhost")
}

/// Capabilities as the kernel names them, without the prefix that some write.
fn named(capabilities: &Value, key: &str) -> Vec<String> {
    let names = list(capabilities, key).iter().filter_map(Value::as_str).map(str::to_uppercase);
    names.map(|name| name.strip_prefix("CAP_").map_or(name.clone(), str::to_owned)).collect()
}

/// What a container of Postern's may do that needs nothing of the node: it runs as this user, and as nobody else.
pub(super) fn unprivileged(uid: u32) -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "runAsGroup": uid,
        "runAsNonRoot": true,
        "runAsUser": uid,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}
