//! Policies as users write them, against flows and requests: what is decided, and by which rule.
#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail as tests do")]

mod address;
mod audit;
mod combination;
mod companion;
mod credentials;
mod destination;
mod documents;
mod endpoint;
mod limits;
mod naming;
mod outlook;
mod problems;
mod reference;
mod selection;
mod tools;

use std::net::IpAddr;

use postern::decision::Decision;
use postern::name::host::{DnsName, Host};
use postern::name::path::NormalPath;
use postern::policy::destination::{Action, Destination, Flow, Inspection, Protocol};
use postern::policy::inspection::Asked;
use postern::policy::{Labels, Policy, document};

/// An EgressPolicy `agents/NAME` of these destinations.
fn namespaced(name: &str, destinations: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\n\
         spec:\n  destinations:\n{}\n",
        indent(destinations)
    )
}

/// A ClusterEgressPolicy `-/NAME` of these destinations.
fn cluster(name: &str, destinations: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {{name: {name}}}\n\
         spec:\n  destinations:\n{}\n",
        indent(destinations)
    )
}

/// The same policy, which only records.
fn audit(policy: &str) -> String {
    policy.replace("spec:\n", "spec:\n  enforcement: Audit\n")
}

fn indent(destinations: &str) -> String {
    destinations.trim().lines().map(|line| format!("    {}\n", line.trim())).collect()
}

fn policy(documents: &[String]) -> Policy {
    let documents = document::parse("policy.yaml", &documents.join("---\n")).unwrap();
    Policy::compile(&documents, &Labels::new()).unwrap()
}

/// The problems of a file, as `policy check` prints them.
fn problems(text: &str) -> Vec<String> {
    let compiled = document::parse("policy.yaml", text).and_then(|all| Policy::compile(&all, &Labels::new()));
    match compiled {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// Reads `tls api.example.com:443`: protocol, then a name or an address (`-` for neither), then a port.
fn decide(policy: &Policy, flow: &str) -> Destination {
    let (protocol, authority) = flow.split_once(' ').unwrap();
    let protocol = match protocol {
        "tls" => Protocol::Tls,
        "http" => Protocol::Http,
        "opaque" => Protocol::Opaque,
        "unclear" => Protocol::Unclear,
        other => panic!("no protocol: {other}"),
    };
    let (host, port) = authority.rsplit_once(':').unwrap();
    let host = (host != "-").then(|| Host::parse(host).unwrap());
    let (name, address) = split(host.as_ref());
    policy.destination(&Flow { name, address, port: port.parse().unwrap(), protocol })
}

fn split(host: Option<&Host>) -> (Option<&DnsName>, Option<IpAddr>) {
    (host.and_then(Host::name), host.and_then(Host::ip))
}

/// `Inspect Allow agents/policy/rule`
fn said(destination: &Destination) -> String {
    let action = match &destination.action {
        Action::Deny { named: true } => "DenyNamed",
        Action::Tunnel { allow_ech: true } => "TunnelEch",
        action @ (Action::Deny { .. } | Action::Tunnel { .. } | Action::Inspect(_)) => action.as_str(),
    };
    format!("{action} {}", ruled(&destination.decision))
}

fn ruled(decision: &Decision) -> String {
    format!("{} {}", decision.verdict.as_str(), decision.rule_id())
}

/// Compares decisions with a table of `flow = decision` lines.
#[track_caller]
fn expect(policy: &Policy, table: &str) {
    compare(table, |flow| said(&decide(policy, flow)));
}

fn inspection(destination: &Destination) -> &Inspection {
    match &destination.action {
        Action::Inspect(inspection) => inspection,
        other @ (Action::Deny { .. } | Action::Tunnel { .. }) => panic!("not inspected: {other:?}"),
    }
}

/// `GET /path` of an inspected destination.
fn request(inspection: &Inspection, line: &str) -> String {
    let (method, path) = line.split_once(' ').unwrap();
    let method = http::Method::from_bytes(method.as_bytes()).unwrap();
    ruled(&inspection.request(&Asked {
        method: &method,
        path: &NormalPath::parse(path),
        service: None,
        unknown_provider: false,
    }))
}

/// Compares requests with a table of `METHOD path = decision` lines.
#[track_caller]
fn expect_requests(inspection: &Inspection, table: &str) {
    compare(table, |line| request(inspection, line));
}

/// Compares what is decided of the left side of each ` = ` with the right one.
#[track_caller]
fn compare(table: &str, decide: impl Fn(&str) -> String) {
    let lines = table.trim().lines().map(str::trim);
    let seen: Vec<String> = lines
        .clone()
        .map(|line| {
            let (asked, _) = line.split_once(" = ").unwrap();
            format!("{asked} = {}", decide(asked))
        })
        .collect();
    assert_eq!(seen, lines.collect::<Vec<_>>());
}
