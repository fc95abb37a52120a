//! The state that the ledger's handles and its threads share beside the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Event, Kind};
use crate::telemetry::Metrics;
use crate::telemetry::label::{Denied, Dropped};

/// How many events wait for the writer at most: over two for each of the 10,000 connections a gateway may hold.
pub(super) const CAPACITY: usize = 32_768;

/// The name of that queue among the sinks, in metrics.
pub(super) const QUEUE: &str = "queue";

/// With so many waiting, new work waits too.
pub(super) const HIGH_WATER: usize = 8_192;

#[derive(Debug)]
pub(super) struct LedgerState {
    pub(super) metrics: Arc<Metrics>,
    /// Events that found no place in the queue to the writer.
    pub(super) dropped: AtomicU64,
    /// Told when the queue is below its high-water mark again.
    pub(super) relieved: Notify,
    /// Cancelled when the writer and the threads of all sinks have ended.
    pub(super) ended: CancellationToken,
}

impl LedgerState {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        metrics.sink_started(QUEUE);
        Self { metrics, dropped: AtomicU64::new(0), relieved: Notify::new(), ended: CancellationToken::new() }
    }

    /// Counts a denial by its rule, whatever becomes of its event.
    pub(super) fn count_denial(&self, event: &Event) {
        let Decision { verdict: verdict @ (Verdict::Deny | Verdict::WouldDeny), rule, .. } = &event.decision
        else {
            return;
        };
        let kind = match event.kind {
            // A refusal inside of TLS has an event of its own as a request.
            Kind::Connection if event.destination.as_ref().is_some_and(|to| to.intercepted) => return,
            Kind::Connection => Denied::Connection,
            Kind::Request => Denied::Request,
            Kind::Response => Denied::Response,
            Kind::ToolCall => Denied::ToolCall,
            Kind::Transform | Kind::Policy | Kind::Lifecycle | Kind::Unknown => return,
        };
        self.metrics.denied(kind, rule.as_ref().map_or("none", RuleId::as_str), *verdict);
    }

    pub(super) fn drop_one(&self, reason: Dropped) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.metrics.events_dropped(QUEUE, reason, 1);
    }
}
