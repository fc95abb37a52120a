//! LOOKS for secrets in what an agent sends, and asks policy what becomes of each. Pure.
//!
//! One [`Inspection`] is made for each request: of its head ([`Inspection::head`]), and of each text of a request to a model,
//! for which it is the [`Detection`](crate::provider::request::Detection) of the reader (`request`), of its seams (`joined`), of
//! files by their names (`files`), and of small values together with those of requests before (`spread`). What it found is taken
//! out as facts for events. [`ShownNames`] takes secrets out of what events tell. [`CleanTexts`] remembers texts in which nothing was found.

mod clean;
mod files;
mod head;
#[cfg(test)]
mod item_tests;
mod joined;
mod names;
mod replaced;
mod request;
mod spread;
#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod testing;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use foldhash::quality::RandomState;

pub use clean::CleanTexts;
use clean::State;
pub use files::settle_named;
pub use head::place_of;
use joined::Neighbours;
pub use names::ShownNames;
use spread::Joined;
pub use spread::SpreadValues;

use crate::call::{Denial, Role};
use crate::decision::{Decision, Verdict};
use crate::digest::hex;
use crate::dlp::{BoundReached, Budget, Coding, Confidence, Detector, Match, Search, Sight, StreamMatch};
use crate::event::Finding;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::data_loss::{
    AskedFinding, FindingAction, FindingPlace, FindingVerdict, NamedFile, NamedValue,
};
use crate::provider::request::is_plain;
use crate::provider::request::marks::CallNumber;

/// How many decisions of one request are recorded beside its own.
const MOST_RECORDED: usize = 8;

/// The search of one request.
pub struct Inspection {
    policy: Arc<Policy>,
    terms: Search,
    host: Host,
    /// Whether the request has a key of the gateway's, so that the provider vouches for what the model wrote.
    is_vouched: bool,
    clean: Option<Arc<CleanTexts>>,
    budget: Budget,
    /// For texts that are searched again.
    budget_again: Budget,
    neighbours: Neighbours,
    /// What stands in front of the next text.
    state: State,
    /// The item that is looked at, as long as all of it is clean.
    item: Option<u128>,
    /// The files that calls name, by the place of the document in another and the call's in it.
    calls: HashMap<(&'static str, CallNumber), MayName, RandomState>,
    /// What requests to the host before this one held, and when this one is; none where it is a model's.
    spread: Option<(Arc<SpreadValues>, Instant)>,
    inspected: Inspected,
    denial: Option<Denial>,
    redacted: BTreeSet<String>,
}

/// Whether a call may name a file, and which.
#[derive(Debug, Clone, Copy)]
struct MayName {
    may_name: bool,
    file: Option<NamedFile>,
}

/// What came of a search.
#[derive(Debug, Default)]
pub struct Inspected {
    pub findings: Vec<Finding>,
    /// The detector of each, and what is done.
    pub actions: Vec<(String, FindingAction)>,
    /// The decisions that are recorded beside the request's own.
    pub recorded: Vec<Decision>,
    /// Whether something stands in the request that was replaced, now or before.
    pub holds_placeholders: bool,
}

impl Inspected {
    /// Whether nothing was found, and nothing decided.
    pub fn is_nothing(&self) -> bool {
        let Self { findings, actions, recorded, holds_placeholders } = self;
        findings.is_empty() && actions.is_empty() && recorded.is_empty() && !holds_placeholders
    }
}

/// Where a text stands that is searched.
struct Site<'a> {
    place: FindingPlace,
    role: Option<Role>,
    tool: Option<&'a str>,
    /// As events tell it; asked for where something was found.
    location: &'a dyn Fn() -> String,
    /// For whoever reads why it was denied, such as `the result of Read in message 3`.
    described: &'a dyn Fn() -> String,
}

/// A finding in a text, and what becomes of it.
struct Settled {
    range: Range<usize>,
    detector: String,
    /// Of the value; of a file that is told by its name, nothing.
    sha256: [u8; 32],
    confidence: Confidence,
    action: FindingAction,
}

/// What the search of a text came to.
struct Searched {
    settled: Vec<Settled>,
    /// Whether nothing was found, allowed or not.
    is_clean: bool,
}

impl Inspection {
    /// The search of a request to a host. `bytes` is how many its body has, of which `most` are decoded.
    pub fn of(policy: &Arc<Policy>, terms: Search, host: &Host, (bytes, most): (usize, usize)) -> Self {
        Self {
            terms,
            policy: Arc::clone(policy),
            host: host.clone(),
            is_vouched: false,
            clean: None,
            budget: Budget::of(bytes, most),
            budget_again: Budget::of(bytes, most),
            neighbours: Neighbours::default(),
            state: State::default(),
            item: None,
            calls: HashMap::default(),
            spread: None,
            inspected: Inspected::default(),
            denial: None,
            redacted: BTreeSet::new(),
        }
    }

    /// The same for a request to a model. `is_vouched`: it has a key of the gateway's.
    #[must_use]
    pub fn of_model(self, is_vouched: bool) -> Self {
        Self { is_vouched, ..self }
    }

    /// The same, which passes over texts in which nothing was found before.
    #[must_use]
    pub fn passing_over(self, clean: Arc<CleanTexts>) -> Self {
        Self { clean: Some(clean), ..self }
    }

    /// The same for a request to a host that is no model's.
    #[must_use]
    pub fn of_other(self, spread: Arc<SpreadValues>, now: Instant) -> Self {
        Self { spread: Some((spread, now)), ..self }
    }

    /// The same where a value that must not leave is not known: the request goes no further.
    #[must_use]
    pub fn lacking(mut self, missing: Option<&NamedValue>) -> Self {
        if let Some(missing) = missing {
            let decision = unsearched(&self.policy, missing);
            self.decided(Some(decision), || missing.unsearched());
        }
        self
    }

    /// What was found. The search may go on.
    pub fn take(&mut self) -> Inspected {
        std::mem::take(&mut self.inspected)
    }

    /// Searches a text.
    fn search(&mut self, text: &[u8], sight: Sight, site: &Site<'_>) -> Result<Searched, Denial> {
        let terms = self.terms.clone();
        let mut found = Vec::new();
        let searched = terms.scan(text, sight, &mut self.budget, &mut found);
        let settled = found.iter().filter_map(|found| self.settle(found, site)).collect();
        searched.map_err(bound)?;
        Ok(Searched { settled, is_clean: found.is_empty() })
    }

    /// Searches the small values of a body to no model, together with those of the requests before it.
    ///
    /// # Errors
    /// It must not go on.
    pub fn small_body(&mut self, body: &[u8]) -> Result<(), Denial> {
        for (place, value) in spread::of_body(body) {
            self.spread(&place, &value)?;
        }
        self.denied()
    }

    /// Searches a small value behind those that stood in the same place of requests before.
    fn spread(&mut self, place: &str, value: &[u8]) -> Result<(), Denial> {
        let before = self.spread.as_ref();
        let joined = before.and_then(|(spread, now)| spread.add(&self.host, place, value, *now));
        let Some(Joined { bytes, last }) = joined else { return Ok(()) };
        let (terms, mut found) = (self.terms.clone(), Vec::new());
        terms.scan(&bytes, Sight::Sealed, &mut self.budget, &mut found).map_err(bound)?;
        found.retain(|found| found.range.start < last && found.range.end > last);
        if found.is_empty() {
            return Ok(());
        }
        let site = Site {
            place: FindingPlace::Rest,
            role: None,
            tool: None,
            location: &|| place_told(place),
            described: &|| "values of several requests to this host".to_owned(),
        };
        found.iter().for_each(|found| drop(self.settle(found, &site)));
        if let Some((spread, _)) = &self.spread {
            spread.forget(&self.host);
        }
        Ok(())
    }

    /// Decides about a finding, and records it.
    fn settle(&mut self, found: &Match<'_>, site: &Site<'_>) -> Option<Settled> {
        let asked = AskedFinding {
            detector: found.detector,
            confidence: found.confidence,
            sha256: &found.sha256,
            place: site.place,
            host: &self.host,
        };
        let FindingVerdict { action, decision } = self.policy.judge_finding(&asked);
        if action == FindingAction::Allow {
            return None;
        }
        self.inspected.findings.push(fact(found, site, action));
        self.inspected.actions.push((found.detector.id.clone(), action));
        self.decided(decision, || reason(&found.detector.id, site));
        let (detector, confidence) = (found.detector.id.clone(), found.confidence);
        Some(Settled { range: found.range.clone(), detector, sha256: found.sha256, confidence, action })
    }

    /// Keeps the first denial, and what is only recorded.
    fn decided(&mut self, decision: Option<Decision>, reason: impl FnOnce() -> String) {
        let Some(decision) = decision else { return };
        let recorded = &mut self.inspected.recorded;
        let is_known = |known: &Decision| known.rule == decision.rule;
        if decision.denies() && self.denial.is_none() {
            self.denial = Some(Decision { reason: Some(Cow::Owned(reason())), ..decision }.into());
        } else if decision.would_deny() && recorded.len() < MOST_RECORDED && !recorded.iter().any(is_known) {
            recorded.push(Decision { reason: Some(Cow::Owned(reason())), ..decision });
        }
    }

    /// The denial, if there is one.
    fn denied(&mut self) -> Result<(), Denial> {
        self.denial.take().map_or(Ok(()), Err)
    }
}

/// What becomes of a request that cannot be searched for a value, since that is not known.
pub fn unsearched(policy: &Policy, missing: &NamedValue) -> Decision {
    let decision = Decision::by(missing.rule.clone(), Verdict::Deny, "");
    let decision = if policy.audit_only() { decision.into_would_deny() } else { decision };
    Decision { reason: Some(missing.unsearched().into()), ..decision }
}

/// A place as events tell it: names of the agent's choice are told where they are short and plain.
fn place_told(place: &str) -> String {
    let (kind, name) = place.split_once('/').unwrap_or((place, ""));
    if name.is_empty() || is_plain(name) { place.to_owned() } else { format!("{kind}/#") }
}

/// Decides about a secret in a body that streams to a host that is no model's. Returns the fact, and the decision where it is
/// denied or would be.
pub fn settle_streamed(
    policy: &Policy,
    terms: &Search,
    host: &Host,
    (part, found): (&'static str, &StreamMatch),
) -> Option<(Finding, FindingAction, Option<Decision>)> {
    let detector = terms.detector(&found.detector)?;
    let (place, confidence) = (FindingPlace::Rest, found.confidence);
    let asked = AskedFinding { detector, confidence, sha256: &found.sha256, place, host };
    let FindingVerdict { action, decision } = policy.judge_finding(&asked);
    if action == FindingAction::Allow {
        return None;
    }
    let told = Told {
        detector,
        confidence,
        checksum: found.checksum,
        range: found.range.clone(),
        decoded: &found.decoded,
        sha256: &found.sha256,
    };
    let finding = Finding { location: part.to_owned(), ..told.finding(action) };
    let reason = format!("A secret ({}) stands in the {part} at byte {}", found.detector, found.range.start);
    Some((finding, action, decision.map(|decision| Decision { reason: Some(reason.into()), ..decision })))
}

/// The kind of findings that are secrets.
const SECRETS: &str = "Secrets";

/// What an event tells of a finding, wherever it stands.
struct Told<'a> {
    detector: &'a Detector,
    confidence: Confidence,
    checksum: Option<bool>,
    range: Range<u64>,
    decoded: &'a [Coding],
    sha256: &'a [u8; 32],
}

impl Told<'_> {
    fn finding(self, action: FindingAction) -> Finding {
        Finding {
            detector: self.detector.id.clone().into(),
            kind: SECRETS.into(),
            confidence: self.confidence.as_str().into(),
            checksum: self.checksum,
            at: self.range.start,
            length: self.range.end - self.range.start,
            decoded: self.decoded.iter().map(|coding| coding.as_str().into()).collect(),
            action: action.as_str().into(),
            // Of others it could be guessed.
            sha256: self.detector.is_rigid.then(|| hex(self.sha256)),
            ..Finding::default()
        }
    }
}

fn fact(found: &Match<'_>, site: &Site<'_>, action: FindingAction) -> Finding {
    let told = Told {
        detector: found.detector,
        confidence: found.confidence,
        checksum: found.checksum,
        range: found.range.start as u64..found.range.end as u64,
        decoded: &found.decoded,
        sha256: &found.sha256,
    };
    Finding {
        role: site.role.map(|role| role.as_str().into()),
        tool: site.tool.map(str::to_owned),
        location: (site.location)(),
        ..told.finding(action)
    }
}

/// Why a request with a secret goes no further, and how to go on. It never has the value.
fn reason(detector: &str, site: &Site<'_>) -> String {
    format!(
        "A secret ({detector}) stands in {} ({}). Take it out (rewind to before it), or allow this value by its hash \
         (dataLoss.allow)",
        (site.described)(),
        (site.location)()
    )
}

fn bound(reached: BoundReached) -> Denial {
    Denial::builtin("bound", format!("The request cannot be searched for secrets: {reached}"))
}
