//! The sinks that a gateway gives its events to.

use std::sync::Arc;

use crate::command::environment;
use crate::config::ledger::LedgerSettings;
use crate::event::Workload;
use crate::ledger::NamedSink;
use crate::ledger::store::{Store, StoreHealth};
use crate::ledger::traces::{TraceSettings, Traces};
use crate::problem::Problem;
use crate::telemetry::Metrics;

/// The sinks, and the traces that the environment asks for. A mistake in the latter is logged and costs no traffic.
pub(crate) struct EventSinks {
    pub(crate) named: Vec<NamedSink>,
    pub(crate) traces: Option<TraceSettings>,
    /// The ledger's file, with whether events wait for it.
    pub(crate) store: Option<(Store, StoreHealth, bool)>,
}

impl EventSinks {
    /// These sinks, and traces where the `OTEL_*` variables ask for them.
    pub(crate) fn with_traces_of_environment(named: Vec<NamedSink>) -> Self {
        let traces = TraceSettings::read(&environment::variable).unwrap_or_else(|problem| {
            tracing::warn!(%problem, "no traces are exported");
            None
        });
        Self { named, traces, store: None }
    }

    /// The same, with the file that `ledger` names.
    ///
    /// # Errors
    /// The file cannot be used; it is left as it is.
    pub(super) fn with_ledger(self, settings: Option<&LedgerSettings>) -> Result<Self, Problem> {
        let Some(settings) = settings else { return Ok(self) };
        let health = StoreHealth::default();
        let store = settings.store();
        let blocks = store.blocks;
        let store = Store::open(store, health.clone());
        let store = store.map_err(|error| Problem::at("ledger.path", error.to_string()))?;
        Ok(Self { store: Some((store, health, blocks)), ..self })
    }

    /// All sinks, with the exporter of traces started. Traces are no evidence, so nothing waits for them.
    pub(super) fn start(self, workload: &Workload, metrics: &Arc<Metrics>) -> Vec<NamedSink> {
        let Self { mut named, traces, store } = self;
        if let Some((store, _, blocks)) = store {
            named.push(match blocks {
                true => NamedSink::blocking("ledger", store),
                false => NamedSink::dropping("ledger", store),
            });
        }
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
