//! Decides the head of a request that nobody sent, as `decide.rs` does: `postern policy test` asks it.

use http::request::Parts;

use super::decide::{self, InboundRequest, RulesInForce};
use crate::call::Service;
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::proxy::error::Stop;
use crate::proxy::inbound::session::Naming;
use crate::proxy::upstream::Origin;
use crate::trial::HeadOutcome;

/// What the head of a request comes to.
pub(crate) struct HeadPreview {
    pub(crate) decision: Decision,
    pub(crate) service: Option<Service>,
    pub(crate) is_upgrade: bool,
    /// The name of the credential that is attached.
    pub(crate) credential: Option<String>,
}

impl From<HeadPreview> for HeadOutcome {
    fn from(head: HeadPreview) -> Self {
        let HeadPreview { decision, service, is_upgrade, credential } = head;
        Self { decision, service, credential, is_upgrade }
    }
}

/// Decides about a request on a connection that was made for `host` and `port`; its URL's scheme says whether TLS is
/// spoken.
pub(crate) fn preview(
    parts: &Parts,
    has_body: bool,
    (host, port): (Host, u16),
    (policy, header_count): (&Policy, usize),
) -> HeadPreview {
    let naming = Naming::Fixed(Origin { tls: parts.uri.scheme_str() != Some("http"), host, port });
    let request = InboundRequest { parts, has_body, naming: &naming, refuse_all: None };
    let rules = RulesInForce { policy, destination: &|flow| policy.destination(flow), header_count };
    let decided = decide::decide(&request, &rules);
    let service = decided.facts.service;
    match decided.outcome {
        Ok(plan) => {
            let credential = plan.target.credential_name().map(str::to_owned);
            HeadPreview { decision: plan.decision, service, is_upgrade: plan.is_upgrade, credential }
        }
        Err(Stop::Denied(refusal)) => {
            HeadPreview { decision: refusal.decision, service, is_upgrade: false, credential: None }
        }
        // Failures are those of upstreams; nobody is dialled.
        Err(Stop::Failed(failure)) => {
            let decision = Decision::builtin("unparseable", failure.to_string());
            HeadPreview { decision, service, is_upgrade: false, credential: None }
        }
    }
}
