//! The sinks that a gateway gives its events to.

use std::sync::Arc;

use crate::command::environment;
use crate::event::Workload;
use crate::ledger::NamedSink;
use crate::ledger::traces::{TraceSettings, Traces};
use crate::telemetry::Metrics;

/// The sinks, and the traces that the environment asks for. A mistake in the latter is logged and costs no traffic.
pub(crate) struct EventSinks {
    pub(crate) named: Vec<NamedSink>,
    pub(crate) traces: Option<TraceSettings>,
}

impl EventSinks {
    /// These sinks, and traces where the `OTEL_*` variables ask for them.
    pub(crate) fn with_traces_of_environment(named: Vec<NamedSink>) -> Self {
        let traces = TraceSettings::read(&environment::variable).unwrap_or_else(|problem| {
            tracing::warn!(%problem, "no traces are exported");
            None
        });
        Self { named, traces }
    }

    /// All sinks, with the exporter of traces started. Traces are no evidence, so nothing waits for them.
    pub(super) fn start(self, workload: &Workload, metrics: &Arc<Metrics>) -> Vec<NamedSink> {
        let Self { mut named, traces } = self;
        match traces.map(|settings| Traces::start(&settings, workload, Arc::clone(metrics))) {
            Some(Ok(traces)) => named.push(NamedSink::dropping("traces", traces)),
            Some(Err(problems)) => {
                for problem in problems {
                    tracing::warn!(%problem, "no traces are exported");
                }
            }
            None => {}
        }
        named
    }
}
