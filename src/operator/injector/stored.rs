//! Validates a pod as it will be stored: after all other webhooks, and whatever its author wrote into Postern's parts.

use std::collections::BTreeSet;

use json_patch::PatchOperation;
use serde_json::Value;

use super::choices::{Choices, refuse_log_level};
use super::plan::InjectionPlan;
use super::shape::{Located, annotation, list, ours, spec, text};
use super::{containers, ephemeral, hardening, shape};
use crate::operator::settings::Settings;
use crate::pod;

/// How many differences of a pod are named.
const MOST_PLACES: usize = 8;

/// Problems of a new pod: another injection must not change it.
pub(super) fn created(pod: &Value, settings: &Settings) -> Vec<String> {
    let first =
        list(&pod["spec"], shape::INIT_CONTAINERS).iter().map(|container| text(container, "name")).take(2);
    let in_place = first.eq([pod::REDIRECT_CONTAINER, pod::GATEWAY_CONTAINER]);
    let Some(uid) = containers::uid(pod).filter(|_| in_place) else {
        return vec![
            "the pod does not begin with postern-redirect and postern-gateway: see that the \
             MutatingWebhookConfiguration postern is there, and that no other webhook changes spec.initContainers after it"
                .to_owned(),
        ];
    };
    match InjectionPlan::of(pod, settings, uid, Choices::stored(pod, settings)) {
        Err(problems) => problems,
        Ok(plan) => differences(pod, &plan.carried_out(pod)),
    }
}

/// Problems of an update of a pod with a gateway. Of an older pod without one, only whether it gets the label of
/// injected pods: the operator would keep a CA for its namespace, and probe it.
pub(super) fn updated(pod: &Value, before: &Value, settings: &Settings) -> Vec<String> {
    if ours(before, pod::GATEWAY_CONTAINER).is_none() {
        let pretends = is_labelled(pod) && !is_labelled(before);
        let refuse = || {
            format!(
                "metadata.labels[{}] is set on a pod without a gateway: remove it, and create the pod anew to have it \
                 injected",
                pod::INJECTED_LABEL
            )
        };
        return pretends.then(refuse).into_iter().collect();
    }
    let mut problems = images(pod, before);
    if !is_labelled(pod) {
        problems.push(format!(
            "metadata.labels[{}] is to stay \"true\": Postern watches the pod by it",
            pod::INJECTED_LABEL
        ));
    }
    if annotation(pod, pod::LOG_LEVEL) != annotation(before, pod::LOG_LEVEL) {
        problems.extend(refuse_log_level(pod, settings));
    }
    let refused = ephemeral::refuse(pod, Some(before));
    if refused.is_empty() {
        problems.extend(differences(pod, &ephemeral_as_made(pod, before)));
    }
    problems.extend(refused);
    problems
}

fn is_labelled(pod: &Value) -> bool {
    text(&pod["metadata"]["labels"], pod::INJECTED_LABEL) == "true"
}

/// The pod with its new ephemeral containers as they are made. Placeholders are not checked.
fn ephemeral_as_made(pod: &Value, before: &Value) -> Value {
    let mut made = pod.clone();
    ephemeral::edit(&mut made, Some(before), &[]);
    made
}

/// Refuses changed images, which Kubernetes allows in a running pod: the gateway's UID is known by then, so the new
/// image could have it as its `USER` if the pod names no user.
fn images(pod: &Value, before: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let pod_user = hardening::user(&spec(pod));
    for key in [shape::INIT_CONTAINERS, shape::CONTAINERS] {
        for container in spec(pod).items(key) {
            let former =
                list(&before["spec"], key).iter().find(|former| text(former, "name") == container.name());
            if former.is_some_and(|former| former["image"] == container.value["image"]) {
                continue;
            }
            problems.extend(refuse_image(&container, pod_user.is_some()));
        }
    }
    problems
}

fn refuse_image(container: &Located<'_>, pod_has_user: bool) -> Option<String> {
    let path = &container.path;
    if container.name().starts_with(pod::CONTAINER_PREFIX) {
        return Some(format!(
            "{path}.image is Postern's and may not change in a pod that runs: create the pod anew"
        ));
    }
    let has_user = pod_has_user || hardening::user(container).is_some();
    (!has_user).then(|| {
        format!(
            "{path}.image may not change in a pod that runs unless securityContext.runAsUser is set: its USER could be \
             the gateway's: create the pod anew"
        )
    })
}

/// The differences between a pod and the one that was made.
fn differences(pod: &Value, made: &Value) -> Vec<String> {
    let patch = json_patch::diff(pod, made);
    let places: BTreeSet<String> = patch.0.iter().map(place).collect();
    let problems = places.into_iter().take(MOST_PLACES);
    problems
        .map(|place| {
            format!("{place} is not as Postern made it: see which webhook changes pods after Postern's, and exempt this one")
        })
        .collect()
}

/// The path of an operation as users write it, down to the fields of a container or volume.
fn place(operation: &PatchOperation) -> String {
    let pointer = match operation {
        PatchOperation::Add(add) => add.path.to_string(),
        PatchOperation::Remove(remove) => remove.path.to_string(),
        PatchOperation::Replace(replace) => replace.path.to_string(),
        PatchOperation::Move(moved) => moved.path.to_string(),
        PatchOperation::Copy(copied) => copied.path.to_string(),
        PatchOperation::Test(test) => test.path.to_string(),
    };
    let mut place = String::new();
    for token in pointer.split('/').skip(1).take(4) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let part = match place.as_str() {
            _ if token.contains('/') || token.parse::<usize>().is_ok() => format!("[{token}]"),
            "" => token,
            _ => format!(".{token}"),
        };
        place.push_str(&part);
    }
    place
}
