//! Where a rule stands: its file and line among policies that were read, else a name of a file that tells the policy.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::message::shortened;
use crate::policy::document::Document;
use crate::problem::Problem;
use crate::wire::percent;

/// A line of a file, as SARIF names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// A relative reference, or `file:` where the file lies outside of the directory.
    pub(super) uri: String,
    /// From 1.
    pub(super) line: usize,
}

/// The places of the rules of some policies.
#[derive(Debug, Default)]
pub(crate) struct RulePlaces {
    directory: PathBuf,
    /// By `namespace/policy`, with its spec as data: whatever list of rules a section has.
    documents: BTreeMap<String, (Document, Value)>,
}

impl RulePlaces {
    /// Of these documents; their files are told relative to this directory, that of a checkout.
    pub(crate) fn of(documents: Vec<Document>, directory: &Path) -> Self {
        let with_spec = |document: Document| {
            let spec = serde_json::to_value(&document.spec).unwrap_or_default();
            (document.id(), (document, spec))
        };
        Self { directory: directory.to_owned(), documents: documents.into_iter().map(with_spec).collect() }
    }

    /// Where a rule stands; the first line of its policy where the rule is not in it any more.
    pub(super) fn place(&self, rule: &str) -> Place {
        let parts = parts(rule);
        let Some((document, spec)) = self.documents.get(&format!("{}/{}", parts.namespace, parts.policy))
        else {
            let named = ["postern", &segment(parts.namespace), &(segment(parts.policy) + ".yaml")];
            return Place { uri: named.join("/"), line: 1 };
        };
        let at = document.origin.locate(Problem::at(path(spec, parts.name), ""));
        Place { uri: self.uri(Path::new(&at.file)), line: at.position.map_or(1, |(line, _)| line.max(1)) }
    }

    /// The file as a relative reference.
    fn uri(&self, file: &Path) -> String {
        uri(file, &self.directory)
    }
}

impl Place {
    /// A line of a file, which is told relative to this directory.
    pub(super) fn of_file(file: &Path, line: usize, directory: &Path) -> Self {
        Self { uri: uri(file, directory), line: line.max(1) }
    }
}

/// A file as a relative reference.
fn uri(file: &Path, directory: &Path) -> String {
    let file = file.strip_prefix(directory).unwrap_or(file);
    let segments = file.components().filter_map(|component| match component {
        Component::Normal(name) => Some(encoded(&name.to_string_lossy())),
        Component::ParentDir => Some("..".to_owned()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let path = segments.collect::<Vec<_>>().join("/");
    if file.is_absolute() { format!("file:///{path}") } else { path }
}

struct Parts<'a> {
    namespace: &'a str,
    policy: &'a str,
    name: &'a str,
}

/// The parts of `namespace/policy/rule`; what is not written so is a name alone.
fn parts(rule: &str) -> Parts<'_> {
    let mut parts = rule.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(policy), Some(name)) => Parts { namespace, policy, name },
        _ => Parts { namespace: "-", policy: "unknown", name: rule },
    }
}

/// The field of a rule: an item of a list with that name, or the section that is its own rule.
fn path(spec: &Value, name: &str) -> String {
    for (section, items) in spec.as_object().into_iter().flatten() {
        let name = name.strip_prefix(section).and_then(|name| name.strip_prefix('/')).unwrap_or(name);
        let is_named = |item: &Value| item.get("name").and_then(Value::as_str) == Some(name);
        if let Some(number) = items.as_array().and_then(|items| items.iter().position(is_named)) {
            return format!("spec.{section}[{number}]");
        }
    }
    match spec.get(name) {
        Some(_) => format!("spec.{name}"),
        None => String::new(),
    }
}

/// A segment of a path that a line of events names: it leads nowhere else.
fn segment(text: &str) -> String {
    if text.chars().all(|c| c == '.') { "_".to_owned() } else { encoded(&shortened(text)) }
}

fn encoded(text: &str) -> String {
    let encoded = percent::encode(text.as_bytes(), percent::is_unreserved, percent::UPPER);
    String::from_utf8_lossy(&encoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document;

    const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  destinations:
    - {name: api, hosts: [api.example.com], action: Inspect}
    - name: key
      hosts: [key.example.com]
      action: Inspect
  tools:
    - {name: no-rm, tools: [Bash], action: Deny}
  limits: {requestsPerMinute: 3}
  credentials:
    - {name: api, hosts: [api.example.com], fromEnv: KEY}
";

    fn places(file: &str, directory: &str) -> RulePlaces {
        RulePlaces::of(document::parse(file, POLICY).unwrap(), Path::new(directory))
    }

    fn shown(places: &RulePlaces, rule: &str) -> String {
        let Place { uri, line } = places.place(rule);
        format!("{uri}:{line}")
    }

    #[test]
    fn a_rule_stands_in_its_file_on_its_line() {
        let places = places("/checkout/policies/my coders.yaml", "/checkout");
        for (rule, line) in [
            ("agents/coders/api", 6),
            ("agents/coders/key", 7),
            ("agents/coders/no-rm", 11),
            ("agents/coders/limits", 12),
            ("agents/coders/credentials/api", 14),
            ("agents/coders/gone", 1),
        ] {
            assert_eq!(shown(&places, rule), format!("policies/my%20coders.yaml:{line}"), "{rule}");
        }
    }

    #[test]
    fn a_file_outside_of_the_directory_is_named_whole() {
        let shown_in = |file, directory| shown(&places(file, directory), "agents/coders/api");
        assert_eq!(shown_in("/etc/p.yaml", "/checkout"), "file:///etc/p.yaml:6");
        assert_eq!(shown_in("./p.yaml", "/checkout"), "p.yaml:6");
        assert_eq!(shown_in("../p.yaml", "/checkout"), "../p.yaml:6");
    }

    #[test]
    fn a_policy_that_was_not_read_has_a_name_that_leads_nowhere_else() {
        let places = RulePlaces::default();
        for (rule, place) in [
            ("agents/coders/no-rm", "postern/agents/coders.yaml:1"),
            ("-/all/x", "postern/-/all.yaml:1"),
            ("postern/builtin/endpoint", "postern/postern/builtin.yaml:1"),
            ("../../etc/passwd", "postern/_/_.yaml:1"),
            ("a b/c?d#e/f", "postern/a%20b/c%3Fd%23e.yaml:1"),
            ("https://evil/x", "postern/https%3A/_.yaml:1"),
            ("none", "postern/-/unknown.yaml:1"),
        ] {
            assert_eq!(shown(&places, rule), place, "{rule}");
        }
    }
}
