//! Where a gateway's events go.

use std::sync::Arc;

use crate::command::surroundings;
use crate::event::Workload;
use crate::ledger::Sink;
use crate::ledger::traces::{TraceSettings, Traces};
use crate::telemetry::Metrics;

/// The sinks, and the traces that the environment asks for. What is wrong with the latter is said and costs no traffic.
#[derive(Default)]
pub(crate) struct Outlets {
    pub(crate) sinks: Vec<Box<dyn Sink>>,
    pub(crate) traces: Option<TraceSettings>,
}

impl Outlets {
    /// These sinks, and traces where the `OTEL_*` variables ask for them.
    pub(crate) fn of_environment(sinks: Vec<Box<dyn Sink>>) -> Self {
        let traces = TraceSettings::read(&surroundings::variable).unwrap_or_else(|problem| {
            tracing::warn!(%problem, "no traces are exported");
            None
        });
        Self { sinks, traces }
    }

    /// All of them, started.
    pub(super) fn start(self, workload: &Workload, metrics: &Arc<Metrics>) -> Vec<Box<dyn Sink>> {
        let Self { mut sinks, traces } = self;
        match traces.map(|settings| Traces::start(&settings, workload, Arc::clone(metrics))) {
            Some(Ok(traces)) => sinks.push(Box::new(traces)),
            Some(Err(problems)) => {
                for problem in problems {
                    tracing::warn!(%problem, "no traces are exported");
                }
            }
            None => {}
        }
        sinks
    }
}
