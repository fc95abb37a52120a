//! Ephemeral containers, which `kubectl debug` adds to a running pod: they are treated as agents too.

use serde_json::Value;

use super::placeholders::{self, Placeholder};
use super::shape::{EPHEMERAL_CONTAINERS, Located, edit_object, is_ours, list, put, spec, text};
use super::{containers, hardening, references, refusals, trust, volumes};

/// Never the UID of a gateway.
const NOBODY: u32 = 65_534;

/// Puts new ephemeral containers behind the gateway; running ones cannot change.
pub(super) fn edit(pod: &mut Value, before: Option<&Value>, placeholders: &[Placeholder]) {
    let known = names(before);
    let context = pod["spec"]["securityContext"].clone();
    let has_evidence = volumes::has_evidence(pod);
    let confined = hardening::is_confined(&context);
    let added = pod.get_mut("spec").and_then(|spec| spec.get_mut(EPHEMERAL_CONTAINERS));
    for container in added.and_then(Value::as_array_mut).into_iter().flatten() {
        if !known.iter().any(|name| name == text(container, "name")) {
            // The gateway is running already, so it cannot mount CA files of this container.
            trust::set_in(container, false, has_evidence);
            placeholders::set_in(container, placeholders);
            hardening::harden_container(container, confined);
            name_user(container, &context);
        }
    }
}

/// Names a user for the container if neither it nor its pod does: the gateway's UID is known by now, so an image could
/// have it as its `USER`.
fn name_user(container: &mut Value, pod_context: &Value) {
    edit_object(container, "securityContext", |context| {
        if context["runAsUser"].is_null() && pod_context["runAsUser"].is_null() {
            let of_container = context["runAsNonRoot"].as_bool();
            let is_not_root = of_container.or(pod_context["runAsNonRoot"].as_bool()).unwrap_or(false);
            put(context, "runAsUser", Value::from(if is_not_root { NOBODY } else { 0 }));
        }
    });
}

/// Refuses new ephemeral containers that would get past the gateway.
pub(super) fn refuse(pod: &Value, before: Option<&Value>) -> Vec<String> {
    let uid = containers::uid(pod);
    let mut problems = Vec::new();
    for container in added(pod, before) {
        let path = &container.path;
        problems.extend(refusals::refuse_name(&container));
        problems.extend(hardening::refuse_container(&container));
        problems.extend(volumes::refuse_mounts(&container));
        problems.extend(references::refuse_container(&container));
        if is_ours(text(container.value, "targetContainerName")) {
            problems.push(format!(
                "{path}.targetContainerName is Postern's, whose memory and files would be within reach: name another"
            ));
        }
        let user =
            hardening::user(&container).filter(|(_, user)| uid.is_some_and(|uid| *user == u64::from(uid)));
        problems.extend(
            user.map(|(path, user)| format!("{path} is {user}, which is the gateway's: choose another")),
        );
    }
    problems
}

/// Warns of variables of new ephemeral containers that are replaced.
pub(super) fn warnings(pod: &Value, before: Option<&Value>, placeholders: &[Placeholder]) -> Vec<String> {
    let mut warnings = Vec::new();
    for container in added(pod, before) {
        warnings.extend(trust::warnings_of(&container, &[]));
        warnings.extend(placeholders::warnings_of(&container, placeholders));
    }
    warnings
}

fn added<'a>(pod: &'a Value, before: Option<&'a Value>) -> impl Iterator<Item = Located<'a>> {
    let known = names(before);
    spec(pod)
        .items(EPHEMERAL_CONTAINERS)
        .filter(move |container| !known.iter().any(|name| name == container.name()))
}

fn names(before: Option<&Value>) -> Vec<String> {
    let containers = before.map_or(&[][..], |before| list(&before["spec"], EPHEMERAL_CONTAINERS));
    containers.iter().map(|container| text(container, "name").to_owned()).collect()
}
