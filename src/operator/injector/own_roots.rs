//! CA files that containers bring along: they are mounted into the gateway too, which adds them to the container's bundle.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::shape::{Located, agents, list, ours, text, variable};
use super::volumes::read_only;
use crate::clients::{ADDED_ROOTS as ADDED, WHOLE_ROOTS as WHOLE};
use crate::pod;

/// A CA file of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnRoot {
    pub(super) container: String,
    /// `VARIABLE.pem`.
    pub(super) file: String,
    pub(super) volume: String,
    pub(super) sub_path: String,
}

impl OwnRoot {
    /// The gateway's mount of it.
    pub(super) fn mount(&self) -> Value {
        json!({
            "name": self.volume,
            "mountPath": format!("{}/{}/{}", pod::OWN_ROOTS_DIRECTORY, self.container, self.file),
            "readOnly": true,
            "subPath": self.sub_path,
        })
    }
}

/// The CA files of all containers: those that their variables name, and those that the gateway of an injected pod
/// mounts already (the variables name Postern's bundle by then).
pub(super) fn find(pod: &Value) -> Vec<OwnRoot> {
    let mut roots = Vec::new();
    let read_only = read_only(pod);
    for agent in agents(pod) {
        let mut of_agent = kept(pod, &agent, &read_only);
        for name in WHOLE.iter().chain(ADDED) {
            let Some(root) = named(&agent, name).filter(|root| is_readable(&agent, root, &read_only)) else {
                continue;
            };
            let same_file = |other: &OwnRoot| other.volume == root.volume && other.sub_path == root.sub_path;
            if !of_agent.iter().any(same_file) {
                of_agent.retain(|other| other.file != root.file);
                of_agent.push(root);
            }
        }
        roots.append(&mut of_agent);
    }
    roots
}

/// Whether a variable's file is one that Postern writes.
pub(super) fn is_ours(value: &str) -> bool {
    value.strip_prefix(pod::TRUST_DIRECTORY).is_some_and(|rest| rest.starts_with('/'))
}

/// The volume of a container's file, and its path in that volume.
pub(super) fn locate<'a>(container: &'a Value, file: &str) -> Option<(&'a str, String)> {
    let is_plain = file.starts_with('/') && !file.contains("$(") && !file.split('/').any(|part| part == "..");
    let (mount, rest) = list(container, "volumeMounts")
        .iter()
        .filter_map(|mount| Some((mount, below(file, text(mount, "mountPath"))?)))
        .min_by_key(|(_, rest)| rest.len())?;
    // The value of `subPathExpr` is only known in the container.
    let sub_path = [text(mount, "subPath").trim_end_matches('/'), rest];
    let sub_path = sub_path.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let is_known = is_plain && text(mount, "subPathExpr").is_empty() && !sub_path.is_empty();
    is_known.then(|| (text(mount, "name"), sub_path))
}

fn named(agent: &Located<'_>, name: &str) -> Option<OwnRoot> {
    let value = text(variable(agent.value, name)?, "value");
    if is_ours(value) {
        return None;
    }
    let (volume, sub_path) = locate(agent.value, value)?;
    let (container, volume) = (agent.name().to_owned(), volume.to_owned());
    Some(OwnRoot { container, file: format!("{name}.pem"), volume, sub_path })
}

fn kept(pod: &Value, agent: &Located<'_>, read_only: &BTreeSet<&str>) -> Vec<OwnRoot> {
    let Some(gateway) = ours(pod, pod::GATEWAY_CONTAINER) else { return Vec::new() };
    let directory = format!("{}/{}", pod::OWN_ROOTS_DIRECTORY, agent.name());
    let read = |mount: &Value| {
        let file = below(text(mount, "mountPath"), &directory)?.to_owned();
        let (volume, sub_path) = (text(mount, "name").to_owned(), text(mount, "subPath").to_owned());
        let known = WHOLE.iter().chain(ADDED).any(|name| file == format!("{name}.pem"));
        let root = OwnRoot { container: agent.name().to_owned(), file, volume, sub_path };
        (known && is_readable(agent, &root, read_only)).then_some(root)
    };
    list(gateway, "volumeMounts").iter().filter_map(read).collect()
}

/// Whether the gateway may read a file for a container: the container can read it itself, so nothing is disclosed, and
/// no container of the pod can replace it.
fn is_readable(agent: &Located<'_>, root: &OwnRoot, read_only: &BTreeSet<&str>) -> bool {
    let mut mounts = list(agent.value, "volumeMounts").iter();
    let reaches = |mount: &Value| {
        let mounted = text(mount, "subPath").trim_end_matches('/');
        text(mount, "name") == root.volume
            && text(mount, "subPathExpr").is_empty()
            && (mounted.is_empty() || root.sub_path == mounted || below(&root.sub_path, mounted).is_some())
    };
    !root.volume.starts_with(pod::CONTAINER_PREFIX)
        && !root.sub_path.is_empty()
        && mounts.any(reaches)
        && read_only.contains(root.volume.as_str())
}

/// The part of a path below a directory; empty for the directory itself.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}
