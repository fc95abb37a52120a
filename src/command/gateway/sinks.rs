//! The sinks that a gateway gives its events to.

use std::sync::Arc;

use crate::command::environment;
use crate::config::ledger::LedgerSettings;
use crate::event::Workload;
use crate::ledger::NamedSink;
use crate::ledger::logs::{self, Logs};
use crate::ledger::otlp::{OtlpSettings, Signal};
use crate::ledger::store::{Store, StoreHealth};
use crate::ledger::traces::Traces;
use crate::policy::allowance::Allowances;
use crate::problem::Problem;
use crate::telemetry::Metrics;

/// The sinks, and the exporters that the environment asks for.
pub(crate) struct EventSinks {
    pub(crate) named: Vec<NamedSink>,
    pub(crate) exporters: Exporters,
    /// The ledger's file, with whether events wait for it.
    pub(crate) store: Option<(Store, StoreHealth, bool)>,
}

/// What is exported over OTLP. A mistake in the variables is logged and costs no traffic.
#[derive(Debug, Default)]
pub(crate) struct Exporters {
    traces: Option<OtlpSettings>,
    logs: Option<OtlpSettings>,
}

impl Exporters {
    fn of_environment() -> Self {
        let read = |signal: Signal, lost: &str| {
            OtlpSettings::read(signal, &environment::variable).unwrap_or_else(|problem| {
                warn(&[problem], lost);
                None
            })
        };
        Self {
            traces: read(Signal::Traces, "no traces are exported"),
            logs: read(Signal::Logs, "no logs are exported"),
        }
    }
}

impl EventSinks {
    /// These sinks, and exporters where the `OTEL_*` variables ask for them.
    pub(crate) fn with_exporters_of_environment(named: Vec<NamedSink>) -> Self {
        Self { named, exporters: Exporters::of_environment(), store: None }
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

    /// What limits have counted, as the ledger has it; without one they begin anew.
    pub(super) fn allowances(&self) -> Arc<Allowances> {
        self.store.as_ref().map(|(store, ..)| store.allowances()).unwrap_or_default()
    }

    /// All sinks, with the exporters started. Nothing waits for a collector: what it is sent is no evidence.
    pub(super) fn start(self, workload: &Workload, metrics: &Arc<Metrics>) -> Vec<NamedSink> {
        let Self { mut named, exporters: Exporters { traces, logs }, store } = self;
        if let Some((store, _, blocks)) = store {
            named.push(match blocks {
                true => NamedSink::blocking("ledger", store),
                false => NamedSink::dropping("ledger", store),
            });
        }
        match traces.map(|settings| Traces::start(&settings, workload, Arc::clone(metrics))) {
            Some(Ok(traces)) => named.push(NamedSink::dropping("traces", traces)),
            Some(Err(problems)) => warn(&problems, "no traces are exported"),
            None => {}
        }
        match logs.map(|settings| Logs::start(&settings, workload, Arc::clone(metrics))) {
            Some(Ok(logs)) => named.push(NamedSink::dropping("logs", logs).with_queue(logs::QUEUE_BYTES)),
            Some(Err(problems)) => warn(&problems, "no logs are exported"),
            None => {}
        }
        named
    }
}

fn warn(problems: &[Problem], lost: &str) {
    for problem in problems {
        tracing::warn!(%problem, "{lost}");
    }
}
