//! Variables by which an agent's clients find the certificates that they shall trust.

use serde_json::Value;

use super::own_roots::{OwnRoot, is_ours, locate};
use super::shape::{Located, agents, edit_agents, list, set_variable, shortened, text, variable};
use super::volumes::{has_evidence, mount_shared};
use crate::pod;

pub(super) use crate::clients::{ADDED_ROOTS as ADDED, WHOLE_ROOTS as WHOLE};

/// The options that every Java machine reads.
pub(super) const JAVA: &str = "JAVA_TOOL_OPTIONS";

/// The beginning of Java's options for trust; the later of two with the same name wins.
const JAVA_TRUST: &str = "-Djavax.net.ssl.trustStore";

/// Sets the variables of every agent, and mounts what they name.
pub(super) fn set(pod: &mut Value, own_roots: &[OwnRoot]) {
    let has_evidence = has_evidence(pod);
    edit_agents(pod, |_, container| {
        let has_own_roots = own_roots.iter().any(|root| root.container == text(container, "name"));
        set_in(container, has_own_roots, has_evidence);
    });
}

/// Sets the variables of one container. With CA files of its own it has a bundle of its own. It mounts what Postern shares with
/// agents.
pub(super) fn set_in(container: &mut Value, has_own_roots: bool, has_evidence: bool) {
    let below = if has_own_roots { format!("/{}", text(container, "name")) } else { String::new() };
    let file = |name: &str| format!("{}{below}/{name}", pod::TRUST_DIRECTORY);
    for name in WHOLE {
        set_variable(container, name, &file(pod::BUNDLE_FILE));
    }
    for name in ADDED {
        set_variable(container, name, &file(pod::ADDED_FILE));
    }
    let options = java(container, &file(pod::JAVA_FILE));
    set_variable(container, JAVA, &options);
    mount_shared(container, has_evidence);
}

/// Warns of variables for trust that are replaced.
pub(super) fn warnings(pod: &Value, own_roots: &[OwnRoot]) -> Vec<String> {
    let mut warnings = Vec::new();
    for agent in agents(pod) {
        warnings.extend(warnings_of(&agent, own_roots));
    }
    warnings
}

/// The same of one container.
pub(super) fn warnings_of(container: &Located<'_>, own_roots: &[OwnRoot]) -> Vec<String> {
    let path = &container.path;
    let mut warnings = Vec::new();
    let has_ours = variable(container.value, WHOLE[0]).is_some_and(|entry| is_ours(text(entry, "value")));
    if !list(container.value, "envFrom").is_empty() && !has_ours {
        warnings.push(format!(
            "{path}.envFrom: of the variables for CAs ({} and the like) Postern's win",
            WHOLE[0]
        ));
    }
    for name in WHOLE.iter().chain(ADDED) {
        let Some(entry) = variable(container.value, name) else { continue };
        let value = text(entry, "value");
        if !entry["valueFrom"].is_null() {
            warnings.push(format!(
                "{path}: {name} is set by valueFrom, which Postern does not read: its own bundle stands in its place"
            ));
        } else if !value.is_empty() && !is_ours(value) && !is_read(container, value, own_roots) {
            warnings.push(format!(
                "{path}: {name} names {}, which Postern cannot read: mount the CA from a ConfigMap or Secret, and it is \
                 added to Postern's bundle",
                shortened(value)
            ));
        }
    }
    warnings.extend(java_warning(container));
    warnings
}

fn is_read(container: &Located<'_>, value: &str, own_roots: &[OwnRoot]) -> bool {
    locate(container.value, value).is_some_and(|(volume, sub_path)| {
        own_roots.iter().any(|root| {
            root.container == container.name() && root.volume == volume && root.sub_path == sub_path
        })
    })
}

/// Java's options without those for another trust store, and Postern's at the end.
fn java(container: &Value, store: &str) -> String {
    let written = variable(container, JAVA).map_or("", |entry| text(entry, "value"));
    let password = pod::JAVA_PASSWORD;
    let trust = [
        format!("{JAVA_TRUST}={store}"),
        format!("{JAVA_TRUST}Password={password}"),
        format!("{JAVA_TRUST}Type=JKS"),
    ];
    let kept = written.split(' ').filter(|option| !option.is_empty() && !option.starts_with(JAVA_TRUST));
    kept.map(str::to_owned).chain(trust).collect::<Vec<_>>().join(" ")
}

fn java_warning(container: &Located<'_>) -> Option<String> {
    let path = &container.path;
    let entry = variable(container.value, JAVA)?;
    if !entry["valueFrom"].is_null() {
        return Some(format!(
            "{path}: {JAVA} is set by valueFrom, which Postern does not read: write the options as its value to keep them"
        ));
    }
    let store = format!("{JAVA_TRUST}=");
    let mut stores = text(entry, "value").split(' ').filter_map(|option| option.strip_prefix(&store));
    stores.any(|store| !is_ours(store)).then(|| {
        format!(
            "{path}: the trust store of {JAVA} gives way to Postern's: name its CAs as PEM in {} to have them in it",
            WHOLE[0]
        )
    })
}
