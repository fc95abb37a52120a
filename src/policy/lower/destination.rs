//! Destination rules, judged and compiled.

use std::sync::Arc;

use ipnet::IpNet;

use crate::decision::RuleId;
use crate::name::path::PathPattern;
use crate::policy::document::{Action, Destination, Endpoint, Upgrade};
use crate::policy::field;
use crate::policy::inspection::{self, Grant};
use crate::policy::mistake::{self, Beside};
use crate::policy::pattern::Pattern;
use crate::policy::rule::{Rule, Subject};

use super::{Names, Problems, Scope, each, ports};

/// Compiles the destinations of a policy, each with its field; those with mistakes are left out.
pub(super) fn lower<'a>(
    written: &'a [Destination],
    scope: &Scope,
    names: &mut Names<'a>,
    problems: &mut Problems,
) -> Vec<(String, Rule)> {
    let all = written.iter().enumerate().map(|(number, destination)| {
        let path = field::item("spec.destinations", number);
        names.add(&path, &destination.name, problems);
        rule(&path, destination, scope, problems).map(|rule| (path, rule))
    });
    all.flatten().collect()
}

fn rule(path: &str, written: &Destination, scope: &Scope, problems: &mut Problems) -> Option<Rule> {
    let subject = subject(path, written, problems);
    let ports = ports(path, written.ports.as_ref(), problems);
    let endpoints = endpoints(path, written.endpoints.as_deref(), problems);
    if written.action.is_none() {
        problems.add(field::key(path, "action"), "is required: Inspect, Tunnel or Deny");
    }
    agreement(path, written, problems);
    let (subject, action) = (subject?, written.action?);
    let id = RuleId::new(format!("{}/{}", scope.policy, written.name));
    let opaque = written.protocol.is_some() || matches!(subject, Subject::Nets(_));
    let grant = (action == Action::Inspect).then(|| {
        let upgrade = written.upgrade == Some(Upgrade::Allow);
        let enforcement = scope.enforcement();
        Arc::new(Grant { rule: id.clone(), enforcement, endpoints, provider: written.provider, upgrade })
    });
    Some(Rule {
        id,
        tier: scope.tier,
        audit: scope.audit,
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

fn subject(path: &str, written: &Destination, problems: &mut Problems) -> Option<Subject> {
    match (&written.hosts, &written.cidrs) {
        (Some(hosts), None) => {
            let list = field::key(path, "hosts");
            if hosts.is_empty() {
                problems.add(list.as_str(), "name at least one host");
            }
            each(&list, hosts, problems, |text| {
                Pattern::parse(text).map_err(|error| mistake::of_host(text, &error, Beside::Destination))
            })
            .map(Subject::Hosts)
        }
        (None, Some(cidrs)) => {
            let list = field::key(path, "cidrs");
            if cidrs.is_empty() {
                problems.add(list.as_str(), "name at least one range");
            }
            each(&list, cidrs, problems, net).map(Subject::Nets)
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

/// Reads a range of addresses without host bits.
fn net(text: &str) -> Result<IpNet, String> {
    let Ok(net) = text.parse::<IpNet>() else {
        return Err("is no range of addresses; expected one like 10.20.0.0/16 or 2001:db8::/32".to_owned());
    };
    if net.trunc() != net {
        return Err(format!(
            "has bits behind its prefix; {} is the whole range, /{} one address",
            net.trunc(),
            net.max_prefix_len()
        ));
    }
    match net {
        IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some() => {
            Err("is IPv4 written as IPv6; write it as IPv4".to_owned())
        }
        IpNet::V4(_) | IpNet::V6(_) => Ok(net),
    }
}

fn endpoints(
    path: &str,
    written: Option<&[Endpoint]>,
    problems: &mut Problems,
) -> Option<Vec<inspection::Endpoint>> {
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
        inspection::Endpoint { methods, path: pattern.flatten().unwrap_or_else(PathPattern::any) }
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
