//! The companion that reads a volume of the pod for its gateway, where the pod asks for it (docs/workspace.md).

use serde_json::{Value, json};

use super::hardening::unprivileged;
use super::shape::{agents, annotation, list, shortened, text};
use super::volumes::{WORKSPACE, canonical, holds_token, is_within};
use crate::pod;

/// Where the companion's container has files of its own, or the node has.
const RESERVED: [&str; 10] =
    ["/bin", "/dev", "/etc", "/lib", "/lib64", "/postern", "/proc", "/run", "/sys", "/usr"];

/// A volume of the pod, and where its agents mount it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workspace {
    volume: String,
    path: String,
}

/// Reads what the pod's annotation asks for.
///
/// # Errors
/// Sentences that say what is wrong with it.
pub(super) fn asked(pod: &Value) -> Result<Option<Workspace>, Vec<String>> {
    let written = annotation(pod, pod::WORKSPACE);
    if written.is_empty() {
        return Ok(None);
    }
    let wrong = |why: String| {
        Err(vec![format!("metadata.annotations[{}] {:?}{why}", pod::WORKSPACE, shortened(written))])
    };
    let Some((volume, path)) = written.split_once(':') else {
        return wrong(" is no VOLUME:PATH, as in work:/workspace".to_owned());
    };
    if !path.starts_with('/') || canonical(path) != path || path == "/" {
        return wrong(": the path is to be absolute, without `..` and a slash at its end".to_owned());
    }
    if RESERVED.iter().any(|reserved| is_within(path, reserved)) {
        return wrong(format!(
            ": the workspace cannot be in {}: mount the volume elsewhere",
            RESERVED.join(", ")
        ));
    }
    if annotation(pod, pod::SERVICE_ACCOUNT_TOKEN) == "true" {
        return wrong(format!(
            ": the API server would give the companion the token that {} asks for: leave out one of the two",
            pod::SERVICE_ACCOUNT_TOKEN
        ));
    }
    let is_there = |mount: &Value| {
        text(mount, "name") == volume && text(mount, "mountPath").trim_end_matches('/') == path
    };
    let is_whole = |mount: &Value| text(mount, "subPath").is_empty() && text(mount, "subPathExpr").is_empty();
    let mounts =
        || agents(pod).flat_map(|agent| list(agent.value, "volumeMounts")).filter(|mount| is_there(mount));
    if mounts().next().is_none() {
        return wrong(": no container mounts this volume there: name a mount of the agent's".to_owned());
    }
    if !mounts().all(is_whole) {
        return wrong(": the companion reads whole volumes: mount it without subPath".to_owned());
    }
    let mut volumes = list(&pod["spec"], "volumes").iter().filter(|own| text(own, "name") == volume);
    if volumes.any(holds_token) {
        return wrong(": the volume holds a token of the service account: name another".to_owned());
    }
    Ok(Some(Workspace { volume: volume.to_owned(), path: path.to_owned() }))
}

impl Workspace {
    /// The companion, with a user of its own, whom the redirect does not let out.
    pub(super) fn container(&self, image: &str, pull_policy: &Value, uid: u32) -> Value {
        json!({
            "name": pod::WORKSPACE_CONTAINER,
            "image": image,
            "imagePullPolicy": pull_policy,
            "args": ["workspace", "--root", self.path, "--socket", pod::WORKSPACE_SOCKET, "--any-user"],
            "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "16Mi"}},
            "restartPolicy": "Always",
            "securityContext": unprivileged(uid),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                json!({"name": self.volume, "mountPath": self.path, "readOnly": true}),
                json!({"name": WORKSPACE, "mountPath": pod::WORKSPACE_DIRECTORY}),
            ],
        })
    }
}

/// The gateway's mount of the companion's socket.
pub(super) fn socket_mount() -> Value {
    json!({"name": WORKSPACE, "mountPath": pod::WORKSPACE_DIRECTORY, "readOnly": true})
}

/// The volume of the socket.
pub(super) fn volume() -> Value {
    json!({"name": WORKSPACE, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
}
