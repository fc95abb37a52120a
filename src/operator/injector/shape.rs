//! Reads and edits a pod as JSON, so that fields which only a newer Kubernetes knows stay as they are.

use serde_json::{Map, Value};

use crate::pod;

pub(super) const CONTAINERS: &str = "containers";
pub(super) const INIT_CONTAINERS: &str = "initContainers";
pub(super) const EPHEMERAL_CONTAINERS: &str = "ephemeralContainers";

/// A part of a pod, with its path as users write it: `spec.containers[0]`.
#[derive(Debug, Clone)]
pub(super) struct Located<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Located<'a> {
    pub(super) fn name(&self) -> &'a str {
        text(self.value, "name")
    }

    /// The items of a list in this part.
    pub(super) fn items(&self, key: &str) -> impl Iterator<Item = Self> + use<'a> {
        let path = format!("{}.{key}", self.path);
        let located = move |(index, value)| Self { path: format!("{path}[{index}]"), value };
        list(self.value, key).iter().enumerate().map(located)
    }

    pub(super) fn field(&self, key: &str) -> Self {
        Self { path: format!("{}.{key}", self.path), value: &self.value[key] }
    }
}

/// The probes and lifecycle hooks of a container, by which kubelet connects to it.
pub(super) fn probes_and_hooks<'a>(container: &Located<'a>) -> impl Iterator<Item = Located<'a>> + use<'a> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.field(probe));
    let hooks = ["postStart", "preStop"].map(|hook| container.field("lifecycle").field(hook));
    probes.into_iter().chain(hooks)
}

/// The pod's `spec`.
pub(super) fn spec(pod: &Value) -> Located<'_> {
    Located { path: "spec".to_owned(), value: &pod["spec"] }
}

/// Every container that runs beside the gateway, in starting order. Ephemeral containers are handled elsewhere.
pub(super) fn agents(pod: &Value) -> impl Iterator<Item = Located<'_>> {
    let spec = spec(pod);
    spec.items(INIT_CONTAINERS).filter(|container| !is_ours(container.name())).chain(spec.items(CONTAINERS))
}

/// Whether an init container of this name is Postern's.
pub(super) fn is_ours(name: &str) -> bool {
    [pod::REDIRECT_CONTAINER, pod::GATEWAY_CONTAINER, pod::WORKSPACE_CONTAINER].contains(&name)
}

/// One of Postern's init containers.
pub(super) fn ours<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    list(&pod["spec"], INIT_CONTAINERS).iter().find(|container| text(container, "name") == name)
}

/// The pod's annotation; empty where there is none.
pub(super) fn annotation<'a>(pod: &'a Value, key: &str) -> &'a str {
    text(&pod["metadata"]["annotations"], key)
}

/// A list, or none.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A text, or the empty one.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Shortens a text for a message: the API server cuts long ones.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

pub(super) fn is_true(value: &Value, key: &str) -> bool {
    value[key].as_bool() == Some(true)
}

/// Edits a list in place; removes it if it ends empty.
pub(super) fn edit_list(value: &mut Value, key: &str, edit: impl FnOnce(&mut Vec<Value>)) {
    let mut items = match value.get_mut(key).map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    };
    edit(&mut items);
    put(value, key, Value::Array(items));
}

/// Edits an object in place; removes it if it ends empty.
pub(super) fn edit_object(value: &mut Value, key: &str, edit: impl FnOnce(&mut Value)) {
    let mut object = value.get_mut(key).map(Value::take).filter(Value::is_object);
    let object = object.get_or_insert_with(|| Value::Object(Map::new()));
    edit(object);
    put(value, key, object.take());
}

/// Sets a field, or removes it if it would be empty.
pub(super) fn put(value: &mut Value, key: &str, new: Value) {
    let Some(object) = value.as_object_mut() else { return };
    let empty = new.as_array().is_some_and(Vec::is_empty) || new.as_object().is_some_and(Map::is_empty);
    if empty {
        object.shift_remove(key);
    } else {
        object.insert(key.to_owned(), new);
    }
}

/// Edits every container that runs beside the gateway, except ephemeral ones; the edit gets the container's path.
pub(super) fn edit_agents(pod: &mut Value, mut edit: impl FnMut(&str, &mut Value)) {
    let Some(spec) = pod.get_mut("spec") else { return };
    for key in [INIT_CONTAINERS, CONTAINERS] {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (index, container) in containers.enumerate() {
            if key == CONTAINERS || !is_ours(text(container, "name")) {
                edit(&format!("spec.{key}[{index}]"), container);
            }
        }
    }
}

/// Sets a variable of a container, at the position of the first of its name, so that references to it (`$(NAME)`) still
/// come later, and as the only one of its name, so that no later one wins.
pub(super) fn set_variable(container: &mut Value, name: &str, value: &str) {
    edit_list(container, "env", |env| {
        let ours = serde_json::json!({"name": name, "value": value});
        let first = env.iter().position(|entry| text(entry, "name") == name).unwrap_or(env.len());
        env.retain({
            let mut index = 0;
            move |entry| {
                index += 1;
                index <= first || text(entry, "name") != name
            }
        });
        env.insert(first, ours);
    });
}

/// The effective entry of a variable: the last of its name.
pub(super) fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    list(container, "env").iter().rev().find(|entry| text(entry, "name") == name)
}
