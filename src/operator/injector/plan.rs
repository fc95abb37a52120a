//! The steps of an injection: what is put into one pod, in order.

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::Value;

use super::choices::Choices;
use super::containers::ContainerParts;
use super::own_roots::OwnRoot;
use super::placeholders::Placeholder;
use super::ports::ListenPorts;
use super::workspace::Workspace;
use super::{
    containers, hardening, own_roots, placeholders, ports, refusals, shape, trust, volumes, workspace,
};
use crate::operator::settings::Settings;
use crate::pod as names;

/// Everything that is injected into one pod.
pub(super) struct InjectionPlan<'a> {
    settings: &'a Settings,
    ports: ListenPorts,
    uid: u32,
    inbound: Vec<u16>,
    placeholders: Vec<Placeholder>,
    own_roots: Vec<OwnRoot>,
    workspace: Option<Workspace>,
    choices: Choices,
    /// The pod without its tokens; its own CA files are looked for in it.
    stripped: Value,
}

impl<'a> InjectionPlan<'a> {
    pub(super) fn of(
        pod: &Value,
        settings: &'a Settings,
        uid: u32,
        choices: Result<Choices, Vec<String>>,
    ) -> Result<Self, Vec<String>> {
        Pod::deserialize(pod).map_err(|error| vec![format!("the pod cannot be read: {error}")])?;
        let mut problems = refusals::refuse(pod, settings);
        problems.extend(refusals::refuse_user(pod, uid));
        let ports = ListenPorts::read(&settings.gateway.settings);
        let inbound = ports::inbound(pod, &ports).unwrap_or_else(|more| kept(&mut problems, more));
        let placeholders = placeholders::read(pod).unwrap_or_else(|more| kept(&mut problems, more));
        let workspace = workspace::asked(pod).unwrap_or_else(|more| kept(&mut problems, more));
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
        Ok(Self { settings, ports, uid, inbound, placeholders, own_roots, workspace, choices, stripped })
    }

    pub(super) fn carried_out(&self, pod: &Value) -> Value {
        let own_roots: Vec<Value> = self.own_roots.iter().map(OwnRoot::mount).collect();
        let parts = ContainerParts {
            settings: self.settings,
            choices: &self.choices,
            ports: &self.ports,
            uid: self.uid,
            inbound: &self.inbound,
            own_roots: &own_roots,
            workspace: self.workspace.as_ref(),
        };
        let mut edited = pod.clone();
        label(&mut edited);
        self.choices.annotate(&mut edited);
        volumes::remove_tokens(&mut edited);
        let gateway = &self.settings.gateway;
        let kept = [gateway.ledger_bytes(), gateway.evidence_bytes()];
        volumes::place(&mut edited, kept, self.workspace.is_some());
        trust::set(&mut edited, &self.own_roots);
        placeholders::set(&mut edited, &self.placeholders);
        hardening::harden(&mut edited);
        containers::place(&mut edited, &parts);
        edited
    }

    pub(super) fn warnings(&self, pod: &Value) -> Vec<String> {
        let mut warnings = trust::warnings(&self.stripped, &self.own_roots);
        warnings.extend(placeholders::warnings(pod, &self.placeholders));
        warnings.extend(ports::warnings(pod));
        warnings
    }
}

/// Labels the pod as one that the operator watches, and whose gateway's UID was drawn.
fn label(pod: &mut Value) {
    shape::edit_object(pod, "metadata", |metadata| {
        shape::edit_object(metadata, "labels", |labels| {
            shape::put(labels, names::INJECTED_LABEL, Value::from("true"));
            shape::put(labels, names::USER_ID_LABEL, Value::from(names::DRAWN));
        });
    });
}

fn kept<T: Default>(problems: &mut Vec<String>, more: Vec<String>) -> T {
    problems.extend(more);
    T::default()
}
