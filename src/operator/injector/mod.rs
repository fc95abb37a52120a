//! What becomes of a pod: the containers, volumes and variables it gets, and what it must not be. Pure.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Pod;

use super::settings::Settings;

/// What is known where a pod is judged.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    pub settings: &'a Settings,
    /// The namespace of the request; the pod itself may not name it.
    pub namespace: &'a str,
    /// The gateway's UID, drawn for this pod: 60000 to 65533.
    pub uid: u32,
}

/// A pod that is injected.
#[derive(Debug, Default)]
pub struct Injected {
    pub patch: Patch,
    /// Shown to whoever created the pod.
    pub warnings: Vec<String>,
}

/// Makes the pod one that the gateway guards. Injecting what is injected changes nothing.
///
/// # Errors
/// Sentences that say what of the pod would let its agent past the gateway, and what to change.
pub fn mutate(_pod: &Pod, _circumstances: &Circumstances<'_>) -> Result<Injected, Vec<String>> {
    Ok(Injected::default())
}

/// Judges a pod as it will be stored, `before` being how it is stored now: ephemeral containers and updates are judged
/// too. Answers sentences that say what to change; none for a pod that is guarded.
pub fn validate(_pod: &Pod, _before: Option<&Pod>, _circumstances: &Circumstances<'_>) -> Vec<String> {
    Vec::new()
}
