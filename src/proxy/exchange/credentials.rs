//! Attaches the real key to a request, or signs it: the last change before it is sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::target::UpstreamTarget;
use crate::credential::placement::Plan;
use crate::credential::sigv4::{self, Subject};
use crate::decision::Decision;
use crate::proxy::Gateway;
use crate::proxy::error::Stop;
use crate::proxy::snapshot::Snapshot;

/// How often a missing value is looked for.
const POLL: Duration = Duration::from_millis(50);

/// The rest of the request that a credential is attached to.
pub(super) struct OutboundBody<'a> {
    /// The body, where it is sent whole.
    pub(super) body: Option<&'a Bytes>,
    /// Whether the body is not the one that the agent sent.
    pub(super) is_edited: bool,
}

/// Waits for the value of a credential that a new policy names: its Secret is mounted apart from the policy. Returns a
/// snapshot that came into force meanwhile: the request must be decided again.
pub(super) async fn wait_for_value(
    gateway: &Gateway,
    snapshot: &Arc<Snapshot>,
    plan: Option<&Plan>,
    until: Instant,
) -> Option<Arc<Snapshot>> {
    let credential = plan.map(Plan::credential)?;
    let store = &snapshot.credentials;
    let is_there = || store.secret(credential).is_some() || store.access_key(credential).is_some();
    while !is_there() && Instant::now() < until {
        tokio::time::sleep(POLL).await;
        let newest = gateway.snapshot();
        if !Arc::ptr_eq(&newest, snapshot) {
            return Some(newest);
        }
    }
    None
}

/// Attaches the credential of a target. Nothing of the head may be changed behind it.
pub(super) fn attach(
    snapshot: &Snapshot,
    parts: &mut Parts,
    target: &UpstreamTarget,
    sent: &OutboundBody<'_>,
) -> Result<(), Stop> {
    if sent.is_edited && !target.signs() && sigv4::is_signed_by_agent(parts) {
        let why = "the agent signed a request of which something had to be taken out, so that its signature is no \
                   longer true: let Postern sign (sigV4 in a credential), or use a Bedrock API key";
        return Err(Decision::builtin("credential", why).into());
    }
    let Some(plan) = &target.credential else { return Ok(()) };
    let credential = plan.credential();
    let missing = |why: &str| {
        let name = &credential.name;
        Decision::builtin("credential", format!("the credential {name} cannot be attached: {why}"))
    };
    let attached = if plan.signs() {
        let key = snapshot.credentials.access_key(credential).ok_or_else(|| missing("it has no value"))?;
        let authority = target.origin.authority();
        let body_sha256 = Subject::hash(sent.body.map_or(&[], |body| body));
        let subject = Subject { authority: &authority, body_sha256, now: OffsetDateTime::now_utc() };
        plan.sign(parts, &key, &subject)
    } else {
        let secret = snapshot.credentials.secret(credential).ok_or_else(|| missing("it has no value"))?;
        plan.attach(parts, &secret)
    };
    attached.map_err(|error| missing(&error.to_string()).into())
}
