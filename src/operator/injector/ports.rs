//! The ports of the gateway, and the pod's ports that others may connect to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::shape::{CONTAINERS, Located, agents, annotation, list, probes_and_hooks, spec, text};
use crate::pod;

/// The name of the gateway's port for metrics.
pub(super) const METRICS: &str = "postern-metrics";

/// More than any pod declares, and few enough for the redirect.
const MOST_INBOUND: usize = 256;

/// The ports that the gateway listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListenPorts {
    pub(super) admin: u16,
    /// All of them.
    pub(super) all: BTreeSet<u16>,
}

/// The part of the gateway's settings that names its ports.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenSettings {
    listeners: WrittenListeners,
    admin: WrittenListener,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenListeners {
    transparent: WrittenListener,
    explicit: WrittenListener,
    dns: WrittenListener,
    reverse: Vec<WrittenListener>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenListener {
    port: Option<u16>,
    address: Option<String>,
}

impl ListenPorts {
    /// Reads them from the text of the gateway's settings, which is validated elsewhere. Missing ones have their
    /// defaults.
    pub(super) fn read(settings: &str) -> Self {
        let written: WrittenSettings = serde_yaml::from_str(settings).unwrap_or_default();
        let listeners = &written.listeners;
        let admin = written.admin.number().unwrap_or(15_090);
        let listening = [
            listeners.transparent.number().unwrap_or(15_001),
            listeners.explicit.number().unwrap_or(15_002),
            listeners.dns.number().unwrap_or(15_053),
            admin,
        ];
        let reverse = listeners.reverse.iter().filter_map(WrittenListener::number);
        Self { admin, all: listening.into_iter().chain(reverse).collect() }
    }
}

impl WrittenListener {
    fn number(&self) -> Option<u16> {
        let of_address = || self.address.as_deref()?.rsplit(':').next()?.parse().ok();
        self.port.or_else(of_address)
    }
}

/// The ports that others may connect to: those that containers declare, those that kubelet probes, and those of the
/// annotation.
///
/// # Errors
/// Sentences that say which port is not allowed, and why.
pub(super) fn inbound(pod: &Value, gateway: &ListenPorts) -> Result<Vec<u16>, Vec<String>> {
    let mut problems = Vec::new();
    let mut inbound = BTreeSet::new();
    let mut clashing = BTreeMap::<u16, String>::new();
    for (path, port) in declared(pod).chain(annotated(pod, &mut problems)) {
        if gateway.all.contains(&port) {
            clashing.entry(port).or_insert(path);
        } else {
            inbound.insert(port);
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
    if inbound.len() > MOST_INBOUND {
        problems.push(format!("the pod declares {} ports; at most {MOST_INBOUND} may be", inbound.len()));
    }
    if problems.is_empty() { Ok(inbound.into_iter().collect()) } else { Err(problems) }
}

/// Warns of ports that cannot be reached from outside.
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

/// The ports that kubelet itself connects to, for probes and hooks.
fn asked<'a>(agent: &Located<'a>) -> impl Iterator<Item = Located<'a>> + use<'a> {
    let actions =
        |part: Located<'a>| ["httpGet", "tcpSocket", "grpc"].map(|action| part.field(action).field("port"));
    probes_and_hooks(agent).flat_map(actions)
}

/// The port of a container by its name.
fn resolved(container: &Value, name: &str) -> Option<u16> {
    let mut ports = list(container, "ports").iter();
    number(&ports.find(|port| text(port, "name") == name)?["containerPort"])
}

/// The annotation's ports. Adds a problem for each that cannot be read.
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

/// A port number. Where a name is allowed too, the API server may hold the number as a text.
fn number(value: &Value) -> Option<u16> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
    number.or_else(|| value.as_str()?.parse().ok()).filter(|port| *port > 0)
}
