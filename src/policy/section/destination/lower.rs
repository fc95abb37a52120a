//! Destination rules, judged and compiled.

use std::sync::Arc;

use super::super::lowering::{each, net, ports};
use super::super::{Lowering, Owner, Problems};
use super::clash::SpokenProviders;
use super::endpoints::{self, EndpointGrant};
use super::rule::{DestinationRule, RuleTarget};
use super::written::{Action, Destination, Endpoint, Reach, Upgrade};
use crate::name::path::PathPattern;
use crate::policy::mistake::{self, Beside};
use crate::policy::pattern::Pattern;
use crate::yaml::field;

/// Compiles the destinations of a policy, each with its field; those with mistakes are left out.
pub(super) fn lower<'a>(
    written: &'a [Destination],
    lowering: &mut Lowering<'a>,
) -> Vec<(String, DestinationRule)> {
    let mut rules = Vec::with_capacity(written.len());
    for (number, destination) in written.iter().enumerate() {
        let path = field::item("spec.destinations", number);
        lowering.rule_name(&path, &destination.name);
        let rule = rule(&path, destination, lowering.owner, &mut lowering.problems);
        rules.extend(rule.map(|rule| (path, rule)));
    }
    let mut spoken = SpokenProviders::default();
    for (path, rule) in &rules {
        if let Some(message) = spoken.clash(rule) {
            lowering.problems.add(field::key(path, "provider"), message);
        }
    }
    rules
}

fn rule(
    path: &str,
    written: &Destination,
    owner: &Owner,
    problems: &mut Problems,
) -> Option<DestinationRule> {
    let subject = subject(path, written, problems);
    let ports = ports(path, written.ports.as_ref(), problems);
    let endpoints = endpoints(path, written.endpoints.as_deref(), problems);
    if written.action.is_none() {
        problems.add(field::key(path, "action"), "is required: Inspect, Tunnel or Deny");
    }
    agreement(path, written, problems);
    let (subject, action) = (subject?, written.action?);
    let id = owner.rule(&written.name);
    let opaque = written.protocol.is_some() || matches!(subject, RuleTarget::Nets(_));
    let grant = (action == Action::Inspect).then(|| {
        let upgrade = written.upgrade == Some(Upgrade::Allow);
        let enforcement = owner.enforcement();
        Arc::new(EndpointGrant {
            rule: id.clone(),
            enforcement,
            endpoints,
            provider: written.provider,
            upgrade,
            reach: written.reach.unwrap_or(Reach::Origin),
        })
    });
    Some(DestinationRule {
        id,
        tier: owner.tier,
        audit: owner.audit,
        subject,
        action,
        ports,
        opaque,
        allow_ech: opaque || written.allow_ech == Some(true),
        grant,
        alone: None,
    })
}

/// Judges the fields that belong to some actions alone.
fn agreement(path: &str, written: &Destination, problems: &mut Problems) {
    let Some(action) = written.action else { return };
    let mut only = |field: &str, there: bool, owner: Action| {
        if there && action != owner {
            problems
                .add(field::key(path, field), format!("belongs to {owner} rules; this one says {action}"));
        }
    };
    only("endpoints", written.endpoints.is_some(), Action::Inspect);
    only("provider", written.provider.is_some(), Action::Inspect);
    only("upgrade", written.upgrade.is_some(), Action::Inspect);
    only("reach", written.reach.is_some(), Action::Inspect);
    only("allowEch", written.allow_ech.is_some(), Action::Tunnel);
    only("protocol", written.protocol.is_some(), Action::Tunnel);
    let cidrs = written.cidrs.is_some();
    if cidrs && action == Action::Inspect {
        problems.add(
            field::key(path, "action"),
            "a rule with `cidrs` is Tunnel or Deny: only a host can be inspected",
        );
    }
    if action == Action::Tunnel && written.ports.is_none() && (cidrs || written.protocol.is_some()) {
        let message =
            "is required: a Tunnel that passes any bytes (`cidrs`, or `protocol: Opaque`) names its ports";
        problems.add(field::key(path, "ports"), message);
    }
}

fn subject(path: &str, written: &Destination, problems: &mut Problems) -> Option<RuleTarget> {
    match (&written.hosts, &written.cidrs) {
        (Some(hosts), None) => {
            let list = field::key(path, "hosts");
            if hosts.is_empty() {
                problems.add(list.as_str(), "name at least one host");
            }
            each(&list, hosts, problems, |text| {
                Pattern::parse(text).map_err(|error| mistake::of_host(text, &error, Beside::Destination))
            })
            .map(RuleTarget::Hosts)
        }
        (None, Some(cidrs)) => {
            let list = field::key(path, "cidrs");
            if cidrs.is_empty() {
                problems.add(list.as_str(), "name at least one range");
            }
            each(&list, cidrs, problems, net).map(RuleTarget::Nets)
        }
        (Some(_), Some(_)) => {
            problems.add(path, "has `hosts` and `cidrs`: one rule has one of them");
            None
        }
        (None, None) => {
            problems.add(path, "needs `hosts` or `cidrs`");
            None
        }
    }
}

fn endpoints(
    path: &str,
    written: Option<&[Endpoint]>,
    problems: &mut Problems,
) -> Option<Vec<endpoints::Endpoint>> {
    let list = field::key(path, "endpoints");
    let written = written?;
    if written.is_empty() {
        problems.add(
            list.as_str(),
            "name at least one endpoint, or leave the field out for what is open by default",
        );
    }
    let all = written.iter().enumerate().map(|(number, endpoint)| {
        let path = field::item(&list, number);
        if endpoint.methods.is_none() && endpoint.path.is_none() {
            problems.add(path.as_str(), "needs `methods`, `path` or both");
        }
        let methods = methods(&path, endpoint.methods.as_deref(), problems);
        let pattern = endpoint
            .path
            .as_deref()
            .map(|text| PathPattern::parse(text).map_err(|e| format!("{}: {e}", field::quoted(text))));
        let pattern = pattern.map(|result| problems.keep(&field::key(&path, "path"), result));
        endpoints::Endpoint { methods, path: pattern.flatten().unwrap_or_else(PathPattern::any) }
    });
    Some(all.collect())
}

fn methods(path: &str, written: Option<&[String]>, problems: &mut Problems) -> Option<Vec<http::Method>> {
    let list = field::key(path, "methods");
    let written = written?;
    if written.is_empty() {
        problems.add(list.as_str(), "name at least one method, or leave the field out for every method");
    }
    each(&list, written, problems, |text| {
        if text == "CONNECT" {
            return Err("is never carried inside an inspected connection".to_owned());
        }
        let upper = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let method = upper.then(|| http::Method::from_bytes(text.as_bytes()).ok()).flatten();
        method.ok_or_else(|| "is no method; methods are upper case, as in GET or POST".to_owned())
    })
}
