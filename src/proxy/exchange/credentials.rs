//! Puts the real key into a request, or signs it: the last change before it leaves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::record::Record;
use crate::credential::placement::{self, Denial, Placement, Plan, Target};
use crate::credential::sigv4::{self, Subject};
use crate::decision::Decision;
use crate::proxy::Gateway;
use crate::proxy::error::Stop;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::Origin;

/// How often it is looked whether a value has arrived.
const LOOK: Duration = Duration::from_millis(50);

/// What goes upstream with a key.
pub(crate) struct Leaving<'a> {
    pub(crate) origin: &'a Origin,
    /// The body as it is sent, where it was taken in whole.
    pub(crate) body: Option<&'a Bytes>,
    /// Whether the body is not the one that the agent sent.
    pub(crate) is_edited: bool,
}

/// The credential to attach, and what an Audit policy alone would have denied of it.
pub(crate) fn plan(
    snapshot: &Snapshot,
    parts: &Parts,
    origin: &Origin,
) -> Result<(Option<Plan>, Option<Decision>), Stop> {
    match placement::plan(parts, snapshot.policy().credentials(), &target(origin)) {
        Placement::Nothing => Ok((None, None)),
        Placement::Attach(plan) => Ok((Some(plan), None)),
        Placement::Deny(Denial { floor: false, plan, decision }) if snapshot.policy().audit_only() => {
            Ok((plan, Some(decision.into_would_deny())))
        }
        Placement::Deny(denial) => Err(denial.decision.into()),
    }
}

/// Waits a moment for the value of a credential that a new policy names: its Secret is mounted apart from the policy.
/// Answers the snapshot that was put in force meanwhile, under which the request is to be decided anew.
pub(crate) async fn replaced(
    gateway: &Gateway,
    snapshot: &Arc<Snapshot>,
    plan: Option<&Plan>,
    until: Instant,
) -> Option<Arc<Snapshot>> {
    let credential = plan.map(Plan::credential)?;
    let store = &snapshot.credentials;
    let is_there = || store.secret(credential).is_some() || store.access_key(credential).is_some();
    while !is_there() && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
        let newest = gateway.snapshot();
        if !Arc::ptr_eq(&newest, snapshot) {
            return Some(newest);
        }
    }
    None
}

/// What the event of a request says beside its decision, where nothing was denied.
pub(crate) fn remark(snapshot: &Snapshot, parts: &Parts, origin: &Origin) -> Option<String> {
    placement::remark(parts, snapshot.policy().credentials(), &target(origin))
}

fn target(origin: &Origin) -> Target<'_> {
    Target { host: origin.host.name(), port: origin.port, secure: origin.tls }
}

/// Attaches the credential of a plan. Nothing of the head may be changed behind it.
pub(crate) fn attach(
    snapshot: &Snapshot,
    parts: &mut Parts,
    plan: Option<&Plan>,
    leaving: &Leaving<'_>,
    record: &mut Record,
) -> Result<(), Stop> {
    if leaving.is_edited && !plan.is_some_and(Plan::signs) && sigv4::is_signed_by_agent(parts) {
        let why = "the agent signed a request of which something had to be taken out, so that its signature is no \
                   longer true: let Postern sign (sigV4 in a credential), or use a Bedrock API key";
        return Err(Decision::builtin("credential", why).into());
    }
    let Some(plan) = plan else { return Ok(()) };
    let credential = plan.credential();
    let missing = |why: &str| {
        let name = &credential.name;
        Decision::builtin("credential", format!("the credential {name} cannot be attached: {why}"))
    };
    let attached = if plan.signs() {
        let key = snapshot.credentials.access_key(credential).ok_or_else(|| missing("it has no value"))?;
        let authority = leaving.origin.authority();
        let body_sha256 = Subject::hash(leaving.body.map_or(&[], |body| body));
        let subject = Subject { authority: &authority, body_sha256, now: OffsetDateTime::now_utc() };
        plan.sign(parts, &key, &subject)
    } else {
        let secret = snapshot.credentials.secret(credential).ok_or_else(|| missing("it has no value"))?;
        plan.attach(parts, &secret)
    };
    attached.map_err(|error| missing(&error.to_string()))?;
    record.credential_attached(credential);
    Ok(())
}
