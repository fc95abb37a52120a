//! Moves bytes: from an agent's connection to its upstream and back, as policy decides.

mod agent_door;
mod body;
mod budget;
pub(crate) mod canary;
mod error;
pub(crate) mod exchange;
mod forward;
pub(crate) mod inbound;
mod readahead;
pub(crate) mod routing;
mod shortened;
pub mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod upstream;
mod window;
mod workspace_door;

use std::borrow::Cow;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::request::Parts;
use tokio::sync::watch;

use crate::agent_api::denials::{Denial, Denials};
use crate::call::BlockedCalls;
use crate::decision::Verdict;
use crate::detection::SpreadValues;
use crate::dns::Names;
use crate::drain::Drain;
use crate::event::{Event, Http, Kind};
use crate::ledger::Ledger;
use crate::policy::allowance::Allowances;
use crate::provider::answer::TypedLines;
use crate::telemetry::label::{Closed, Limit};
use crate::telemetry::metrics::Metrics;
use crate::wire::http1::{Bound, Violation};
use agent_door::Questions;
use budget::Budget;
use canary::Canaries;
use exchange::rules::FailingRules;
use routing::RoutingState;
use shortened::ShortenedTexts;
use snapshot::Snapshot;

/// How many answers and conversations are remembered with their blocked calls.
const BLOCKED: usize = 4_096;

/// What every connection shares.
pub struct Gateway {
    snapshot: ArcSwap<Snapshot>,
    /// Counts snapshots, so that open connections can be decided again.
    generation: watch::Sender<u64>,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub drain: Drain,
    pub(crate) canaries: Canaries,
    pub(crate) budget: Arc<Budget>,
    pub(crate) allowances: Arc<Allowances>,
    /// The blocked calls of conversations that providers keep.
    pub(crate) blocked: BlockedCalls,
    /// The rules that had no value.
    pub(crate) failing_rules: FailingRules,
    /// What tool calls typed into programs that run.
    pub(crate) typed: TypedLines,
    /// The names that the resolver gave addresses, where there is one.
    pub(crate) names: Option<Arc<Names>>,
    /// The last denials, of which the agent may ask.
    pub(crate) denials: Denials,
    pub(crate) questions: Questions,
    /// Small values of requests to hosts that are no model's.
    pub(crate) spread: Arc<SpreadValues>,
    /// How models of routes do.
    pub(crate) routing: RoutingState,
    /// Results of tools that were shortened.
    pub(crate) shortened: ShortenedTexts,
}

impl Gateway {
    pub fn new(
        snapshot: Snapshot,
        ledger: Ledger,
        metrics: Arc<Metrics>,
        drain: Drain,
        names: Option<Arc<Names>>,
        allowances: Arc<Allowances>,
    ) -> Arc<Self> {
        let generation = watch::Sender::new(0);
        let shortened = ShortenedTexts::new(snapshot.policy().tool_outputs().cloned());
        let snapshot = ArcSwap::from_pointee(snapshot);
        let (canaries, budget) = (Canaries::default(), Budget::new(Arc::clone(&metrics)));
        Arc::new(Self {
            snapshot,
            generation,
            ledger,
            metrics,
            drain,
            canaries,
            budget,
            allowances,
            blocked: BlockedCalls::new(BLOCKED),
            failing_rules: FailingRules::default(),
            typed: TypedLines::default(),
            names,
            denials: Denials::default(),
            questions: Questions::default(),
            spread: Arc::default(),
            routing: RoutingState::default(),
            shortened,
        })
    }

    /// A name that somebody outside has chosen, without the secrets in it.
    pub(crate) fn shown<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let names = self.snapshot.load().shown_names();
        names.and_then(|names| names.shown(name)).map_or(Cow::Borrowed(name), Cow::Owned)
    }

    /// The head of a request for events, which cut it off where it is long: what is cut could not be searched any more.
    pub(crate) fn shown_head(&self, parts: &Parts) -> Http {
        let (method, path) = (self.shown(parts.method.as_str()), self.shown(parts.uri.path()));
        Http::request(&method, &path, parts.version)
    }

    /// Gives an event to the ledger, and keeps a denial for the agent to ask of. Secrets in what somebody outside has chosen
    /// are taken out first: every sink has the event from here.
    pub(crate) fn emit(&self, mut event: Event) {
        if let Some(names) = self.snapshot.load().shown_names() {
            names.mask(&mut event);
        }
        if event.decision.verdict == Verdict::Deny {
            let rule = event.decision.rule.as_ref().filter(|_| event.kind == Kind::ToolCall);
            let snapshot = self.snapshot.load();
            let parameters = rule.map(|rule| snapshot.policy().parameters(rule)).unwrap_or_default();
            self.denials.keep(Denial::new(event.id, event.kind, &event.decision, parameters));
        }
        self.ledger.emit(event);
    }

    /// The snapshot in force. An exchange keeps the one it began with.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Puts another snapshot in force: open connections are decided again, and pooled ones are dropped.
    pub fn replace(&self, snapshot: Snapshot) {
        let before = self.snapshot.swap(Arc::new(snapshot));
        before.upstreams.retire();
        self.decide_again();
    }

    /// Has open connections decided again.
    pub fn decide_again(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Counts a message that is ambiguous or too large, and returns why its connection ends.
    pub(crate) fn violated(&self, violation: &Violation) -> Closed {
        let limit = match violation.bound() {
            None => return Closed::Framing,
            Some(Bound::HeaderBytes) => Limit::HeaderBytes,
            Some(Bound::HeaderCount) => Limit::HeaderCount,
        };
        self.metrics.limit_reached(limit);
        Closed::Limit
    }

    /// Notifies of each new snapshot.
    pub(crate) fn replaced(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}
