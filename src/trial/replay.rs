//! Decides an event anew, as far as its facts allow: what an event does not have is never guessed.
//!
//! What the body of a request said, credentials, limits, and the addresses of names are taken as the gateway found them;
//! a named host speaks TLS on port 443, and HTTP on port 80.

use std::sync::Arc;

use super::facts::{self, KnownFacts};
use super::found;
use super::is_question;
use super::question::{Asked, Question};
use crate::call::Tool;
use crate::decision::Verdict;
use crate::event::{Destination, Event, Kind, ToolCall};
use crate::name::host::Host;
use crate::name::path::NormalPath;
use crate::policy::Policy;
use crate::policy::destination::{EndpointQuery, Flow, Protocol};
use crate::policy::explain::ShownDecision;
use crate::provider::answer::GuardLimits;
use crate::provider::kind::{self, Offered};
use crate::provider::{self, surface};

/// A decision about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    Decided(ShownDecision),
    /// The event does not have what decides; why, for people.
    Unknown(String),
}

/// The built-in rules whose denials follow from the facts of an event.
const FROM_FACTS: &[&str] = &["default-deny", "endpoint", "no-policy", "provider-unknown", "companion"];

/// Parts of a policy that are rules themselves and judge what events do not have.
const BEYOND_FACTS: &[&str] = &["hostedTools", "providerState", "limits", "failurePolicy", "credentials"];

/// Decides an event anew; none of an event that is about no decision. `line` is the event as it was read.
pub fn replay(policy: &Arc<Policy>, bounds: GuardLimits, event: &Event, line: &str) -> Option<Replayed> {
    if is_question(event) {
        return None;
    }
    let decided = match event.kind {
        Kind::ToolCall => {
            call(policy, bounds, event, line).and_then(|decision| by_rules(policy, event, decision))
        }
        Kind::Request => request(policy, event)
            .and_then(|decision| by_findings(policy, event, decision))
            .and_then(|decision| by_rules(policy, event, decision)),
        Kind::Connection => connection(policy, event),
        Kind::Response => by_rules(policy, event, allowed()),
        Kind::Transform | Kind::Policy | Kind::Lifecycle | Kind::Unknown => return None,
    };
    Some(match decided {
        Ok(decision) => standing(event, decision),
        Err(why) => Replayed::Unknown(why),
    })
}

/// Keeps a denial that the facts do not explain: by a rule about something else than them.
fn standing(event: &Event, decision: ShownDecision) -> Replayed {
    if event.decision.verdict == Verdict::Deny && matches!(decision.verdict, "Allow" | "Audit") {
        let rule = event.decision.rule_id();
        let is_beyond = match rule.strip_prefix("postern/builtin/") {
            Some(name) => !FROM_FACTS.contains(&name),
            None => rule.split('/').nth(2).is_some_and(|part| BEYOND_FACTS.contains(&part)),
        };
        if is_beyond {
            return Replayed::Unknown(format!(
                "it was denied by {rule}, which judges what events do not have"
            ));
        }
    }
    Replayed::Decided(decision)
}

/// The decision with that about what was found.
fn by_findings(policy: &Policy, event: &Event, decision: ShownDecision) -> Result<ShownDecision, String> {
    if !matches!(decision.verdict, "Allow" | "Audit") {
        return Ok(decision);
    }
    let found = found::judge(policy, event)?;
    Ok(found.as_ref().map_or(decision, ShownDecision::from))
}

/// The decision with that of the rules over facts.
fn by_rules(policy: &Policy, event: &Event, decision: ShownDecision) -> Result<ShownDecision, String> {
    if !policy.has_rules() || !matches!(decision.verdict, "Allow" | "Audit") {
        return Ok(decision);
    }
    let Some((place, known)) = KnownFacts::of_event(event) else { return Ok(decision) };
    let verdict = known.judge(policy, place).map_err(|unknown| unknown.to_string())?;
    Ok(facts::decided(&verdict).unwrap_or(decision))
}

fn allowed() -> ShownDecision {
    ShownDecision { verdict: Verdict::Allow.as_str(), rule: None, reason: None }
}

fn call(
    policy: &Arc<Policy>,
    bounds: GuardLimits,
    event: &Event,
    line: &str,
) -> Result<ShownDecision, String> {
    let Some(call) = &event.tool_call else { return Err("the event names no tool".to_owned()) };
    if let Some(decision) = kindless(policy, call) {
        return Ok(decision);
    }
    let question = Question::parse(line).map_err(|error| error.to_string())?;
    let decision =
        question.ask(policy, bounds, Asked::Event(event)).map_err(|error| error.to_string())?.decision;
    let name = &call.name;
    if decision.verdict == "NeedsFacts" {
        return Err(decision.reason.unwrap_or_default());
    }
    if decision.verdict == "NeedsInput" {
        return Err(format!(
            "it needs the input of {name}, which the event does not keep (audit.toolInputs)"
        ));
    }
    let bare = bare(call);
    let input = call.input.as_deref().and_then(|input| serde_json::from_str(input).ok());
    let known = kind::tool(bare, call.namespace.as_deref(), call.custom, &Offered::default());
    let read = input.as_ref().map(|input| {
        let input = crate::call::Input::Json(input);
        kind::read(bare, call.namespace.as_deref(), input, &Offered::default()).tool
    });
    let kinds_by = read.filter(|tool| !tool.kinds.is_empty()).map(|tool| tool.by.as_str());
    let kinds_by = kinds_by.or_else(|| (!known.kinds.is_empty()).then(|| known.by.as_str()));
    let is_by_definition =
        call.kinds_by.as_deref() == Some("Inferred") || kinds_by != call.kinds_by.as_deref();
    if is_by_definition && decision.verdict != "Deny" {
        return Err(format!("what {name} does was read from its definition, which events do not have"));
    }
    Ok(decision)
}

/// The decision about a call of a tool without a kind, where its name decides: the gateway knew the input, and found no
/// kind in it.
fn kindless(policy: &Policy, call: &ToolCall) -> Option<ShownDecision> {
    let is_read = call.input_sha256.is_some() || call.input_bytes > 0;
    let is_whole = is_read && !call.incomplete && !call.computed && kind::wrapper(bare(call)).is_none();
    if call.kinds_by.is_some() || !is_whole {
        return None;
    }
    let tool = Tool { namespace: call.namespace.as_deref(), ..Tool::named(bare(call)) };
    let decision = policy.explain_start(&tool).decision;
    (decision.verdict != "NeedsInput").then_some(decision)
}

/// The name without the namespace that events put in front.
fn bare(call: &ToolCall) -> &str {
    let bare =
        call.namespace.as_deref().and_then(|namespace| call.name.strip_prefix(namespace)?.strip_prefix('.'));
    bare.filter(|name| !name.is_empty()).unwrap_or(&call.name)
}

fn connection(policy: &Policy, event: &Event) -> Result<ShownDecision, String> {
    let destination = destination(event)?;
    let host = host(destination)?;
    agreed(protocols(destination, &host), |protocol| {
        let flow = Flow { name: host.name(), address: host.ip(), port: destination.port, protocol };
        policy.explain_destination(&flow, None).decision
    })
}

fn request(policy: &Policy, event: &Event) -> Result<ShownDecision, String> {
    let destination = destination(event)?;
    let host = host(destination)?;
    let Some(http) = &event.http else { return Err("the event has no request".to_owned()) };
    let method = http::Method::from_bytes(http.method.as_bytes()).ok();
    let Some(method) = method.filter(|_| !http.method.ends_with('…') && !http.path.ends_with('…')) else {
        return Err("its method or path is cut off".to_owned());
    };
    if http.path == "*" && event.count > 1 {
        return Err("it stands for requests with several paths".to_owned());
    }
    let path = NormalPath::parse(&http.path);
    let is_either = |flow: &Flow<'_>| {
        provider::spoken_at(flow.name, policy.provider_at(flow)).is_some_and(|surface| {
            surface.service(&method, &path, true) != surface.service(&method, &path, false)
        })
    };
    let flow = |protocol| Flow { name: host.name(), address: host.ip(), port: destination.port, protocol };
    let protocols = protocols(destination, &host);
    if method == http::Method::GET && protocols.iter().any(|protocol| is_either(&flow(*protocol))) {
        return Err("the event does not say whether a WebSocket was asked for".to_owned());
    }
    agreed(protocols, |protocol| {
        let flow = flow(protocol);
        let surface = provider::spoken_at(flow.name, policy.provider_at(&flow));
        let service = surface.map(|surface| surface.service(&method, &path, false));
        let unknown_provider = service.is_none() && surface::looks_like_inference(&method, &path);
        let asked = EndpointQuery { method: &method, path: &path, service, unknown_provider };
        policy.explain_destination(&flow, Some(&asked)).decision
    })
}

fn destination(event: &Event) -> Result<&Destination, String> {
    event.destination.as_deref().ok_or_else(|| "the event has no destination".to_owned())
}

fn host(destination: &Destination) -> Result<Host, String> {
    Host::parse(&destination.host).map_err(|_| "its host cannot be read".to_owned())
}

/// What may have been spoken. Events do not say it; of a named host, the port does.
fn protocols(destination: &Destination, host: &Host) -> &'static [Protocol] {
    match (host.name(), destination.port, destination.intercepted) {
        (Some(_), 443, _) => &[Protocol::Tls],
        (Some(_), 80, _) => &[Protocol::Http],
        (_, _, true) => &[Protocol::Tls, Protocol::Http],
        (_, _, false) => &[Protocol::Tls, Protocol::Http, Protocol::Opaque, Protocol::Unclear],
    }
}

/// The decision, where it has one verdict whatever the bytes were: events do not say it.
fn agreed(
    protocols: &[Protocol],
    decide: impl Fn(Protocol) -> ShownDecision,
) -> Result<ShownDecision, String> {
    let mut decisions = protocols.iter().map(|protocol| decide(*protocol));
    let mut first = decisions.next().ok_or_else(|| "nothing is asked".to_owned())?;
    for other in decisions {
        if other.verdict != first.verdict {
            return Err("it depends on what was spoken there, which the event does not say".to_owned());
        }
        if other.rule != first.rule {
            (first.rule, first.reason) = (None, None);
        }
    }
    Ok(first)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
