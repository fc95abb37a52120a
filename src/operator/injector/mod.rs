//! Injects the gateway into a pod: the containers, volumes and variables that it gets, and the pods that are refused. Pure.
//!
//! A pod is JSON here, so that fields which only a newer Kubernetes knows stay as they are. [`mutate`] edits a copy step
//! by step (`plan`), and the patch is the difference. [`validate`] checks that the same steps would change nothing more.

mod choices;
#[cfg(test)]
mod choices_tests;
mod containers;
#[cfg(test)]
mod corpus_tests;
mod ephemeral;
#[cfg(test)]
mod ephemeral_tests;
#[cfg(test)]
mod evidence_tests;
mod hardening;
mod own_roots;
mod placeholders;
mod plan;
mod ports;
mod references;
mod refusals;
mod shape;
mod stored;
#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod testing;
mod trust;
mod volumes;
#[cfg(test)]
mod ways_around_tests;
mod workspace;
#[cfg(test)]
mod workspace_tests;

use json_patch::Patch;
use serde_json::Value;

pub use self::choices::Annotations;
use self::choices::Choices;
use self::plan::InjectionPlan;
use super::settings::Settings;
use crate::pod as names;

/// The annotation by which kubectl chooses a container.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The facts beside the pod by which it is mutated and validated.
#[derive(Debug, Clone, Copy)]
pub struct InjectionFacts<'a> {
    pub settings: &'a Settings,
    /// The namespace of the request; the pod itself may not name it.
    pub namespace: &'a str,
    /// The namespace's annotations, for mutating.
    pub annotations: &'a Annotations,
    /// The gateway's UID, drawn by [`draw`] each time that the pod is mutated.
    pub uid: u32,
}

/// The result of injecting a pod.
#[derive(Debug, Default)]
pub struct Injected {
    pub patch: Patch,
    /// Shown to the pod's creator. The API server cuts each at 256 characters.
    pub warnings: Vec<String>,
}

/// Injects the gateway into a pod. A second injection changes only the UID, if another was drawn: the one in the pod
/// may be its author's choice, for an image with that `USER`.
///
/// # Errors
/// Sentences that say what would let the pod's agent past the gateway, and what to change.
pub fn mutate(pod: &Value, circumstances: &InjectionFacts<'_>) -> Result<Injected, Vec<String>> {
    let InjectionFacts { settings, annotations, uid, .. } = circumstances;
    let plan = InjectionPlan::of(pod, settings, *uid, Choices::asked(pod, annotations, settings))?;
    let mut edited = plan.carried_out(pod);
    name_default_container(&mut edited);
    volumes::let_be_moved(&mut edited);
    Ok(Injected { patch: json_patch::diff(pod, &edited), warnings: plan.warnings(pod) })
}

/// Puts the ephemeral containers that were added to a pod behind its gateway; `before` is the stored pod. A pod without
/// a gateway is left as it is.
///
/// # Errors
/// Sentences that say what would get past the gateway, and what to change.
pub fn mutate_ephemeral(pod: &Value, before: Option<&Value>) -> Result<Injected, Vec<String>> {
    if shape::ours(pod, names::GATEWAY_CONTAINER).is_none() {
        return Ok(Injected::default());
    }
    let problems = ephemeral::refuse(pod, before);
    if !problems.is_empty() {
        return Err(problems);
    }
    // Unreadable placeholders were refused when the pod was created; its annotations may have changed since.
    let placeholders = placeholders::read(pod).unwrap_or_default();
    let mut edited = pod.clone();
    ephemeral::edit(&mut edited, before, &placeholders);
    let warnings = ephemeral::warnings(pod, before, &placeholders);
    Ok(Injected { patch: json_patch::diff(pod, &edited), warnings })
}

/// Validates a pod as it will be stored; `before` is the stored pod, for updates and added ephemeral containers.
/// Returns sentences that say what to change; none for a guarded pod.
pub fn validate(pod: &Value, before: Option<&Value>, circumstances: &InjectionFacts<'_>) -> Vec<String> {
    match before {
        None => stored::created(pod, circumstances.settings),
        Some(before) => stored::updated(pod, before, circumstances.settings),
    }
}

/// Validates a pod of a namespace that demands a user of every container ([`names::REQUIRE_RUN_AS_USER`]). Returns a
/// sentence for each container that names none.
pub fn demand_users(pod: &Value) -> Vec<String> {
    refusals::refuse_unnamed(pod)
}

/// Draws a UID of 60000 or above for the pod's gateway that no container of the pod asks for; `random` chooses among
/// them.
pub fn draw(pod: &Value, random: u32) -> u32 {
    let taken: Vec<u64> = hardening::users(pod).map(|(_, user)| user).collect();
    containers::draw(pod, &taken, random)
}

/// Names the default container of `kubectl logs` and `kubectl exec`, unless the pod's author did. It guards nothing, so
/// a pod that loses it is still stored.
fn name_default_container(pod: &mut Value) {
    let first = shape::list(&pod["spec"], shape::CONTAINERS).first();
    let Some(name) = first.and_then(|first| first["name"].as_str()).map(Value::from) else { return };
    shape::edit_object(pod, "metadata", |metadata| {
        shape::edit_object(metadata, "annotations", |annotations| {
            if annotations[DEFAULT_CONTAINER].is_null() {
                shape::put(annotations, DEFAULT_CONTAINER, name);
            }
        });
    });
}
