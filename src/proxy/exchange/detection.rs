//! Has requests searched for secrets, and keeps what was found for their events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;

use crate::call::Denial;
use crate::decision::Decision;
use crate::detection::{Inspected, Inspection, SpreadValues, settle_named, settle_streamed, unsearched};
use crate::dlp::{Search, StreamMatch};
use crate::event::{Finding, keep_worst};
use crate::filter::Rewrite;
use crate::filter::detect::{BodyDetector, InForce, Ruling, Settle, SocketDetector, StreamedPart, Terms};
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
    let (search, missing) = snapshot.search_lacking()?;
    let inspection = Inspection::of(snapshot.policy(), search, host, bounds);
    Some(inspection.passing_over(snapshot.clean_texts()).lacking(missing.as_deref()))
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

    /// Keeps findings, and decisions about them. Returns the denial, if there is one.
    fn keep(&self, findings: Vec<Finding>, decisions: impl IntoIterator<Item = Decision>) -> Option<Denial> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.findings.extend(findings);
        keep_worst(&mut kept.findings);
        let mut denial = None;
        for decision in decisions {
            if decision.denies() {
                denial = denial.or_else(|| Some(decision.into()));
            } else if decision.would_deny() && !kept.recorded.iter().any(|known| known.rule == decision.rule)
            {
                kept.recorded.push(decision);
            }
        }
        denial
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
    fn settle(&self, part: StreamedPart, found: &StreamMatch) -> Option<Denial> {
        let found = (part.as_str(), found);
        let (finding, action, decision) = settle_streamed(&self.policy, &self.search, &self.host, found)?;
        self.metrics.dlp_finding(&finding.detector, action.as_str());
        self.findings.keep(vec![finding], decision)
    }

    fn named(&self, file: &str) -> Option<Denial> {
        let (finding, action, decision) = settle_named(&self.policy, file)?;
        self.metrics.dlp_finding(&finding.detector, action.as_str());
        self.findings.keep(vec![finding], decision)
    }

    fn small(&self, body: &[u8]) -> Option<Denial> {
        self.search_small(body)
    }
}

impl StreamTerms {
    fn of(
        (snapshot, gateway): (&Snapshot, &Gateway),
        host: &Host,
        search: &Search,
        findings: &StreamFindings,
    ) -> Self {
        Self {
            policy: Arc::clone(snapshot.policy()),
            search: search.clone(),
            host: host.clone(),
            findings: findings.clone(),
            metrics: Arc::clone(&gateway.metrics),
            spread: Arc::clone(&gateway.spread),
        }
    }

    /// Searches a small body together with those before it.
    fn search_small(&self, body: &[u8]) -> Option<Denial> {
        let bounds = (body.len(), SMALL_DECODED);
        let inspection = Inspection::of(&self.policy, self.search.clone(), &self.host, bounds);
        let mut inspection = inspection.of_other(Arc::clone(&self.spread), Instant::now());
        let searched = inspection.small_body(body);
        let Inspected { findings, actions, recorded, .. } = inspection.take();
        actions.iter().for_each(|(detector, action)| self.metrics.dlp_finding(detector, action.as_str()));
        self.findings.keep(findings, recorded);
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
    (snapshot, gateway): (&Arc<Snapshot>, &Arc<Gateway>),
    host: &Host,
) -> Option<(SocketDetector, StreamFindings)> {
    let (search, findings) = (snapshot.search()?, StreamFindings::default());
    let settle = Arc::new(StreamTerms::of((snapshot, gateway), host, &search, &findings));
    let in_force = SocketTerms {
        gateway: Arc::clone(gateway),
        host: host.clone(),
        findings: findings.clone(),
        snapshot: Arc::clone(snapshot),
        search: search.clone(),
    };
    Some((SocketDetector::new(Ruling { search, settle }, Box::new(in_force)), findings))
}

/// What an open WebSocket is searched for.
struct SocketTerms {
    gateway: Arc<Gateway>,
    host: Host,
    findings: StreamFindings,
    snapshot: Arc<Snapshot>,
    search: Search,
}

impl InForce for SocketTerms {
    fn renewed(&mut self) -> Result<Option<Ruling>, Denial> {
        let snapshot = self.gateway.snapshot();
        // A policy that allows secrets lets go on whatever is found.
        let (search, missing) = snapshot.search_lacking().unwrap_or_else(|| (self.search.clone(), None));
        if Arc::ptr_eq(&snapshot, &self.snapshot) && search.generation() == self.search.generation() {
            return Ok(None);
        }
        if let Some(missing) = missing {
            let denial = self.findings.keep(Vec::new(), [unsearched(snapshot.policy(), &missing)]);
            denial.map_or(Ok(()), Err)?;
        }
        let from = (&*snapshot, &*self.gateway);
        let settle = Arc::new(StreamTerms::of(from, &self.host, &search, &self.findings));
        (self.snapshot, self.search) = (snapshot, search.clone());
        Ok(Some(Ruling { search, settle }))
    }
}

/// The search of a body to no model, and what will be found; none where policy allows secrets.
pub(crate) fn body_detector(
    from: (&Snapshot, &Gateway),
    host: &Host,
    head: &HeaderMap,
) -> Option<(BodyDetector, StreamFindings)> {
    let (search, findings) = (from.0.search()?, StreamFindings::default());
    let settle = Arc::new(StreamTerms::of(from, host, &search, &findings));
    let terms = Terms { search, settle, limits: from.0.coding_limits() };
    Some((BodyDetector::new(head, terms), findings))
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
