//! All metrics, with one method for each happening. `docs/metrics.md` describes each metric and its use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use prometheus::process_collector::ProcessCollector;
use prometheus::{Error, Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder};

use super::family::{Counters, NamedCounters, counter, counters, gauge, gauges, seconds};
use super::inference::InferenceMetrics;
use super::label::{
    Closed, Denied, DnsAnswer, Dropped, Export, Interception, Label, Limit, Mode, Reload, ShellRead,
    UpstreamError,
};
use super::requests::RequestMetrics;
use super::routing::RoutingMetrics;
use crate::call::{Service, Usage, Vendor};
use crate::decision::Verdict;
use crate::event::Action;
use crate::tool_output::Shortened;

/// Every metric of the process, in a registry of its own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    connections: Vec<Counters<Action>>,
    open: IntGauge,
    closed: Counters<Closed>,
    limits: Counters<Limit>,
    requests: RequestMetrics,
    denials: NamedCounters,
    durations: DurationMetrics,
    upstream_errors: Counters<UpstreamError>,
    credentials: NamedCounters,
    inference: InferenceMetrics,
    routing: RoutingMetrics,
    dns: DnsMetrics,
    policy: PolicyMetrics,
    leaves: IntCounter,
    leaves_seen: AtomicU64,
    leaf_rejected: IntCounter,
    intercepting: InterceptionMetrics,
    bytes: ByteMetrics,
    events: IntCounter,
    events_dropped: IntCounterVec,
    dropped_total: AtomicU64,
    spans: Counters<Export>,
    log_records: Counters<Export>,
}

/// How long the parts of one exchange took. What did not happen is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// From the request's head to the end of the response, or to its being given up.
    pub total: Duration,
    /// From the request being sent to the end of the response.
    pub upstream: Option<Duration>,
    /// The part of the time to the first byte that was not spent waiting for the upstream.
    pub added: Option<Duration>,
    /// From the request's head to the first byte of the response's body.
    pub first_byte: Option<Duration>,
}

/// A connection that is open as long as this lives.
#[derive(Debug)]
pub struct OpenConnection(IntGauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Registers all metrics at zero. Fails never in practice: the names are fixed.
    pub fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let r = &registry;
        about_the_process(r)?;
        let connections = counters(
            r,
            "postern_connections_total",
            "Connections by way in and what was decided.",
            &["mode", "action"],
        )?;
        Ok(Self {
            connections: (Mode::ALL.iter().map(|mode| Counters::within(&connections, &[mode.word()])))
                .collect::<Result<_, _>>()?,
            open: gauge(r, "postern_connections_open", "Connections of agents that are open.")?,
            closed: Counters::new(r, "postern_connections_closed_total", "Why connections ended.", "reason")?,
            limits: Counters::new(r, "postern_limit_refusals_total", "Refusals over a bound.", "limit")?,
            requests: RequestMetrics::new(r)?,
            denials: NamedCounters::new(
                r,
                "postern_denials_total",
                "Denials by rule.",
                &["kind", "rule", "verdict"],
            )?,
            durations: DurationMetrics::new(r)?,
            upstream_errors: Counters::new(
                r,
                "postern_upstream_errors_total",
                "Upstream failures.",
                "class",
            )?,
            credentials: NamedCounters::new(
                r,
                "postern_credentials_attached_total",
                "Real keys put in.",
                &["credential"],
            )?,
            inference: InferenceMetrics::new(r)?,
            routing: RoutingMetrics::new(r)?,
            dns: DnsMetrics::new(r)?,
            policy: PolicyMetrics::new(r)?,
            leaves: counter(r, "postern_leaf_certificates_minted_total", "Leaf certificates made.")?,
            leaves_seen: AtomicU64::new(0),
            leaf_rejected: counter(r, "postern_leaf_rejected_total", "Agents that rejected our leaf.")?,
            intercepting: InterceptionMetrics::new(r)?,
            bytes: ByteMetrics::new(r)?,
            events: counter(r, "postern_ledger_events_total", "Events numbered and given to the sinks.")?,
            events_dropped: counters(
                r,
                "postern_ledger_dropped_total",
                "Events not written.",
                &["sink", "reason"],
            )?,
            dropped_total: AtomicU64::new(0),
            spans: exports(r, "postern_spans_exported_total", "Spans by whether they were exported.")?,
            log_records: exports(
                r,
                "postern_log_records_exported_total",
                "Events by whether they were exported.",
            )?,
            registry,
        })
    }

    /// A connection's destination was decided.
    pub fn connection(&self, mode: Mode, action: Action) {
        if let Some(actions) = self.connections.get(mode.index()) {
            actions.add(action, 1);
        }
    }

    /// A connection was accepted; it counts as open until the answer is dropped.
    pub fn connection_opened(&self) -> OpenConnection {
        self.open.inc();
        OpenConnection(self.open.clone())
    }

    /// How many connections are open.
    pub fn connections_open(&self) -> u64 {
        u64::try_from(self.open.get()).unwrap_or_default()
    }

    /// A connection ended.
    pub fn connection_closed(&self, reason: Closed) {
        self.closed.add(reason, 1);
    }

    /// What routes of models did.
    pub(crate) fn routing(&self) -> &RoutingMetrics {
        &self.routing
    }

    /// Something was refused because a bound was reached.
    pub fn limit_reached(&self, limit: Limit) {
        self.limits.add(limit, 1);
    }

    /// A request on an inspected connection was decided; `service` says what it is at an LLM provider.
    pub fn request(&self, service: Option<Service>, verdict: Verdict) {
        self.requests.add(service, verdict);
    }

    /// A rule denied something, or an Audit policy's would have. Beyond 100 rules the rest counts as `other`.
    pub fn denied(&self, kind: Denied, rule: &str, verdict: Verdict) {
        self.denials.add((Some(kind.word()), Some(verdict.as_str())), rule, 1);
    }

    /// An exchange ended, or was given up.
    pub fn exchange_ended(&self, timings: &Timings) {
        self.durations.observe(timings);
    }

    /// An upstream failed.
    pub fn upstream_failed(&self, class: UpstreamError) {
        self.upstream_errors.add(class, 1);
    }

    /// A request was given a real credential. Beyond 100 names the rest counts as `other`.
    pub fn credential_attached(&self, credential: &str) {
        self.credentials.add((None, None), credential, 1);
    }

    /// A tool call was decided. Beyond 100 names the rest counts as `other`.
    pub fn tool_call(&self, vendor: Vendor, tool: &str, verdict: Verdict) {
        self.inference.tool_call(vendor, tool, verdict);
    }

    /// The commands of a call of a shell were read.
    pub fn shell_call(&self, opaque: bool) {
        self.inference.shell_call(if opaque { ShellRead::Opaque } else { ShellRead::Literal });
    }

    /// A result of a tool was shortened, or left for a reason, told once a text.
    pub fn tool_output(&self, how: Shortened, reason: &'static str, before: usize, after: usize) {
        self.inference.tool_output(how, reason, before, after);
    }

    /// A hosted tool was taken out of a request. Beyond 100 types the rest counts as `other`.
    pub fn hosted_tool_stripped(&self, vendor: Vendor, tool_type: &str) {
        self.inference.hosted_tool_stripped(vendor, tool_type);
    }

    /// A secret was found in a request. Beyond 100 detectors the rest counts as `other`.
    pub fn dlp_finding(&self, detector: &str, action: &'static str) {
        self.inference.dlp_finding(action, detector);
    }

    /// An answer said how many tokens it cost. Beyond 100 models the rest counts as `other`.
    pub fn tokens(&self, vendor: Vendor, model: &str, usage: &Usage) {
        self.inference.tokens(vendor, model, usage);
    }

    /// A question to the resolver was answered, or dropped.
    pub fn dns_question(&self, answer: DnsAnswer) {
        self.dns.questions.add(answer, 1);
    }

    /// So many names have a synthetic address.
    pub fn dns_names(&self, count: usize) {
        self.dns.names.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A policy came into force; its age counts from `synced_at`. The one before is no longer shown.
    pub fn policy_in_force(&self, revision: &str, synced_at: SystemTime) {
        self.policy.enter(revision, synced_at);
    }

    /// Whether the policy in force is the one that the operator stamped on the pod. Where it stamped none, nothing is
    /// said.
    pub fn policy_programmed(&self, programmed: Option<bool>) {
        match programmed {
            Some(programmed) => {
                self.policy.programmed.with_label_values::<&str>(&[]).set(i64::from(programmed))
            }
            None => self.policy.programmed.reset(),
        }
    }

    /// For how long files could not be read, without a look between that could.
    pub fn files_unread(&self, lasts: Duration) {
        self.policy.unread.set(i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX));
    }

    /// Whether the operator has published policies that this version does not know.
    pub fn policy_unknown(&self, is_unknown: bool) {
        self.policy.unknown.set(i64::from(is_unknown));
    }

    /// Changed policy files were read.
    pub fn policy_reloaded(&self, result: Reload) {
        self.policy.reloads.add(result, 1);
    }

    /// The leaf cache says how many leaves it has minted since the start.
    pub fn leaves_minted(&self, total: u64) {
        let before = self.leaves_seen.fetch_max(total, Ordering::Relaxed);
        self.leaves.inc_by(total.saturating_sub(before));
    }

    /// An agent rejected our leaf.
    pub fn leaf_rejected(&self) {
        self.leaf_rejected.inc();
    }

    /// Sets how destinations with action Inspect are treated.
    pub fn interception(&self, mode: Interception) {
        for other in Interception::ALL {
            self.intercepting.info.with_label_values(&[other.word()]).set(i64::from(*other == mode));
        }
    }

    /// The gateway tried its own redirect. Before the first trial, and without a transparent listener, nothing is
    /// said.
    pub fn interception_proven(&self, holds: bool) {
        self.intercepting.proven.with_label_values::<&str>(&[]).set(i64::from(holds));
    }

    /// Bytes of a body were taken into memory (positive) or let go (negative).
    pub fn buffered(&self, bytes: i64) {
        self.bytes.buffered.add(bytes);
    }

    /// The files of kept tool results take so many bytes.
    pub fn evidence_bytes(&self, bytes: u64) {
        self.bytes.evidence.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Events were numbered and given to the sinks.
    pub fn events_written(&self, n: u64) {
        self.events.inc_by(n);
    }

    /// Events were not written by this sink.
    pub fn events_dropped(&self, sink: &'static str, reason: Dropped, n: u64) {
        self.dropped_total.fetch_add(n, Ordering::Relaxed);
        if let Ok(dropped) = self.events_dropped.get_metric_with_label_values(&[sink, reason.word()]) {
            dropped.inc_by(n);
        }
    }

    /// Shows the series of a sink before anything is dropped.
    pub fn sink_started(&self, sink: &'static str) {
        for reason in Dropped::ALL {
            self.events_dropped(sink, *reason, 0);
        }
    }

    /// Spans were exported, or given up.
    pub fn spans(&self, result: Export, n: u64) {
        self.spans.add(result, n);
    }

    /// Events were exported as log records, or given up.
    pub fn log_records(&self, result: Export, n: u64) {
        self.log_records.add(result, n);
    }

    /// How many events were given to the sinks, and how many were not written, since the start.
    pub fn events_total(&self) -> (u64, u64) {
        (self.events.get(), self.dropped_total.load(Ordering::Relaxed))
    }

    /// Prints all metrics in Prometheus' text format 0.0.4.
    pub fn encode(&self) -> String {
        self.policy.measure_age();
        let mut text = String::with_capacity(32 * 1024);
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "cannot print the metrics");
        }
        text
    }
}

/// Metrics of interception and of the redirect.
#[derive(Debug)]
struct InterceptionMetrics {
    info: IntGaugeVec,
    proven: IntGaugeVec,
}

impl InterceptionMetrics {
    fn new(r: &Registry) -> Result<Self, Error> {
        let proven = "Whether the redirect was shown to hold.";
        Ok(Self {
            info: gauges(r, "postern_interception_info", "What becomes of Inspect rules.", &["mode"])?,
            proven: gauges(r, "postern_interception_proven", proven, &[])?,
        })
    }
}

/// Where the time of exchanges goes.
#[derive(Debug)]
struct DurationMetrics {
    request: Histogram,
    upstream: Histogram,
    added: Histogram,
    first_byte: Histogram,
}

impl DurationMetrics {
    fn new(r: &Registry) -> Result<Self, Error> {
        Ok(Self {
            request: seconds(r, "postern_request_duration_seconds", "From request head to response end.")?,
            upstream: seconds(r, "postern_upstream_duration_seconds", "From request sent to response end.")?,
            added: seconds(r, "postern_added_latency_seconds", "What Postern adds until the first byte.")?,
            first_byte: seconds(r, "postern_time_to_first_byte_seconds", "From request head to body.")?,
        })
    }

    fn observe(&self, timings: &Timings) {
        self.request.observe(timings.total.as_secs_f64());
        for (histogram, time) in [
            (&self.upstream, timings.upstream),
            (&self.added, timings.added),
            (&self.first_byte, timings.first_byte),
        ] {
            if let Some(time) = time {
                histogram.observe(time.as_secs_f64());
            }
        }
    }
}

/// What is held for agents, in memory and on disk.
#[derive(Debug)]
struct ByteMetrics {
    buffered: IntGauge,
    evidence: IntGauge,
}

impl ByteMetrics {
    fn new(r: &Registry) -> Result<Self, Error> {
        Ok(Self {
            buffered: gauge(r, "postern_buffered_bytes", "Bytes that are held in memory for agents.")?,
            evidence: gauge(r, "postern_evidence_bytes", "Bytes of the tool results that are kept.")?,
        })
    }
}

/// Metrics of the resolver.
#[derive(Debug)]
struct DnsMetrics {
    questions: Counters<DnsAnswer>,
    names: IntGauge,
}

impl DnsMetrics {
    fn new(r: &Registry) -> Result<Self, Error> {
        let questions =
            Counters::new(r, "postern_dns_questions_total", "Questions to the resolver.", "answer")?;
        Ok(Self { questions, names: gauge(r, "postern_dns_names", "Names that an address stands for.")? })
    }
}

/// Which policy is in force, and since when.
#[derive(Debug)]
struct PolicyMetrics {
    info: IntGaugeVec,
    age: IntGaugeVec,
    programmed: IntGaugeVec,
    synced_at: ArcSwapOption<SystemTime>,
    reloads: Counters<Reload>,
    unread: IntGauge,
    unknown: IntGauge,
}

impl PolicyMetrics {
    fn new(r: &Registry) -> Result<Self, Error> {
        Ok(Self {
            info: gauges(r, "postern_policy_info", "The policy in force.", &["revision"])?,
            age: gauges(r, "postern_policy_age_seconds", "Since the policy was last synced.", &[])?,
            programmed: gauges(
                r,
                "postern_policy_programmed",
                "Whether the policy in force is the one stamped on the pod.",
                &[],
            )?,
            synced_at: ArcSwapOption::empty(),
            reloads: Counters::new(
                r,
                "postern_policy_reloads_total",
                "Looks at changed policies.",
                "result",
            )?,
            unread: gauge(r, "postern_files_unread_seconds", "Since files could last be read.")?,
            unknown: gauge(
                r,
                "postern_policy_unknown",
                "Whether there are policies that this version does not know.",
            )?,
        })
    }

    fn enter(&self, revision: &str, synced_at: SystemTime) {
        self.info.reset();
        self.info.with_label_values(&[revision]).set(1);
        self.synced_at.store(Some(Arc::new(synced_at)));
    }

    /// The age grows while nothing happens, so it is measured when somebody looks. Without a policy there is none.
    fn measure_age(&self) {
        if let Some(synced_at) = self.synced_at.load_full() {
            let age = SystemTime::now().duration_since(*synced_at).unwrap_or_default();
            let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
            self.age.with_label_values::<&str>(&[]).set(seconds);
        }
    }
}

/// What came of exports to a collector.
fn exports(registry: &Registry, name: &str, help: &str) -> Result<Counters<Export>, Error> {
    Counters::new(registry, name, help, "result")
}

/// CPU, memory, descriptors and threads under their usual names, and which build this is.
fn about_the_process(registry: &Registry) -> Result<(), Error> {
    registry.register(Box::new(ProcessCollector::for_self()))?;
    let build = gauges(registry, "postern_build_info", "Which build this is.", &["version"])?;
    build.get_metric_with_label_values(&[env!("CARGO_PKG_VERSION")])?.set(1);
    Ok(())
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
