//! Has requests searched for secrets, and keeps what was found for their events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;

use crate::call::Denial;
use crate::decision::Decision;
use crate::detection::{Inspected, Inspection, SpreadValues, settle_named, settle_streamed};
use crate::dlp::{Search, StreamMatch};
use crate::event::Finding;
use crate::filter::Rewrite;
use crate::filter::detect::{BodyDetector, Settle, SocketDetector, Terms};
use crate::name::host::Host;
use crate::policy::Policy;
use crate::proxy::Gateway;
use crate::proxy::snapshot::Snapshot;
use crate::telemetry::Metrics;

/// How many bytes are decoded of a small body.
const SMALL_DECODED: usize = 64 << 10;

/// The search of a request to a host; none where policy allows secrets. `bytes` is how many its body has.
pub(crate) fn inspection(snapshot: &Snapshot, host: &Host, bytes: usize) -> Option<Inspection> {
    let bounds = (bytes, snapshot.settings.limits.decoded_body_bytes);
    let inspection = Inspection::of(snapshot.policy(), snapshot.search()?, host, bounds);
    Some(inspection.lacking(snapshot.credentials.missing().as_deref()))
}

/// What was found in a body on its way. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamFindings(Arc<Mutex<Streamed>>);

/// What was found, and what of it is only recorded: one decision of each rule.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    pub(crate) findings: Vec<Finding>,
    pub(crate) recorded: Vec<Decision>,
}

impl StreamFindings {
    /// Returns what was found since the last call.
    pub(crate) fn take(&self) -> Streamed {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, findings: Vec<Finding>, recorded: Vec<Decision>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.findings.extend(findings);
        kept.recorded.extend(recorded);
    }

    /// Keeps a finding. Returns the denial for it.
    fn keep(&self, (finding, decision): (Finding, Option<Decision>)) -> Option<Denial> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.findings.push(finding);
        let decision = decision?;
        if decision.denies() {
            return Some(decision.into());
        }
        if decision.would_deny() && !kept.recorded.iter().any(|known| known.rule == decision.rule) {
            kept.recorded.push(decision);
        }
        None
    }
}

/// Decides about what is found in the body of a request to no model.
struct StreamTerms {
    policy: Arc<Policy>,
    search: Search,
    host: Host,
    findings: StreamFindings,
    metrics: Arc<Metrics>,
    spread: Arc<SpreadValues>,
}

impl Settle for StreamTerms {
    fn settle(&self, found: &StreamMatch) -> Option<Denial> {
        let (finding, action, decision) = settle_streamed(&self.policy, &self.search, &self.host, found)?;
        self.metrics.dlp_finding(&finding.detector, action.as_str());
        self.findings.keep((finding, decision))
    }

    fn named(&self, file: &str) -> Option<Denial> {
        let (finding, action, decision) = settle_named(&self.policy, file)?;
        self.metrics.dlp_finding(&finding.detector, action.as_str());
        self.findings.keep((finding, decision))
    }

    fn small(&self, body: &[u8]) -> Option<Denial> {
        self.search_small(body)
    }
}

impl StreamTerms {
    /// Searches a small body together with those before it.
    fn search_small(&self, body: &[u8]) -> Option<Denial> {
        let bounds = (body.len(), SMALL_DECODED);
        let inspection = Inspection::of(&self.policy, self.search.clone(), &self.host, bounds);
        let mut inspection = inspection.of_other(Arc::clone(&self.spread), Instant::now());
        let searched = inspection.small_body(body);
        let Inspected { findings, actions, recorded, .. } = inspection.take();
        actions.iter().for_each(|(detector, action)| self.metrics.dlp_finding(detector, action.as_str()));
        self.findings.add(findings, recorded);
        searched.err()
    }
}

impl fmt::Debug for StreamTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the policy for bodies to {}", self.host)
    }
}

/// The search of what an agent sends over a WebSocket that is no model's, and what will be found; none where policy allows
/// secrets.
pub(crate) fn socket_detector(
    from: (&Snapshot, &Gateway),
    host: &Host,
) -> Option<(SocketDetector, StreamFindings)> {
    let (search, settle, findings) = terms(from, host)?;
    Some((SocketDetector::new(search, settle), findings))
}

/// The search of a body to no model, and what will be found; none where policy allows secrets.
pub(crate) fn body_detector(
    from: (&Snapshot, &Gateway),
    host: &Host,
    head: &HeaderMap,
) -> Option<(BodyDetector, StreamFindings)> {
    let (search, settle, findings) = terms(from, host)?;
    let terms = Terms { search, settle, limits: from.0.coding_limits() };
    Some((BodyDetector::new(head, terms), findings))
}

/// What is searched for on the way to a host, who decides about it, and where it is told.
fn terms(
    (snapshot, gateway): (&Snapshot, &Gateway),
    host: &Host,
) -> Option<(Search, Arc<StreamTerms>, StreamFindings)> {
    let policy = Arc::clone(snapshot.policy());
    let search = snapshot.search()?;
    let findings = StreamFindings::default();
    let settle = Arc::new(StreamTerms {
        policy,
        search: search.clone(),
        host: host.clone(),
        findings: findings.clone(),
        metrics: Arc::clone(&gateway.metrics),
        spread: Arc::clone(&gateway.spread),
    });
    Some((search, settle, findings))
}

/// Searches a body to no model that was taken in whole.
///
/// # Errors
/// If it must not go on.
pub(crate) fn search_whole(mut detector: BodyDetector, body: Bytes) -> Result<(), Denial> {
    let mut out = Vec::new();
    let searched = detector.write(body, &mut out).and_then(|()| detector.finish(&mut out));
    searched.map_err(|refused| match refused {
        crate::filter::Refused::Denied(denial) => denial,
        crate::filter::Refused::Unreadable(why) => Denial::unparseable("the body", why),
    })
}
