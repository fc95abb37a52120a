//! What gateways of the last minor release know of policies, so that they are given nothing else. Pure.
//!
//! While the operator is a version ahead, pods run the gateway that they were started with. A document with a field that
//! such a gateway does not know stops all reloads of it, and a day later it denies everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::publish::{Candidate, publish};
use crate::policy::compile::Labels;
use crate::policy::document::Document;
use crate::problem::Problem;

/// The fields of policies in the last minor release, and the words of those that take one of several, a line each:
/// `spec.tools[].action`, `spec.tools[].action=Deny`. What is kept unread below a field is `.**`, a key of the author's
/// choice `.*`. A release copies here what its own definitions say (CONTRIBUTING.md, "Versions").
static LAST_RELEASE: LazyLock<Known> = LazyLock::new(|| Known::of(include_str!("last-release.txt")));

/// A set of fields and words that a version knows.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeSet<String>);

/// Policies as gateways of the last release can read them, where they could not read all of them as they are.
#[derive(Debug, Default)]
pub(super) struct Older {
    pub(super) documents: BTreeMap<String, Document>,
    /// What those gateways do not know, by the keys of the policies. It is empty where one form does for everybody.
    pub(super) beyond: BTreeMap<String, Vec<String>>,
}

impl Known {
    /// What the last minor release knows.
    pub(super) fn by_last_release() -> &'static Self {
        &LAST_RELEASE
    }

    pub(super) fn of(lines: &str) -> Self {
        Self(lines.lines().map(str::to_owned).collect())
    }

    /// What of a document is not known: fields, and words with `=` behind their field.
    fn beyond(&self, document: &Document) -> Vec<String> {
        let mut unknown = BTreeSet::new();
        if let Ok(spec) = serde_json::to_value(&document.spec) {
            self.compare(&spec, "spec", &mut unknown);
        }
        unknown.into_iter().collect()
    }

    fn compare(&self, value: &Value, path: &str, unknown: &mut BTreeSet<String>) {
        if self.has(&format!("{path}.**")) {
            return;
        }
        match value {
            Value::Object(fields) => {
                let free = format!("{path}.*");
                let is_free = self.has(&free);
                for (name, value) in fields {
                    let field = if is_free { free.clone() } else { format!("{path}.{name}") };
                    if self.has(&field) {
                        self.compare(value, &field, unknown);
                    } else {
                        unknown.insert(field);
                    }
                }
            }
            Value::Array(items) => {
                let item = format!("{path}[]");
                items.iter().for_each(|value| self.compare(value, &item, unknown));
            }
            Value::String(word) => {
                let said = format!("{path}={word}");
                if self.takes_words(path) && !self.has(&said) {
                    unknown.insert(said);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn has(&self, line: &str) -> bool {
        self.0.contains(line)
    }

    /// Whether a field takes one of several words.
    fn takes_words(&self, path: &str) -> bool {
        let words = format!("{path}=");
        self.0.range(words.clone()..).next().is_some_and(|line| line.starts_with(&words))
    }
}

/// Chooses what gateways that know this much are given of `documents`: a policy that says more is as if it could not be
/// read, so that the version of it which they were given last stays. `pods` are as in [`publish`].
pub(super) fn older(
    known: &Known,
    documents: &BTreeMap<String, Document>,
    last_given: impl FnOnce() -> BTreeMap<String, Document>,
    pods: &[Labels],
) -> Older {
    let beyond: BTreeMap<String, Vec<String>> = documents
        .iter()
        .map(|(key, document)| (key.clone(), known.beyond(document)))
        .filter(|(_, unknown)| !unknown.is_empty())
        .collect();
    if beyond.is_empty() {
        return Older::default();
    }
    let candidate = |(key, document): (&String, &Document)| {
        let unknown = beyond.get(key).map(|unknown| vec![Problem::at("", unknown.join(", "))]);
        Candidate {
            key: key.clone(),
            read: unknown.map_or_else(|| Ok(document.clone()), Err),
            gist: Arc::default(),
        }
    };
    let candidates: Vec<Candidate> = documents.iter().map(candidate).collect();
    let readable = || {
        let mut last = last_given();
        last.retain(|_, document| known.beyond(document).is_empty());
        last
    };
    Older { documents: publish(&candidates, readable, pods).documents, beyond }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, labels, policy};
    use super::*;
    use crate::api::crd;

    /// The lines of the definitions as they are.
    fn lines() -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for definition in crd::all() {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            list(&schema["properties"]["spec"], "spec", &mut lines);
        }
        lines
    }

    fn list(schema: &Value, path: &str, lines: &mut BTreeSet<String>) {
        lines.insert(path.to_owned());
        let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.extend(words.map(|word| format!("{path}={word}")));
        let fields = schema["properties"].as_object();
        if fields.is_none() && schema["x-kubernetes-preserve-unknown-fields"] == true {
            lines.insert(format!("{path}.**"));
        }
        for (name, field) in fields.into_iter().flatten() {
            list(field, &format!("{path}.{name}"), lines);
        }
        if schema["items"].is_object() {
            list(&schema["items"], &format!("{path}[]"), lines);
        }
        if schema["additionalProperties"].is_object() {
            list(&schema["additionalProperties"], &format!("{path}.*"), lines);
        }
    }

    fn documents(specs: &[(&str, &str)]) -> BTreeMap<String, Document> {
        let candidates = specs.iter().map(|(name, spec)| candidate(&policy(name, spec)));
        candidates.map(|one| (one.key, one.read.unwrap())).collect()
    }

    const RULES: &str = "destinations: [{name: d, hosts: [a.example], action: Inspect, endpoints: [{methods: [GET], path: /a}]}]\n  \
        podSelector: {matchLabels: {anything: at-all}}\n  toolDefault: Deny\n  \
        tools: [{name: t, kind: Shell, action: Deny, when: {any: [{param: command, operator: Contains, values: [rm]}]}}]";

    /// What a release knew that had not heard of these.
    fn without(gone: &[&str]) -> Known {
        let is_gone =
            |line: &String| gone.iter().any(|gone| line == gone || line.starts_with(&format!("{gone}.")));
        Known(lines().into_iter().filter(|line| !is_gone(line)).collect())
    }

    /// Before a first release no gateway is older than its operator: what is added is known.
    #[test]
    fn what_the_last_release_knew_is_still_known() {
        let text = lines().into_iter().map(|line| line + "\n").collect::<String>();
        if std::env::var_os("POSTERN_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/operator/controller/last-release.txt");
            std::fs::write(file, &text).unwrap();
        }
        let gone: Vec<String> = Known::by_last_release().0.difference(&lines()).cloned().collect();
        assert_eq!(gone, [""; 0], "older gateways are given what nobody reads any more");
        let changes = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/CHANGELOG.md"));
        let is_current = include_str!("last-release.txt") == text;
        assert!(is_released(changes) || is_current, "see CONTRIBUTING.md, \"Versions\"");
    }

    /// Whether a changelog has a heading of a version that is out.
    fn is_released(changes: &str) -> bool {
        let headings = changes.lines().filter(|line| line.starts_with("## "));
        headings.map(str::to_lowercase).any(|heading| !heading.contains("unreleased"))
    }

    #[test]
    fn a_version_that_is_said_to_be_unreleased_is_no_release() {
        assert!(!is_released(
            "# Changelog\n\n## Unreleased\n\n## 0.1.0 – Unreleased\n\n## 0.1.0 (unreleased)\n"
        ));
        assert!(is_released("## 0.2.0 – unreleased\n\n## 0.1.0 – 2026-12-01\n"));
    }

    #[test]
    fn a_document_is_compared_field_by_field_and_word_by_word() {
        let document = &documents(&[("a", RULES)])["namespace-a.json"];
        assert_eq!(Known::by_last_release().beyond(document), [""; 0]);
        let older = without(&["spec.tools[].when", "spec.destinations[].action=Inspect", "spec.toolDefault"]);
        assert_eq!(
            older.beyond(document),
            ["spec.destinations[].action=Inspect", "spec.toolDefault", "spec.tools[].when"]
        );
    }

    #[test]
    fn a_policy_that_says_more_than_is_known_keeps_the_version_that_was_given_last() {
        let known = without(&["spec.toolDefault"]);
        let rule = |host: &str| format!("destinations: [{{name: d, hosts: [{host}], action: Tunnel}}]");
        let last = documents(&[("a", &rule("old.example")), ("b", &rule("old.example"))]);
        let later = format!("{}\n  toolDefault: Deny", rule("new.example"));
        let wanted = documents(&[("a", &later), ("b", &rule("new.example")), ("c", &later)]);
        let given = older(&known, &wanted, || last, &[labels(&[])]);
        let host = |key: &str| given.documents[key].spec.destinations[0].hosts.clone().unwrap();
        assert_eq!(host("namespace-a.json"), ["old.example"]);
        assert_eq!(host("namespace-b.json"), ["new.example"], "the others go on");
        assert!(!given.documents.contains_key("namespace-c.json"), "it never said anything else");
        assert_eq!(given.beyond["namespace-a.json"], ["spec.toolDefault"]);
        assert_eq!(given.beyond.len(), 2);
    }

    #[test]
    fn where_all_is_known_there_is_one_form() {
        let given = older(Known::by_last_release(), &documents(&[("a", RULES)]), BTreeMap::new, &[]);
        assert!(given.documents.is_empty() && given.beyond.is_empty());
    }
}
