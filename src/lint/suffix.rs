//! Wildcards over public suffixes: below `github.io` or `com` anybody has a name.

use psl::{List, Psl as _, Type};

use super::quoted;
use crate::policy::document::{Action, Document};
use crate::problem::Problem;

pub(super) fn warnings(document: &Document) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let rules = document.spec.destinations.iter().enumerate();
    for (number, rule) in rules.filter(|(_, rule)| rule.action != Some(Action::Deny)) {
        for (item, host) in rule.hosts.iter().flatten().enumerate() {
            let at = format!("spec.destinations[{number}].hosts[{item}]");
            warnings.extend(open(host).map(|message| Problem::at(at, message)));
        }
    }
    warnings
}

/// What to say of a wildcard whose names belong to whoever asks for one.
fn open(host: &str) -> Option<String> {
    let below = host.strip_prefix("**.").or(host.strip_prefix("*."))?.to_ascii_lowercase();
    let suffix = List.suffix(below.as_bytes()).filter(|suffix| suffix.as_bytes() == below.as_bytes())?;
    let whose = match suffix.typ()? {
        Type::Icann => "is registered",
        Type::Private => "somebody takes",
    };
    Some(format!(
        "{}: every name that {whose} below {} is opened, an attacker's too; write the names that are meant",
        quoted(host),
        quoted(&below)
    ))
}
