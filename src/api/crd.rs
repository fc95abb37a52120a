//! The CustomResourceDefinitions as they are installed.

use serde_json::{Map, Value, json};

use super::constraints;
use super::schema::{Unknown, structural};
use super::status::PolicyStatus;
use crate::policy::document::Spec;

/// The group of the resources.
pub const GROUP: &str = "postern.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// A policy's longest name. It names a file of the gateways' policy volume, whose keys have at most 253 characters.
pub const MOST_NAME: usize = 253 - "namespace-.json".len();

/// The names and the scope of a kind.
struct ResourceKind {
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static str,
    scope: &'static str,
    about: &'static str,
}

const NAMESPACED: ResourceKind = ResourceKind {
    name: "EgressPolicy",
    plural: "egresspolicies",
    singular: "egresspolicy",
    short: "egp",
    scope: "Namespaced",
    about: "Where the agents of a namespace may connect, which tool calls and hosted tools they may use, and which keys \
            they use without having them. All policies that select a pod apply together.",
};

const CLUSTER: ResourceKind = ResourceKind {
    name: "ClusterEgressPolicy",
    plural: "clusteregresspolicies",
    singular: "clusteregresspolicy",
    short: "cegp",
    scope: "Cluster",
    about: "An EgressPolicy for pods of all namespaces, or of those that it selects. What it says must be allowed too, \
            whatever a namespace's policies allow.",
};

/// Every definition, in the order in which they are installed, each as a manifest.
pub fn all() -> Vec<Value> {
    [NAMESPACED, CLUSTER].iter().map(definition).collect()
}

fn definition(kind: &ResourceKind) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{GROUP}", kind.plural),
            "labels": {"app.kubernetes.io/name": "postern", "app.kubernetes.io/part-of": "postern"},
        },
        "spec": {
            "group": GROUP,
            "scope": kind.scope,
            "names": {
                "kind": kind.name,
                "listKind": format!("{}List", kind.name),
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": [kind.short],
                "categories": ["postern"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": root(kind)},
            }],
        },
    })
}

fn columns() -> Value {
    let condition = |kind: &str| format!(".status.conditions[?(@.type==\"{kind}\")].status");
    json!([
        {"name": "Enforcement", "type": "string", "jsonPath": ".spec.enforcement"},
        {"name": "Accepted", "type": "string", "jsonPath": condition("Accepted")},
        {"name": "Programmed", "type": "string", "jsonPath": condition("Programmed")},
        {"name": "Pods", "type": "string", "jsonPath": ".status.enforcing",
            "description": "Of the pods that the policy selects, how many enforce its newest revision."},
        {"name": "Checked", "type": "date", "jsonPath": ".status.checkedAt",
            "description": "How long ago the operator last compared the status with the cluster."},
        {"name": "Revision", "type": "string", "jsonPath": ".status.revision", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ])
}

fn root(kind: &ResourceKind) -> Value {
    let message = format!("a policy's name has at most {MOST_NAME} characters: choose a shorter one");
    json!({
        "description": kind.about,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": format!("{GROUP}/{VERSION}"), "type": "string"},
            "kind": {"description": kind.name, "type": "string"},
            "metadata": {"type": "object"},
            "spec": spec(kind),
            "status": status(),
        },
        "x-kubernetes-validations": [
            {"rule": format!("size(self.metadata.name) <= {MOST_NAME}"), "message": message},
        ],
    })
}

/// The lists whose items name Secrets.
const SECRET_LISTS: [&str; 2] = ["credentials[]", "dataLoss.values[]"];

fn spec(kind: &ResourceKind) -> Value {
    let mut spec = structural::<Spec>(Unknown::Kept);
    let mut constraints = constraints::of_spec();
    constraints.extend(constraints::of_selector("podSelector"));
    if kind.scope == CLUSTER.scope {
        constraints.extend(constraints::of_selector("namespaceSelector"));
    } else {
        leave_out(&mut spec, "", "namespaceSelector");
        for list in SECRET_LISTS {
            leave_out(&mut spec, &format!("{list}.secretKeyRef"), "namespace");
        }
    }
    for source in ["fromEnv", "fromFile"] {
        for list in SECRET_LISTS {
            leave_out(&mut spec, list, source);
        }
    }
    for (path, constraint) in constraints {
        constrain(&mut spec, &path, constraint);
    }
    spec
}

fn status() -> Value {
    let mut status = structural::<PolicyStatus>(Unknown::Pruned);
    for (path, constraint) in constraints::of_status() {
        constrain(&mut status, &path, constraint);
    }
    status
}

/// Adds to the schema of a field. A path that does not exist adds nothing.
fn constrain(schema: &mut Value, path: &str, constraint: Value) {
    if let (Some(field), Value::Object(more)) = (at(schema, path), constraint) {
        field.extend(more);
    }
}

fn leave_out(schema: &mut Value, path: &str, field: &str) {
    let properties = at(schema, path).and_then(|owner| owner.get_mut("properties")?.as_object_mut());
    if let Some(properties) = properties {
        properties.shift_remove(field);
    }
}

/// The schema of a field: `destinations[].hosts[]`, `""` for the whole.
fn at<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    let mut node = schema;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, item) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        node = node.get_mut("properties")?.get_mut(name)?;
        if item {
            node = node.get_mut("items")?;
        }
    }
    node.as_object_mut()
}

/// Implements `kube::Resource` for a type with a field `metadata`.
macro_rules! resource {
    ($type:ty, $scope:ty, $kind:literal, $plural:literal) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::crd::GROUP.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::crd::VERSION.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use resource;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of a schema that has none of its own below, and all above, with its path.
    fn fields(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            fields(field, &format!("{path}.{name}"), visit);
        }
        for below in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(below) {
                fields(inner, &format!("{path}[]"), visit);
            }
        }
    }

    #[test]
    fn every_field_is_described() {
        for definition in all() {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            fields(schema, "", &mut |path, field| {
                let item = path.ends_with("[]") || path == ".metadata";
                assert!(item || field["description"].as_str().is_some_and(|text| text.len() > 3), "{path}");
            });
        }
    }

    #[test]
    fn every_constraint_has_its_field() {
        let mut spec = structural::<Spec>(Unknown::Kept);
        let selectors = ["podSelector", "namespaceSelector"].map(constraints::of_selector).concat();
        for (path, _) in constraints::of_spec().into_iter().chain(selectors) {
            assert!(at(&mut spec, &path).is_some(), "{path}");
        }
        let mut status = structural::<PolicyStatus>(Unknown::Pruned);
        for (path, _) in constraints::of_status() {
            assert!(at(&mut status, &path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_a_kind_does_not_have_is_not_in_its_schema() {
        for (kind, selects) in [(&NAMESPACED, false), (&CLUSTER, true)] {
            let spec = spec(kind);
            assert_eq!(spec["properties"].get("namespaceSelector").is_some(), selects, "{}", kind.name);
            let credential = &spec["properties"]["credentials"]["items"]["properties"];
            assert!(credential.get("secretKeyRef").is_some() && credential.get("fromEnv").is_none());
        }
    }

    #[test]
    fn only_enforcement_is_defaulted() {
        for definition in all() {
            let mut defaults = Vec::new();
            fields(
                &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
                "",
                &mut |path, field| {
                    if field.get("default").is_some() {
                        defaults.push(path.to_owned());
                    }
                },
            );
            assert_eq!(defaults, [".spec.enforcement"]);
        }
    }
}
