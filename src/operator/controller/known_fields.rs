//! The fields and words of policies that gateways of a release know. Pure.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;

use crate::policy::document::Document;

/// The fields of policies in the last minor release, and the words of enumerations, a line each: `spec.tools[].action`,
/// `spec.tools[].action=Deny`. `.**` stands for anything below a field, `.*` for a key of the author's choice. Each
/// release writes its own definitions here (CONTRIBUTING.md, "Versions").
static LAST_RELEASE: LazyLock<KnownFields> =
    LazyLock::new(|| KnownFields::of(include_str!("last-release.txt")));

/// The fields and words that a version knows.
#[derive(Debug, Default)]
pub(super) struct KnownFields(pub(super) BTreeSet<String>);

impl KnownFields {
    /// The fields that the last minor release knows.
    pub(super) fn by_last_release() -> &'static Self {
        &LAST_RELEASE
    }

    pub(super) fn of(lines: &str) -> Self {
        Self(lines.lines().map(str::to_owned).collect())
    }

    /// The fields and words (`field=word`) of a document that are not known.
    pub(super) fn beyond(&self, document: &Document) -> Vec<String> {
        let mut unknown = BTreeSet::new();
        if let Ok(spec) = serde_json::to_value(&document.spec) {
            self.compare(&spec, "spec", &mut unknown);
        }
        unknown.into_iter().collect()
    }

    /// Whether every field of the part of a policy at `path` is known.
    pub(super) fn knows(&self, part: &impl Serialize, path: &str) -> bool {
        let mut unknown = BTreeSet::new();
        match serde_json::to_value(part) {
            Ok(Value::Null) => return true,
            Ok(value) if self.has(path) => self.compare(&value, path, &mut unknown),
            Ok(_) | Err(_) => return false,
        }
        unknown.is_empty()
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
                let line = format!("{path}={word}");
                if self.takes_words(path) && !self.has(&line) {
                    unknown.insert(line);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn has(&self, line: &str) -> bool {
        self.0.contains(line)
    }

    /// Whether a field is an enumeration.
    fn takes_words(&self, path: &str) -> bool {
        let words = format!("{path}=");
        self.0.range(words.clone()..).next().is_some_and(|line| line.starts_with(&words))
    }
}
