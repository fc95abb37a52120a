//! Credentials for hosts where no key can be attached.

use super::hosts::misspelt;
use super::quoted;
use crate::name::host::{DnsName, Host};
use crate::policy::document::{Action, Destination, Document};
use crate::policy::pattern::Pattern;
use crate::problem::Problem;

/// `is_all` says whether no other document names destinations.
pub(super) fn warnings(document: &Document, known: &[Document], is_all: bool) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, credential) in document.spec.credentials.iter().enumerate() {
        for (item, written) in credential.hosts.iter().enumerate() {
            let Ok(name) = DnsName::parse_written(written) else { continue };
            let ports = credential.ports.as_deref().unwrap_or(&[443]);
            let host = Host::Name(name);
            let message = if is_of_provider(document, &credential.name) {
                denied(&host, ports, known)
            } else {
                unattached(&host, ports, known, is_all)
            };
            let message = misspelt(written).or(message);
            warnings
                .extend(message.map(|message| {
                    Problem::at(format!("spec.credentials[{number}].hosts[{item}]"), message)
                }));
        }
    }
    warnings
}

/// Whether a provider of models has the credential: the gateway reaches it without a destination.
fn is_of_provider(document: &Document, credential: &str) -> bool {
    let mut providers = document.spec.model_providers.iter();
    providers.any(|provider| provider.credential.as_deref() == Some(credential))
}

/// What to say where a Deny rule stands against a provider of models, too.
fn denied(host: &Host, ports: &[i64], known: &[Document]) -> Option<String> {
    let mut rules = known.iter().flat_map(|document| &document.spec.destinations);
    let rule = rules.find(|rule| rule.action == Some(Action::Deny) && is_about(rule, host, ports))?;
    Some(of_denial(host, rule))
}

fn of_denial(host: &Host, rule: &Destination) -> String {
    let name = quoted(&host.to_string());
    format!("{name} is denied by the rule {}: the key is never sent there; take one of them away", rule.name)
}

/// What to say where no rule inspects a host on any of these ports. Policies that hold no destination at all are checked
/// apart from those that do, so nothing is known of them.
fn unattached(host: &Host, ports: &[i64], known: &[Document], is_all: bool) -> Option<String> {
    let mut destinations = known.iter().flat_map(|document| &document.spec.destinations).peekable();
    destinations.peek()?;
    let naming: Vec<_> = destinations.filter(|rule| is_about(rule, host, ports)).collect();
    let says = |action: Action| naming.iter().find(|rule| rule.action == Some(action));
    if says(Action::Inspect).is_some() {
        return None;
    }
    let name = quoted(&host.to_string());
    Some(match (says(Action::Tunnel), says(Action::Deny)) {
        (Some(rule), _) => format!(
            "{name} is tunnelled by the rule {}: the key is attached inside of TLS, so it is never sent there; write \
             `action: Inspect` in that rule",
            rule.name
        ),
        (None, Some(rule)) => of_denial(host, rule),
        (None, None) if !is_all => return None,
        (None, None) => format!(
            "no rule of what is checked here names {name} on the credential's ports: the key is never sent there; add a \
             destination with `action: Inspect`"
        ),
    })
}

fn is_about(rule: &Destination, host: &Host, ports: &[i64]) -> bool {
    let usual: &[i64] = match rule.action {
        Some(Action::Inspect) => &[443, 80],
        Some(Action::Tunnel | Action::Deny) | None => &[443],
    };
    let own = rule.ports.as_deref().unwrap_or(usual);
    let mut patterns = rule.hosts.iter().flatten().filter_map(|host| Pattern::parse(host).ok());
    ports.iter().any(|port| own.contains(port)) && patterns.any(|pattern| pattern.matches(host))
}
