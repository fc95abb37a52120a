//! What becomes of a pod: the containers, volumes and variables it gets, and what it must not be. Pure.
//!
//! A pod is JSON here, so that fields which only a newer Kubernetes knows stay as they are. [`mutate`] edits a copy step
//! by step, and the patch is the difference. [`validate`] asks whether the same steps would still change something.

mod choices;
#[cfg(test)]
mod choices_tests;
mod containers;
#[cfg(test)]
mod corpus_tests;
mod ephemeral;
#[cfg(test)]
mod ephemeral_tests;
mod hardening;
mod own_roots;
mod placeholders;
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

use json_patch::Patch;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::Value;

pub use self::choices::Annotations;
use self::choices::Choices;
use self::containers::Parts;
use self::own_roots::OwnRoot;
use self::placeholders::Placeholder;
use self::ports::Ports;
use super::settings::Settings;
use crate::pod as names;

/// The annotation by which kubectl chooses a container.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// What is known where a pod is judged.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    pub settings: &'a Settings,
    /// The namespace of the request; the pod itself may not name it.
    pub namespace: &'a str,
    /// What the namespace's annotations are, where the pod is mutated.
    pub annotations: &'a Annotations,
    /// The gateway's UID, drawn for this pod by [`draw`], anew each time that the pod is mutated.
    pub uid: u32,
}

/// A pod that is injected.
#[derive(Debug, Default)]
pub struct Injected {
    pub patch: Patch,
    /// Shown to whoever created the pod; each at most 256 characters long, where the API server cuts them.
    pub warnings: Vec<String>,
}

/// Makes the pod one that the gateway guards. Injecting what is injected changes nothing but the UID, where another was
/// drawn: the one that is written in a pod may have been chosen by its author, for an image whose `USER` it is.
///
/// # Errors
/// Sentences that say what of the pod would let its agent past the gateway, and what to change.
pub fn mutate(pod: &Value, circumstances: &Circumstances<'_>) -> Result<Injected, Vec<String>> {
    let Circumstances { settings, annotations, uid, .. } = circumstances;
    let plan = Plan::of(pod, settings, *uid, Choices::asked(pod, annotations, settings))?;
    let mut edited = plan.carried_out(pod);
    name_default_container(&mut edited);
    Ok(Injected { patch: json_patch::diff(pod, &edited), warnings: plan.warnings(pod) })
}

/// Makes the ephemeral containers that were added to a pod, `before` being how it is stored now, ones that its gateway
/// guards. A pod without a gateway is left as it is.
///
/// # Errors
/// Sentences that say what of them would get past the gateway, and what to change.
pub fn mutate_ephemeral(pod: &Value, before: Option<&Value>) -> Result<Injected, Vec<String>> {
    if shape::ours(pod, names::GATEWAY_CONTAINER).is_none() {
        return Ok(Injected::default());
    }
    let problems = ephemeral::refuse(pod, before);
    if !problems.is_empty() {
        return Err(problems);
    }
    // What could not be read was refused when the pod was created; its annotations may be others by now.
    let placeholders = placeholders::read(pod).unwrap_or_default();
    let mut edited = pod.clone();
    ephemeral::edit(&mut edited, before, &placeholders);
    let warnings = ephemeral::warnings(pod, before, &placeholders);
    Ok(Injected { patch: json_patch::diff(pod, &edited), warnings })
}

/// Judges a pod as it will be stored, `before` being how it is stored now: ephemeral containers and updates are judged
/// too. Answers sentences that say what to change; none for a pod that is guarded.
pub fn validate(pod: &Value, before: Option<&Value>, circumstances: &Circumstances<'_>) -> Vec<String> {
    match before {
        None => stored::created(pod, circumstances.settings),
        Some(before) => stored::updated(pod, before, circumstances.settings),
    }
}

/// Judges a pod of a namespace that demands a user of every container ([`names::REQUIRE_RUN_AS_USER`]). Returns a sentence
/// for each container that names none.
pub fn demand_users(pod: &Value) -> Vec<String> {
    refusals::refuse_unnamed(pod)
}

/// A UID for the pod's gateway that nobody of the pod asks for, 60000 or above, `random` choosing among them.
pub fn draw(pod: &Value, random: u32) -> u32 {
    let taken: Vec<u64> = hardening::users(pod).map(|(_, user)| user).collect();
    containers::draw(pod, &taken, random)
}

/// All that is put into one pod.
struct Plan<'a> {
    settings: &'a Settings,
    ports: Ports,
    uid: u32,
    inbound: Vec<u16>,
    placeholders: Vec<Placeholder>,
    own_roots: Vec<OwnRoot>,
    choices: Choices,
    /// The pod without what it is not to have, by which files of its own are found.
    stripped: Value,
}

impl<'a> Plan<'a> {
    fn of(
        pod: &Value,
        settings: &'a Settings,
        uid: u32,
        choices: Result<Choices, Vec<String>>,
    ) -> Result<Self, Vec<String>> {
        Pod::deserialize(pod).map_err(|error| vec![format!("the pod cannot be read: {error}")])?;
        let mut problems = refusals::refuse(pod, settings);
        problems.extend(refusals::refuse_user(pod, uid));
        let ports = Ports::read(&settings.gateway.settings);
        let inbound = ports::inbound(pod, &ports).unwrap_or_else(|more| kept(&mut problems, more));
        let placeholders = placeholders::read(pod).unwrap_or_else(|more| kept(&mut problems, more));
        let choices = match choices {
            Ok(choices) if problems.is_empty() => choices,
            Ok(_) => return Err(problems),
            Err(more) => {
                problems.extend(more);
                return Err(problems);
            }
        };
        let mut stripped = pod.clone();
        volumes::remove_tokens(&mut stripped);
        let own_roots = own_roots::find(&stripped);
        Ok(Self { settings, ports, uid, inbound, placeholders, own_roots, choices, stripped })
    }

    fn carried_out(&self, pod: &Value) -> Value {
        let own_roots: Vec<Value> = self.own_roots.iter().map(OwnRoot::mount).collect();
        let parts = Parts {
            settings: self.settings,
            choices: &self.choices,
            ports: &self.ports,
            uid: self.uid,
            inbound: &self.inbound,
            own_roots: &own_roots,
        };
        let mut edited = pod.clone();
        label(&mut edited);
        self.choices.annotate(&mut edited);
        volumes::remove_tokens(&mut edited);
        volumes::place(&mut edited);
        trust::set(&mut edited, &self.own_roots);
        placeholders::set(&mut edited, &self.placeholders);
        hardening::harden(&mut edited);
        containers::place(&mut edited, &parts);
        edited
    }

    fn warnings(&self, pod: &Value) -> Vec<String> {
        let mut warnings = trust::warnings(&self.stripped, &self.own_roots);
        warnings.extend(placeholders::warnings(pod, &self.placeholders));
        warnings.extend(ports::warnings(pod));
        warnings
    }
}

/// Marks the pod as one that the operator watches, and whose gateway's UID is not its author's choice.
fn label(pod: &mut Value) {
    shape::edit_object(pod, "metadata", |metadata| {
        shape::edit_object(metadata, "labels", |labels| {
            shape::put(labels, names::INJECTED_LABEL, Value::from("true"));
            shape::put(labels, names::USER_ID_LABEL, Value::from(names::DRAWN));
        });
    });
}

/// Names the container that `kubectl logs` and `kubectl exec` take where none is given, unless the pod's author did.
/// Nothing is guarded by it, so that a pod that loses it is stored all the same.
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

fn kept<T: Default>(problems: &mut Vec<String>, more: Vec<String>) -> T {
    problems.extend(more);
    T::default()
}
