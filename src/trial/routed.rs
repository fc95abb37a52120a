//! Which models routes ask in the place of the one that a tested request names.

use crate::call::{Dialect, RequestFacts, Service};
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::routing::{
    Hop, RouteMarker, RouteOutcome, RouteQuestion, attested, unknown_label, unrouted,
};
use crate::policy::routing::{Reach, Routing};
use crate::provider::translate::{Marked, has_own_thinking, marked};
use crate::wire::json::{Document, Limits};

/// The models that are asked one after the other; none where the request goes where the agent sent it.
///
/// # Errors
/// No model may answer it.
pub(super) fn chosen(
    policy: &Policy,
    (host, port): (&Host, u16),
    (service, facts): (Service, &RequestFacts),
    (body, limits): (&[u8], Limits),
) -> Result<Vec<Hop>, Decision> {
    let reach = policy.reach(host, port);
    let chain = match (policy.routing(), service.dialect, &facts.model) {
        (Some(routing), Some(dialect), Some(model)) if service.may_be_routed() => {
            let document = Document::parse(body, limits).ok();
            let marked = document.as_ref().and_then(|document| marker(routing, dialect, document));
            let marker = marked.as_ref().map(|Marked { token, label, .. }| RouteMarker { token, label });
            let question = RouteQuestion { host, dialect, model, marker, audit_marker: None, reach };
            let mut chain = match routing.choose(&question).outcome {
                RouteOutcome::NoMatch => Vec::new(),
                RouteOutcome::Chain { chain, .. } => chain,
                RouteOutcome::Stub { route, label } => {
                    return Err(unknown_label(&label, &route.labels().collect::<Vec<_>>()));
                }
            };
            let is_changed = || marked.is_some() || document.as_ref().is_some_and(has_own_thinking);
            if !chain.is_empty() && facts.is_attested && is_changed() {
                chain.retain(|hop| !matches!(hop, Hop::Origin));
                if chain.is_empty() {
                    return Err(attested("A marker, or thinking of another model,"));
                }
            }
            chain
        }
        _ => Vec::new(),
    };
    if chain.is_empty() && reach == Reach::Routes { Err(unrouted()) } else { Ok(chain) }
}

fn marker(routing: &Routing, dialect: Dialect, document: &Document<'_>) -> Option<Marked> {
    let tokens: Vec<&str> = routing.tokens().collect();
    if tokens.is_empty() || dialect != Dialect::Anthropic {
        return None;
    }
    marked(document, |token| tokens.contains(&token)).ok().flatten()
}
