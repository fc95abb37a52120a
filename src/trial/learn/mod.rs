//! Drafts a policy from what happened: exact hosts, ports, methods and tools, each with its evidence, and what it does
//! not grant. The same events give the same text, in whatever order they come.

mod paths;
mod standing;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use super::is_question;
use crate::call::name::NO_NAMESPACE;
use crate::decision::Enforcement;
use crate::event::{Event, HOSTED_TOOL, Id, Kind, Route, Timestamp};
use crate::name::host::Host;
use crate::name::path::NormalPath;
use crate::policy::routing::ORIGIN;
use crate::provider::{self, surface};
use standing::{Standing, standing};

/// How many places, endpoints and tools are kept; what comes after is counted and said.
const MOST: usize = 100_000;

/// The longest name of a tool that an event has whole, in bytes.
const LONGEST_NAME: usize = 255;

/// What is learnt of events so far.
#[derive(Debug, Default)]
pub struct Learner {
    events: u64,
    pods: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
    span: Option<(Timestamp, Timestamp)>,
    is_audited: bool,
    /// The last number of each pod's gateway.
    numbers: BTreeMap<String, u64>,
    missing: u64,
    places: BTreeMap<(String, u16), Place>,
    tools: BTreeMap<String, Evidence>,
    /// What is not granted, and why.
    refused: BTreeMap<(String, String), Evidence>,
    kept: usize,
    beyond: u64,
}

/// How often something was seen, and in which event first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Evidence {
    count: u64,
    first: Id,
}

impl Evidence {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.min(other.first);
    }
}

/// What was seen of a host on a port.
#[derive(Debug, Default)]
struct Place {
    connections: Option<Evidence>,
    /// Requests to inference endpoints that the provider tables know.
    inference: Option<Evidence>,
    /// The routes by which models of others answered them, and whether one of them went where the agent sent it.
    routes: BTreeSet<String>,
    is_direct: bool,
    /// By path and method.
    requests: BTreeMap<(String, String), Evidence>,
    is_intercepted: bool,
    /// Why nothing of it is granted, and how many events say so.
    closed: Option<(String, u64)>,
}

/// The most routes that are told of one place.
const MOST_ROUTES: usize = 8;

impl Place {
    /// A model was asked here, or another by this route.
    fn asked(&mut self, route: Option<&Route>) {
        self.is_direct |= route.is_none_or(is_direct);
        self.routes.extend(route.map(|route| route.rule.to_string()));
        if self.routes.len() > MOST_ROUTES {
            self.routes.pop_last();
        }
    }

    /// Whether nothing but routes answered, so that the host itself need not be reached.
    fn is_routed(&self) -> bool {
        self.inference.is_some() && !self.is_direct && self.requests.is_empty()
    }
}

fn route(event: &Event) -> Option<&Route> {
    event.provider.as_ref()?.route.as_deref()
}

/// Whether a route asked where the agent had sent the request.
fn is_direct(route: &Route) -> bool {
    let labels = std::iter::once(&route.label).chain(route.attempts.iter().map(|attempt| &attempt.label));
    labels.into_iter().any(|label| **label == *ORIGIN)
}

impl Learner {
    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        self.note(event);
        if is_question(event) {
            return;
        }
        let evidence = Evidence { count: event.count, first: event.id };
        match event.kind {
            Kind::Connection => self.connection(event, evidence),
            Kind::Request => self.request(event, evidence),
            Kind::ToolCall => self.call(event, evidence),
            Kind::Transform => {
                let hosted = event.transforms.iter().filter(|transform| transform.name == HOSTED_TOOL);
                for tool_type in hosted.filter_map(|transform| transform.detail.as_ref()) {
                    self.refuse(
                        format!("the hosted tool {}", text::scalar(tool_type)),
                        "hostedTools",
                        evidence,
                    );
                }
            }
            Kind::Response => {
                // What was found in a body on its way is told at the end.
                if !event.dlp.is_empty() {
                    drop(self.place(event, evidence));
                }
                self.answered(event);
            }
            Kind::Policy | Kind::Lifecycle | Kind::Unknown => {}
        }
    }

    fn note(&mut self, event: &Event) {
        self.events += 1;
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), last.max(event.last.unwrap_or(event.time))));
        self.is_audited |= event.decision.enforcement == Some(Enforcement::Audit);
        let workload = event.workload.as_deref();
        let pod = workload.map(|workload| (workload.namespace.clone(), workload.pod.clone()));
        let number =
            self.numbers.entry(pod.as_ref().map(|pod| pod.1.clone()).unwrap_or_default()).or_default();
        // A number that does not rise is that of another start.
        let before = if event.sequence > *number { *number } else { 0 };
        self.missing = self.missing.saturating_add(event.sequence.saturating_sub(before + 1));
        *number = event.sequence;
        if let Some(pod) = pod {
            self.namespaces.insert(pod.0.clone());
            self.pods.insert(pod);
        }
    }

    /// Whether there is room for something new.
    fn has_room(&mut self, is_known: bool) -> bool {
        if !is_known && self.kept >= MOST {
            self.beyond += 1;
            return false;
        }
        self.kept += usize::from(!is_known);
        true
    }

    fn refuse(&mut self, what: String, why: impl Into<String>, evidence: Evidence) {
        let key = (what, why.into());
        let is_known = self.refused.contains_key(&key);
        if self.has_room(is_known) {
            merge(self.refused.entry(key), evidence);
        }
    }

    /// The place of an event that may be granted; else why it is not is noted.
    fn place(&mut self, event: &Event, evidence: Evidence) -> Option<(&mut Place, String, u16)> {
        let destination = event.destination.as_deref()?;
        let (host, port) = (Host::parse(&destination.host).ok(), destination.port);
        let Some(name) = host.as_ref().and_then(Host::name) else {
            self.refuse(shown(&destination.host, port), "no name", evidence);
            return None;
        };
        let name = name.as_str().to_owned();
        let is_known = self.places.contains_key(&(name.clone(), port));
        if !self.has_room(is_known) {
            return None;
        }
        let standing = standing(event);
        let place = self.places.entry((name.clone(), port)).or_default();
        match standing {
            Standing::Went => {
                place.is_intercepted |= destination.intercepted;
                Some((self.places.get_mut(&(name.clone(), port))?, name, port))
            }
            Standing::Closes(why) => {
                // Of several reasons always the same one.
                let (first, count) = place.closed.get_or_insert_with(|| (why.clone(), 0));
                *count = count.saturating_add(evidence.count);
                if why < *first {
                    *first = why;
                }
                None
            }
            Standing::Passes(why) => {
                let http = event.http.as_ref().filter(|_| event.kind == Kind::Request);
                let request = http.map(|http| format!(" {} {}", http.method, text::scalar(&http.path)));
                self.refuse(format!("{}{}", shown(&name, port), request.unwrap_or_default()), why, evidence);
                None
            }
        }
    }

    fn connection(&mut self, event: &Event, evidence: Evidence) {
        if let Some((place, _, _)) = self.place(event, evidence) {
            join(&mut place.connections, evidence);
        }
    }

    fn request(&mut self, event: &Event, evidence: Evidence) {
        let Some(http) = &event.http else { return };
        let (method, raw) = (http.method.clone().into_owned(), http.path.clone());
        let status = http.status;
        let route = route(event);
        let is_counted = raw == "*" && event.count > 1;
        let Some((place, name, port)) = self.place(event, evidence) else { return };
        let (path, parsed) = (NormalPath::parse(&raw), http::Method::from_bytes(method.as_bytes()));
        let surface = Host::parse(&name).ok().and_then(|host| provider::spoken_at(host.name(), None));
        let what = || format!("{} {method} {}", shown(&name, port), text::scalar(&raw));
        let Ok(parsed) = parsed else { return };
        if surface.is_some_and(|surface| surface.service(&parsed, &path, false).is_inference()) {
            join(&mut place.inference, evidence);
            place.asked(route);
            return;
        }
        let is_plain = method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let why = if is_counted {
            "counted together, so that its paths are not known"
        } else if surface.is_some_and(|surface| surface.service(&parsed, &path, true).is_inference()) {
            "a WebSocket to a model: providerState"
        } else if status == Some(101) {
            "a WebSocket: upgrade"
        } else if path.is_ambiguous() || raw.ends_with('…') || raw.contains('*') || raw.contains(':') {
            "its path has no pattern that is this path alone"
        } else if !is_plain || method == "CONNECT" {
            "its method"
        } else if surface.is_none() && surface::looks_like_inference(&parsed, &path) {
            "a model may be asked there, and nobody knows what speaks: say `provider`"
        } else {
            let key = (path.as_str().to_owned(), if method == "HEAD" { "GET".to_owned() } else { method });
            let is_known = place.requests.contains_key(&key);
            if self.has_room(is_known)
                && let Some(place) = self.places.get_mut(&(name, port))
            {
                merge(place.requests.entry(key), evidence);
            }
            return;
        };
        let what = what();
        self.refuse(what, why, evidence);
    }

    /// Only its answer's event has all that a request went to.
    fn answered(&mut self, event: &Event) {
        let Some((route, destination)) = route(event).zip(event.destination.as_deref()) else { return };
        let host = Host::parse(&destination.host).ok();
        let name = host.as_ref().and_then(Host::name).map(|name| name.as_str().to_owned());
        let (Some(name), true) = (name, is_direct(route)) else { return };
        let key = (name, destination.port);
        if self.has_room(self.places.contains_key(&key)) {
            self.places.entry(key).or_default().is_direct = true;
        }
    }

    fn call(&mut self, event: &Event, evidence: Evidence) {
        let Some(call) = &event.tool_call else { return };
        let bare = call.namespace.as_deref().filter(|namespace| *namespace == NO_NAMESPACE);
        let bare = bare.and_then(|namespace| call.name.strip_prefix(namespace)?.strip_prefix('.'));
        let name = bare.unwrap_or(&call.name).to_owned();
        let what = format!("the tool {}", text::scalar(&name));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        match standing(event) {
            Standing::Closes(why) | Standing::Passes(why) => self.refuse(what, why, evidence),
            Standing::Went if call.hosted => {
                self.refuse(what, "it ran at the provider: hostedTools", evidence)
            }
            Standing::Went if name.len() > LONGEST_NAME || !name.bytes().all(is_plain) => {
                self.refuse(what, "its name is no plain word", evidence);
            }
            Standing::Went => {
                let is_known = self.tools.contains_key(&name);
                if self.has_room(is_known) {
                    merge(self.tools.entry(name), evidence);
                }
            }
        }
    }

    /// The draft. What was seen fewer than `min` times is not granted. `notes` are warnings about the ledger itself.
    pub fn draft(&self, min: u64, notes: &[String]) -> String {
        text::write(self, min, notes)
    }
}

fn shown(host: &str, port: u16) -> String {
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    if is_plain { format!("{host}:{port}") } else { format!("{}:{port}", text::scalar(host)) }
}

fn join(known: &mut Option<Evidence>, evidence: Evidence) {
    match known {
        Some(known) => known.add(evidence),
        None => *known = Some(evidence),
    }
}

fn merge<K: Ord>(entry: std::collections::btree_map::Entry<'_, K, Evidence>, evidence: Evidence) {
    entry.and_modify(|known| known.add(evidence)).or_insert(evidence);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
