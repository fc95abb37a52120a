//! How destination rules are listed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use super::super::page::{Heading, Page, Row, row};
use super::rule::{DestinationRule, RuleTarget};
use super::written::{Action, Provider, Reach};
use crate::name::host::DnsName;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct DestinationsListed {
    destinations: Vec<DestinationListed>,
    /// Hosts that no rule names and agents dial all the same: denied, in words.
    companions: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DestinationListed {
    rule: String,
    enforcement: &'static str,
    action: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cidrs: Vec<String>,
    /// None: those of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<Vec<u16>>,
    /// `GET, POST /path`. None: everything, and at an LLM provider its inference endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Provider>,
    /// What else the rule says: `upgrade`, `routes alone`, `ech`, `any bytes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grants: Vec<&'static str>,
}

pub(super) fn list(rules: &[DestinationRule], companions: &BTreeSet<DnsName>) -> DestinationsListed {
    DestinationsListed {
        destinations: rules.iter().map(list_rule).collect(),
        companions: companions.iter().map(ToString::to_string).collect(),
    }
}

fn list_rule(rule: &DestinationRule) -> DestinationListed {
    let (hosts, cidrs) = match &rule.subject {
        RuleTarget::Hosts(hosts) => (hosts.iter().map(ToString::to_string).collect(), Vec::new()),
        RuleTarget::Nets(nets) => (Vec::new(), nets.iter().map(ToString::to_string).collect()),
    };
    let grant = rule.grant.as_deref();
    let granted = [
        (grant.is_some_and(|grant| grant.upgrade), "upgrade"),
        (grant.is_some_and(|grant| grant.reach == Reach::Routes), "routes alone"),
        (rule.allow_ech && !rule.opaque, "ech"),
        (rule.opaque && rule.action == Action::Tunnel, "any bytes"),
    ];
    DestinationListed {
        rule: rule.id.to_string(),
        enforcement: rule.enforcement().as_str(),
        action: rule.action.as_str(),
        hosts,
        cidrs,
        ports: rule.ports.clone(),
        endpoints: grant
            .and_then(|grant| grant.endpoints.as_ref())
            .map(|endpoints| endpoints.iter().map(ToString::to_string).collect()),
        provider: grant.and_then(|grant| grant.provider),
        grants: granted.into_iter().filter_map(|(holds, word)| holds.then_some(word)).collect(),
    }
}

pub(super) fn rows(listed: &DestinationsListed, page: &mut Page) {
    for rule in &listed.destinations {
        page.add(Heading::Destinations, rule_row(rule));
        if let Some(row) = unguarded(rule, page) {
            page.add(Heading::Unguarded, row);
        }
    }
    // A few to a line.
    for some in listed.companions.chunks(4) {
        page.add(Heading::Companions, row(&some.join(", "), ""));
    }
}

fn rule_row(rule: &DestinationListed) -> Row {
    let mut right = rule.action.to_owned();
    if let Some(ports) = &rule.ports {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let _ = write!(right, ", ports {}", ports.join(", "));
    }
    match rule.provider {
        Some(Provider::None) => right.push_str(", no LLM provider"),
        Some(provider) => {
            let _ = write!(right, ", speaks {provider:?}");
        }
        None => {}
    }
    rule.grants.iter().for_each(|grant| {
        let _ = write!(right, ", {grant}");
    });
    if let Some(endpoints) = &rule.endpoints {
        let _ = write!(right, ": {}", endpoints.join("; "));
    }
    let aside = if rule.enforcement == "Audit" { " (Audit)" } else { "" };
    let _ = write!(right, "  [{}{aside}]", rule.rule);
    [rule.hosts.iter().chain(&rule.cidrs).cloned().collect::<Vec<_>>().join(", "), right]
}

/// The hosts of a rule by which an answer of a model could pass unguarded: what is tunnelled, and at hosts that are not
/// known what the rule says is no provider's, or opens by `endpoints` alone.
fn unguarded(rule: &DestinationListed, page: &Page) -> Option<Row> {
    let why = match (rule.action, rule.provider, &rule.endpoints) {
        ("Tunnel", _, _) => "nobody reads a tunnel",
        ("Inspect", Some(Provider::None), _) => "provider: None",
        ("Inspect", None, Some(listed)) if listed.iter().any(|one| may_post(one)) => {
            "`endpoints` without `provider`"
        }
        _ => return None,
    };
    let is_open = |host: &&String| rule.action == "Tunnel" || !(page.catalogue.is_provider)(host);
    let hosts: Vec<&str> = rule.hosts.iter().filter(is_open).chain(&rule.cidrs).map(String::as_str).collect();
    (!hosts.is_empty()).then(|| [hosts.join(", "), format!("{why}  [{}]", rule.rule)])
}

/// Whether the text of an endpoint covers a POST, by which models are asked.
fn may_post(endpoint: &str) -> bool {
    endpoint.starts_with("any method") || endpoint.split([' ', ',']).any(|word| word == "POST")
}
