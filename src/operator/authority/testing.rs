//! Policies, roots and hosts in a word, for the tests of this module.

use std::time::{Duration, SystemTime};

use super::{Data, RootCa};
use crate::name::host::Host;
use crate::policy::document::{Document, parse};

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A policy that inspects these hosts.
pub(super) fn inspecting(hosts: &[&str]) -> Vec<Document> {
    policy(hosts, "Inspect")
}

/// A policy that denies these hosts.
pub(super) fn denying(hosts: &[&str]) -> Vec<Document> {
    policy(hosts, "Deny")
}

fn policy(hosts: &[&str], action: &str) -> Vec<Document> {
    if hosts.is_empty() {
        return Vec::new();
    }
    let hosts = hosts.iter().map(|host| format!("'{host}'")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: a}}, \
         spec: {{destinations: [{{name: a, hosts: [{hosts}], action: {action}}}]}}}}"
    );
    parse("policy.yaml", &text).unwrap()
}

/// A root made now.
pub(super) fn root(now: SystemTime) -> RootCa {
    RootCa::load(&RootCa::generate(now).unwrap(), now).unwrap()
}

pub(super) fn text<'a>(data: &'a Data, key: &str) -> &'a str {
    str::from_utf8(&data[key]).unwrap()
}

pub(super) fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}
