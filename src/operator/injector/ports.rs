//! Ports: those of the gateway, and those of the pod into which others may connect.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::shape::{CONTAINERS, Located, agents, annotation, list, spec, text};
use crate::pod;

/// The name of the gateway's port for metrics.
pub(super) const METRICS: &str = "postern-metrics";

/// More than a pod declares, and few enough for the redirect.
const MOST_INBOUND: usize = 256;

/// The ports that the gateway listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) admin: u16,
    /// All of them.
    pub(super) all: BTreeSet<u16>,
}

/// As much of the gateway's settings as names its ports.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    listeners: Listeners,
    admin: Listener,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listeners {
    transparent: Listener,
    explicit: Listener,
    dns: Listener,
    reverse: Vec<Listener>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listener {
    port: Option<u16>,
    address: Option<String>,
}

impl Ports {
    /// Reads them from the text of the gateway's settings, which is judged elsewhere; what is not written has its
    /// default.
    pub(super) fn read(settings: &str) -> Self {
        let written: Written = serde_yaml::from_str(settings).unwrap_or_default();
        let listeners = &written.listeners;
        let admin = written.admin.number().unwrap_or(15_090);
        let listening = [
            listeners.transparent.number().unwrap_or(15_001),
            listeners.explicit.number().unwrap_or(15_002),
            listeners.dns.number().unwrap_or(15_053),
            admin,
        ];
        let reverse = listeners.reverse.iter().filter_map(Listener::number);
        Self { admin, all: listening.into_iter().chain(reverse).collect() }
    }
}

impl Listener {
    fn number(&self) -> Option<u16> {
        let of_address = || self.address.as_deref()?.rsplit(':').next()?.parse().ok();
        self.port.or_else(of_address)
    }
}

/// The ports into which others may connect: those that containers declare, those that kubelet probes, and those of the
/// annotation.
///
/// # Errors
/// Sentences that say which port cannot be one, and why.
pub(super) fn inbound(pod: &Value, gateway: &Ports) -> Result<Vec<u16>, Vec<String>> {
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    let mut clashing = BTreeMap::<u16, String>::new();
    for (path, port) in declared(pod).chain(annotated(pod, &mut problems)) {
        if gateway.all.contains(&port) {
            clashing.entry(port).or_insert(path);
        } else {
            found.insert(port);
        }
    }
    problems.extend(clashing.into_iter().map(|(port, path)| {
        format!("{path}: port {port} is the gateway's, so nobody else can have it: choose another")
    }));
    for agent in agents(pod) {
        let reserved = agent.items("ports").filter(|port| port.name().starts_with(pod::CONTAINER_PREFIX));
        let refuse =
            |port: Located<'_>| format!("{}.name begins with \"postern-\": rename the port", port.path);
        problems.extend(reserved.map(refuse));
        let of_the_node =
            agent.items("ports").filter(|port| port.value["hostPort"].as_u64().is_some_and(|port| port > 0));
        problems.extend(of_the_node.map(|port| {
            format!("{}.hostPort takes a port of the node's, for whomever it was: remove it, and reach the pod by a Service", port.path)
        }));
    }
    if found.len() > MOST_INBOUND {
        problems.push(format!("the pod declares {} ports; at most {MOST_INBOUND} may be", found.len()));
    }
    if problems.is_empty() { Ok(found.into_iter().collect()) } else { Err(problems) }
}

/// What of the pod's ports is not reached from outside, in words.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let ports = spec(pod).items(CONTAINERS).flat_map(|container| container.items("ports"));
    let others = ports.filter(|port| !is_tcp(port.value));
    let warn = |port: Located<'_>| {
        format!("{}: {} from outside is not let in, TCP alone is", port.path, text(port.value, "protocol"))
    };
    others.map(warn).collect()
}

fn declared(pod: &Value) -> impl Iterator<Item = (String, u16)> {
    agents(pod).flat_map(|agent| {
        let ports = agent.items("ports").filter(|port| is_tcp(port.value));
        let ports: Vec<_> = ports.map(|port| port.field("containerPort")).collect();
        ports.into_iter().chain(asked(&agent)).filter_map(move |port| {
            let number = number(port.value).or_else(|| resolved(agent.value, port.value.as_str()?))?;
            Some((port.path, number))
        })
    })
}

/// The ports that kubelet itself connects to.
fn asked<'a>(agent: &Located<'a>) -> impl Iterator<Item = Located<'a>> + use<'a> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| agent.field(probe));
    let hooks = ["postStart", "preStop"].map(|hook| agent.field("lifecycle").field(hook));
    let actions =
        |part: Located<'a>| ["httpGet", "tcpSocket", "grpc"].map(|action| part.field(action).field("port"));
    probes.into_iter().chain(hooks).flat_map(actions)
}

/// The port of a container by its name.
fn resolved(container: &Value, name: &str) -> Option<u16> {
    let mut ports = list(container, "ports").iter();
    number(&ports.find(|port| text(port, "name") == name)?["containerPort"])
}

/// The annotation's ports. What cannot be read is a problem.
fn annotated(pod: &Value, problems: &mut Vec<String>) -> Vec<(String, u16)> {
    let path = format!("metadata.annotations[{}]", pod::INBOUND_PORTS);
    let mut read = |written: &str| match written.parse::<u16>() {
        Ok(port) if port > 0 => Some((path.clone(), port)),
        Ok(_) | Err(_) => {
            let shown: String = written.chars().take(40).collect();
            problems.push(format!("{path}: {shown:?} is no port: write numbers like \"8080,9090\""));
            None
        }
    };
    let ports = annotation(pod, pod::INBOUND_PORTS);
    let written = ports.split(',').map(str::trim).filter(|port| !port.is_empty());
    written.take(MOST_INBOUND + 1).filter_map(&mut read).collect()
}

fn is_tcp(port: &Value) -> bool {
    matches!(text(port, "protocol"), "" | "TCP")
}

/// A number, which the API server may hold as a text where a name may stand too.
fn number(value: &Value) -> Option<u16> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
    number.or_else(|| value.as_str()?.parse().ok()).filter(|port| *port > 0)
}
