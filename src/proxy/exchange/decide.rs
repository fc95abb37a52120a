//! Decides about a request by its head alone, in the order of the contract: bound, names, destination, endpoint,
//! credentials, upgrade. The first denial ends it. Nothing is sent, waited for or recorded here: facts in, a plan out.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, StatusCode, header};

use super::overrides;
use super::target::UpstreamTarget;
use crate::call::{Api, Dialect, Service, Terms as _};
use crate::credential::placement::{self, KeyDenial, Placement, Plan};
use crate::decision::{Decision, Verdict};
use crate::name::path::NormalPath;
use crate::policy::Policy;
use crate::policy::destination::{Action, EndpointQuery, EndpointRules, Flow, FlowDecision, Protocol};
use crate::policy::routing::Reach;
use crate::provider;
use crate::provider::surface::looks_like_inference;
use crate::proxy::error::{Refusal, Stop};
use crate::proxy::inbound::names;
use crate::proxy::inbound::session::Naming;
use crate::proxy::upstream::Origin;

/// A request as it came, before its body is read.
pub(super) struct InboundRequest<'a> {
    pub(super) parts: &'a Parts,
    pub(super) has_body: bool,
    /// How its destination is known.
    pub(super) naming: &'a Naming,
    /// Every request of the connection is refused with this.
    pub(super) refuse_all: Option<&'a Stop>,
}

/// The rules in force.
pub(super) struct RulesInForce<'a> {
    pub(super) policy: &'a Policy,
    /// The policy's decision about a flow, or the denial once the policy has expired.
    pub(super) destination: &'a dyn Fn(&Flow<'_>) -> FlowDecision,
    pub(super) header_count: usize,
}

/// The decision about one request.
pub(super) struct HeadDecision {
    /// The facts for the record, whether or not the request goes on.
    pub(super) facts: HeadFacts,
    pub(super) outcome: Result<RequestPlan, Stop>,
}

/// What was learnt of a request while it was decided.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadFacts {
    /// The destination, where the names in the request agree on one.
    pub(super) origin: Option<Origin>,
    /// Policy denies the destination itself, whatever the connection was made for.
    pub(super) is_destination_denied: bool,
    /// The API that is called, where the destination is an LLM provider.
    pub(super) service: Option<Service>,
    /// What Audit policies beside enforced ones would have done with the destination.
    pub(super) destination_audits: Vec<Decision>,
    /// What they would have done with the endpoint.
    pub(super) endpoint_audit: Option<Decision>,
}

/// What is to be done with a request that goes on.
#[derive(Debug, Clone)]
pub(super) struct RequestPlan {
    /// Where the agent sent it.
    pub(super) target: UpstreamTarget,
    pub(super) decision: Decision,
    /// It asks for a WebSocket and may have one.
    pub(super) is_upgrade: bool,
    /// Whether models of routes alone answer at the destination.
    pub(super) reach: Reach,
}

/// Decides everything that can be decided before the body of a request is read (design 5.10).
pub(super) fn decide(request: &InboundRequest<'_>, rules: &RulesInForce<'_>) -> HeadDecision {
    let mut facts = HeadFacts::default();
    let outcome = plan(request, rules, &mut facts);
    HeadDecision { facts, outcome }
}

fn plan(
    request: &InboundRequest<'_>,
    rules: &RulesInForce<'_>,
    facts: &mut HeadFacts,
) -> Result<RequestPlan, Stop> {
    let parts = request.parts;
    if let Some(stop) = request.refuse_all {
        // The refusal of a provider is said in its own words, which its clients show once.
        if let Naming::Fixed(origin) = request.naming {
            facts.service = service(parts, &NormalPath::parse(parts.uri.path()), origin, None);
        }
        return Err(stop.clone());
    }
    check_bound(parts, rules)?;
    let origin = names::target(request.naming, parts)?;
    facts.origin = Some(origin.clone());
    let (destination, inspection) = decide_destination(&origin, request, rules, facts)?;
    let endpoint = decide_endpoint(&origin, request, &inspection, facts)?;
    let mut decision = worst(destination, endpoint)?;
    let (credential, recorded) = decide_credential(parts, rules.policy, &origin)?;
    if let Some(recorded) = recorded {
        decision = worst(decision, recorded)?;
    }
    if decision.reason.is_none() {
        let remark = placement::remark(parts, rules.policy.credentials(), &place(&origin));
        decision.reason = remark.map(Into::into);
    }
    let service = facts.service;
    let is_upgrade = asks_for_websocket(parts)?;
    if is_upgrade {
        if answers_by_routes(&origin, service, rules.policy, &inspection) {
            let reason = "Routes are about requests here: what comes over a WebSocket cannot be routed";
            return Err(not_served(Decision::builtin("route", reason).into()));
        }
        let upgrade = match service {
            // Its messages are read; the provider keeps the conversation.
            Some(service) if service.dialect.is_some() => rules.policy.provider_state().decision,
            Some(_) | None => inspection.upgrade(service.is_some()),
        };
        decision = worst(decision, upgrade).map_err(not_served)?;
    }
    let reach = inspection.reach();
    Ok(RequestPlan { target: UpstreamTarget { origin, service, credential }, decision, is_upgrade, reach })
}

/// Whether a WebSocket is refused, so that its client sends plain requests, of which routes can take any.
fn answers_by_routes(
    origin: &Origin,
    service: Option<Service>,
    policy: &Policy,
    inspection: &EndpointRules,
) -> bool {
    let is_responses = service.is_some_and(|service| service.dialect == Some(Dialect::OpenAIResponses));
    let has_route = || policy.routing().is_some_and(|routing| routing.has_responses_route(&origin.host));
    inspection.reach() == Reach::Routes || is_responses && has_route()
}

/// Over HTTP/1 the framer has counted already; HTTP/2 knows a bound in bytes alone.
fn check_bound(parts: &Parts, rules: &RulesInForce<'_>) -> Result<(), Stop> {
    if parts.headers.len() <= rules.header_count {
        return Ok(());
    }
    let decision = Decision::builtin("bound", "the request has more header fields than limits.headerCount");
    Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, decision).into())
}

/// Decides about the destination anew: policy may have changed since the connection was made.
fn decide_destination(
    origin: &Origin,
    request: &InboundRequest<'_>,
    rules: &RulesInForce<'_>,
    facts: &mut HeadFacts,
) -> Result<(Decision, Arc<EndpointRules>), Stop> {
    let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
    let (name, address) = (origin.host.name(), origin.host.ip());
    let decided = (rules.destination)(&Flow { name, address, port: origin.port, protocol });
    let was_reported = matches!(request.naming, Naming::Fixed(_));
    if !was_reported {
        facts.destination_audits = decided.audited;
    }
    match decided.action {
        Action::Inspect(inspection) => Ok((decided.decision, inspection)),
        // The connection was made for what is denied now.
        Action::Deny { .. } => {
            facts.is_destination_denied = true;
            Err(Refusal::closing(StatusCode::FORBIDDEN, decided.decision).into())
        }
        // Where every request is read anyway, Tunnel means Inspect.
        Action::Tunnel { .. } if !was_reported => {
            let inspection = EndpointRules::without_endpoints(&decided.decision, rules.policy.audit_only());
            Ok((decided.decision, Arc::new(inspection)))
        }
        Action::Tunnel { .. } => {
            let reason = "policy has changed: this destination is no longer inspected";
            let decision = Decision::builtin("name-mismatch", reason);
            Err(Refusal::closing(StatusCode::MISDIRECTED_REQUEST, decision).into())
        }
    }
}

/// Decides about method and path.
fn decide_endpoint(
    origin: &Origin,
    request: &InboundRequest<'_>,
    inspection: &EndpointRules,
    facts: &mut HeadFacts,
) -> Result<Decision, Stop> {
    let (parts, path) = (request.parts, NormalPath::parse(request.parts.uri.path()));
    let service = service(parts, &path, origin, inspection.provider());
    facts.service = service;
    let unknown_provider = service.is_none() && looks_like_inference(&parts.method, &path);
    let asked = EndpointQuery { method: &parts.method, path: &path, service, unknown_provider };
    let mut decision = inspection.request(&asked);
    let surface = provider::spoken_at(origin.host.name(), inspection.provider());
    if service.is_some_and(|service| service.dialect.is_none())
        && surface.is_some_and(|surface| surface.is_disguised(&parts.method, &path, request.has_body))
    {
        let reason = "This request is not plainly one for an inference endpoint, and could be taken for it";
        decision = inspection.refused(reason);
    }
    if let Some(name) = overrides::in_query(&parts.uri).filter(|_| inspection.is_narrowed(service.is_some()))
    {
        let reason =
            format!("The query parameter {name} can name another method or path than the one that is judged");
        decision = inspection.refused(&reason);
    }
    if decision.denies() {
        let is_responses = service.is_some_and(|service| service.api == Api::Responses);
        let stop = Stop::from(decision);
        // Codex falls back to plain requests at a 426 alone; at anything else it tries again and again.
        return Err(if is_responses && is_websocket(parts) { not_served(stop) } else { stop });
    }
    facts.endpoint_audit = inspection.audited(&asked);
    Ok(decision)
}

/// The API of an LLM provider that a request calls; `dialect` is what a rule says is spoken there.
fn service(parts: &Parts, path: &NormalPath, origin: &Origin, dialect: Option<Dialect>) -> Option<Service> {
    let surface = provider::spoken_at(origin.host.name(), dialect)?;
    Some(surface.service(&parts.method, path, is_websocket(parts)))
}

/// The credential to attach, and the denial that is only recorded because every policy of the pod is an Audit policy.
fn decide_credential(
    parts: &Parts,
    policy: &Policy,
    origin: &Origin,
) -> Result<(Option<Plan>, Option<Decision>), Stop> {
    match placement::plan(parts, policy.credentials(), &place(origin)) {
        Placement::Nothing => Ok((None, None)),
        Placement::Attach(plan) => Ok((Some(plan), None)),
        Placement::Deny(KeyDenial { floor: false, plan, decision }) if policy.audit_only() => {
            Ok((plan, Some(decision.into_would_deny())))
        }
        Placement::Deny(denial) => Err(denial.decision.into()),
    }
}

fn place(origin: &Origin) -> placement::Target<'_> {
    placement::Target { host: origin.host.name(), port: origin.port, secure: origin.tls }
}

/// Whether the request asks for a WebSocket.
///
/// `Upgrade: h2c` is passed over, as RFC 9110 (section 7.8) lets a server do: the request goes on over HTTP/1.1.
/// `CONNECT` inside a connection, and any other protocol, is refused.
fn asks_for_websocket(parts: &Parts) -> Result<bool, Stop> {
    let refused = |reason: &'static str| Err(Decision::builtin("upgrade", reason).into());
    if parts.method == Method::CONNECT {
        return refused("a connection inside a connection is not to be had");
    }
    let Some(protocol) = parts.headers.get(header::UPGRADE) else { return Ok(false) };
    if protocol.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return Ok(false);
    }
    if !protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
        return refused("of all protocols, only WebSocket can be upgraded to");
    }
    Ok(true)
}

/// Whether the request would become a WebSocket if it were served.
fn is_websocket(parts: &Parts) -> bool {
    matches!(asks_for_websocket(parts), Ok(true))
}

/// A WebSocket that no rule allows: 426, at which clients fall back to plain requests at once (design 6.5).
fn not_served(stop: Stop) -> Stop {
    match stop {
        Stop::Denied(refusal) => Stop::Denied(Refusal { status: StatusCode::UPGRADE_REQUIRED, ..refusal }),
        Stop::Failed(failure) => Stop::Failed(failure),
    }
}

/// The decision that counts of two: a denial ends the exchange, and WouldDeny is recorded rather than Allow.
fn worst(first: Decision, second: Decision) -> Result<Decision, Stop> {
    match (first.verdict, second.verdict) {
        (_, Verdict::Deny | Verdict::Unknown) => Err(second.into()),
        (Verdict::Allow, Verdict::WouldDeny) => Ok(second),
        (_, Verdict::Allow | Verdict::Audit | Verdict::WouldDeny) => Ok(first),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
