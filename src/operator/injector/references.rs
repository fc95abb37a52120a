//! References to Postern's objects and volumes, which only Postern's own containers may have.

use serde_json::Value;

use super::shape::{EPHEMERAL_CONTAINERS, INIT_CONTAINERS, Located, is_ours, spec};
use super::volumes::{LEDGER, POD_INFO, RUN, TRUST, WORKSPACE};
use crate::pod;

const NAMES: [&str; 8] = [
    pod::POLICY_CONFIG_MAP,
    pod::CA_SECRET,
    pod::CREDENTIALS_SECRET,
    POD_INFO,
    RUN,
    TRUST,
    LEDGER,
    WORKSPACE,
];

/// The fields by which a part of a pod refers to an object or a volume, whatever kind of volume a newer Kubernetes
/// adds.
const FIELDS: [&str; 4] = ["name", "secretName", "volumeName", "claimName"];

/// Fields of containers that `volumes` judges.
const MOUNTS: [&str; 2] = ["volumeMounts", "volumeDevices"];

/// Refuses references to them: by volumes, projections, variables, secrets of drivers.
pub(super) fn refuse(pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, value) in pod["spec"].as_object().into_iter().flatten() {
        let part = spec(pod);
        match key.as_str() {
            INIT_CONTAINERS => part
                .items(key)
                .filter(|container| !is_ours(container.name()))
                .for_each(|container| collect(&container, &mut problems)),
            // Volumes with these names are replaced by Postern's own.
            "volumes" => part
                .items(key)
                .filter(|volume| !NAMES.contains(&volume.name()))
                .for_each(|volume| collect(&volume, &mut problems)),
            // Ephemeral containers are judged when they are added.
            EPHEMERAL_CONTAINERS => {}
            _ => collect(&Located { path: format!("spec.{key}"), value }, &mut problems),
        }
    }
    problems
}

/// The same of one container.
pub(super) fn refuse_container(container: &Located<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    collect(container, &mut problems);
    problems
}

fn collect(part: &Located<'_>, problems: &mut Vec<String>) {
    match part.value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let field = part.field(key);
                if MOUNTS.contains(&key.as_str()) {
                    continue;
                }
                if FIELDS.contains(&key.as_str()) && value.as_str().is_some_and(|name| NAMES.contains(&name))
                {
                    let name = value.as_str().unwrap_or_default();
                    problems.push(format!(
                        "{} refers to {name:?}, which is the gateway's alone: remove it",
                        field.path
                    ));
                } else {
                    collect(&field, problems);
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(&Located { path: format!("{}[{index}]", part.path), value }, problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
