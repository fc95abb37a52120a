//! Turns an object of the API server into the document that gateways get, by the code with which they read it.

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::crd::MOST_NAME;
use crate::policy::document::{Document, Origin, parse};
use crate::problem::Problem;

/// Reads an `EgressPolicy` or `ClusterEgressPolicy` as the API server holds it. Problems name it by kind, namespace and
/// name instead of a file. Fields that are only allowed on a laptop (`fromEnv`,
/// `fromFile`, loopback in `allowAddresses`) are problems.
///
/// # Errors
/// Everything that is wrong with it, with the path of each field.
pub fn accepted(object: &Value) -> Result<Document, Vec<Problem>> {
    let name = called(object);
    let mut problems = of_cluster(object);
    unreadable(&object["spec"], "spec", &mut problems);
    match parse(&name, &bare(object).to_string()) {
        Ok(mut documents) => {
            if let (Some(mut document), true) = (documents.pop(), problems.is_empty()) {
                document.origin = Origin::named(name);
                return Ok(document);
            }
        }
        // Positions would be those of a text that nobody wrote.
        Err(more) => problems.extend(more.into_iter().map(|problem| Problem { position: None, ..problem })),
    }
    Err(problems.into_iter().map(|problem| problem.in_file(&name)).collect())
}

/// `EgressPolicy agents/coder`, `ClusterEgressPolicy base`.
fn called(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// The object as its author wrote it, without the fields that Kubernetes adds.
fn bare(object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace"] {
        metadata.extend(object["metadata"].get(field).map(|value| (field.to_owned(), value.clone())));
    }
    let mut bare = json!({"metadata": metadata});
    for field in ["apiVersion", "kind", "spec"] {
        if let Some(value) = object.get(field) {
            bare[field] = value.clone();
        }
    }
    bare
}

/// Problems that a policy has only in a cluster.
fn of_cluster(object: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    if object["metadata"]["name"].as_str().is_some_and(|name| name.len() > MOST_NAME) {
        let message = format!("a policy's name has at most {MOST_NAME} characters: choose a shorter one");
        problems.push(Problem::at("metadata.name", message));
    }
    let spec = &object["spec"];
    for (list, list_of) in
        [("credentials", &spec["credentials"]), ("dataLoss.values", &spec["dataLoss"]["values"])]
    {
        for (number, item) in items(list_of).iter().enumerate() {
            for source in ["fromEnv", "fromFile"].into_iter().filter(|source| item.get(source).is_some()) {
                let message = "is for files on a laptop: in a cluster it is in a Secret, named by `secretKeyRef: {name, key}`";
                problems.push(Problem::at(format!("spec.{list}[{number}].{source}"), message));
            }
        }
    }
    loopback(&spec["modelProviders"], &mut problems);
    problems
}

/// Finds addresses of providers that are loopback: in a pod that is the pod itself.
fn loopback(providers: &Value, problems: &mut Vec<Problem>) {
    for (number, provider) in items(providers).iter().enumerate() {
        for (item, range) in items(&provider["allowAddresses"]).iter().enumerate() {
            let range = range.as_str().and_then(|range| range.parse::<IpNet>().ok());
            if range.is_some_and(|range| range.addr().is_loopback()) {
                let message = "is for files on a laptop: loopback in a pod is the pod itself";
                problems.push(Problem::at(
                    format!("spec.modelProviders[{number}].allowAddresses[{item}]"),
                    message,
                ));
            }
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Finds texts that not every reader would read as they are written.
fn unreadable(value: &Value, path: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::String(text) => {
            if let Some(character) = odd(text) {
                problems.push(Problem::at(path, format!("has the character {character}: leave it out")));
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                unreadable(item, &format!("{path}[{number}]"), problems);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match odd(name) {
                    Some(character) => {
                        let message =
                            format!("has a field with the character {character} in its name: leave it out");
                        problems.push(Problem::at(path, message));
                    }
                    None => unreadable(field, &format!("{path}.{name}"), problems),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Finds a NUL, which ends a text for some readers, or a character that is allowed in JSON and not in YAML (YAML 1.2,
/// section
/// 5.1): gateways read the one as the other.
fn odd(text: &str) -> Option<String> {
    let odd = |character: &char| matches!(character, '\0' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().find(odd).map(|character| format!("U+{:04X}", u32::from(character)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(spec: &Value) -> Value {
        json!({
            "apiVersion": "postern.dev/v1alpha1",
            "kind": "EgressPolicy",
            "metadata": {
                "name": "coder", "namespace": "agents", "uid": "1", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z", "selfLink": "/x",
                "annotations": {"a": "b"}, "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": spec,
            "status": {"conditions": [], "anything": true},
        })
    }

    fn problems(spec: &Value) -> Vec<String> {
        accepted(&policy(spec)).unwrap_err().iter().map(Problem::to_string).collect()
    }

    #[test]
    fn what_kubernetes_keeps_beside_a_policy_is_no_part_of_it() {
        let document = accepted(&policy(&json!({"toolDefault": "Deny"}))).unwrap();
        assert_eq!(document.id(), "agents/coder");
        let bare = json!({
            "apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy",
            "metadata": {"name": "coder", "namespace": "agents"}, "spec": {"toolDefault": "Deny"},
        });
        assert_eq!(serde_json::to_value(&document).unwrap(), bare);
    }

    #[test]
    fn every_problem_is_told_with_the_object_and_the_field_and_without_a_place() {
        let found = problems(&json!({
            "destinations": [{"name": "a", "hosts": ["x.example"], "action": "Inspekt"}],
            "toolOutputs": {},
            "modelProviders": [{"name": "m", "endpoint": "https://m.example", "dialect": "OpenAIChat",
                "allowAddresses": ["10.0.0.0/8", "127.0.0.0/8"]}],
            "credentials": [
                {"name": "k", "hosts": ["x.example"], "fromEnv": "KEY"},
                {"name": "l", "hosts": ["*.example"], "fromFile": "key"},
            ],
        }));
        let all = found.join("\n");
        for told in [
            "EgressPolicy agents/coder: spec.credentials[0].fromEnv: is for files on a laptop",
            "EgressPolicy agents/coder: spec.credentials[1].fromFile: is for files on a laptop",
            "EgressPolicy agents/coder: spec.destinations[0].action: unknown value \"Inspekt\"",
            "EgressPolicy agents/coder: spec.toolOutputs: asks for nothing",
            "EgressPolicy agents/coder: spec.modelProviders[0].allowAddresses[1]: is for files on a laptop",
            "EgressPolicy agents/coder: spec.credentials[1].hosts[0]: \"*.example\": a credential belongs to exact names",
        ] {
            assert!(all.contains(told), "{told}\n{all}");
        }
        assert_eq!(found.len(), 6, "{all}");
    }

    #[test]
    fn what_not_everybody_reads_is_refused_wherever_it_stands() {
        let spec = json!({"tools": [{"name": "a", "tools": ["b\0"], "action": "Deny"}]});
        assert_eq!(
            problems(&spec),
            ["EgressPolicy agents/coder: spec.tools[0].tools[0]: has the character U+0000: leave it out"]
        );
        let spec = json!({"podSelector": {"matchLabels": {"a\0b": "c"}}});
        assert!(
            problems(&spec)[0]
                .contains("spec.podSelector.matchLabels: has a field with the character U+0000")
        );
    }

    #[test]
    fn what_is_no_policy_is_refused_in_words() {
        for object in [json!(null), json!([]), json!("x"), json!({}), json!({"metadata": 3, "spec": []})] {
            assert!(!accepted(&object).unwrap_err().is_empty(), "{object}");
        }
        let mut long = policy(&json!({}));
        long["metadata"]["name"] = "a".repeat(239).into();
        assert!(accepted(&long).unwrap_err()[0].message.contains("238 characters"));
    }

    /// Texts that could end a string, a line or a document where somebody pastes instead of writing.
    fn nasty() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "\n",
            "\r\n",
            "\n---\n",
            "\n...\n",
            "\"",
            "'",
            "\\",
            "${HOME}",
            "{{ .Values }}",
            "#",
            ": ",
            "- ",
            "!!str",
            "&a",
            "*a",
            "%YAML",
            "|",
            ">",
            "\t",
            "\u{85}",
            "\u{a0}",
            "\u{2028}",
            "\u{feff}",
            "\u{10ffff}",
            "é",
            "null",
            "true",
            "1e3",
            "0x1f",
            "~",
            "",
            "a",
            "\u{1b}",
            "\u{1}",
        ]);
        prop_oneof![
            prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
            "\\PC{0,40}".prop_filter("refused", |text| odd(text).is_none()),
            any::<String>()
                .prop_map(|text| text.chars().filter(|each| odd(&each.to_string()).is_none()).collect()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_for_gateways_is_what_was_accepted(
            text in nasty(), other in nasty(), label in nasty(), number in any::<i64>(), fraction in prop::num::f64::NORMAL,
        ) {
            let spec = json!({
                "podSelector": {"matchLabels": {label.as_str(): text.as_str()}},
                "tools": [{
                    "name": "a", "kind": "Shell", "action": "Deny",
                    "when": {"all": [
                        {"param": "command", "operator": "Equals", "values": [text, other, number, fraction, true]},
                        {"not": {"param": "command", "operator": "Equals", "values": [other]}},
                    ]},
                }],
            });
            let document = accepted(&policy(&spec)).unwrap();
            let written = serde_json::to_string(&document).unwrap();
            prop_assert_eq!(&serde_json::to_value(&document).unwrap()["spec"], &spec);
            let read = parse("namespace-coder.json", &written).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(serde_json::to_string(&read[0]).unwrap(), written);
        }
    }
}
