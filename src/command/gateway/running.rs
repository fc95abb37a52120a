//! A gateway in this process: its listeners, its admin sockets, and the reload of its files.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use tokio::sync::{Notify, Semaphore};

use super::descriptors::{self, Shares};
use super::health::{GatewayFacts, GatewayHealth, texts};
use super::reload::FileReloader;
use super::running_mark::RunningMark;
use super::search_domains;
use super::sinks::EventSinks;
use super::snapshot::build;
use super::sockets::{BoundDns, BoundSockets, bind};
use super::trusted_roots::TrustedRootsWriter;
use super::unreadable::UnreadStreak;
use crate::admin::status::ListenerStatus;
use crate::admin::{self, Inspect};
use crate::command::check::Checked;
use crate::config::Settings;
use crate::config::listeners::STATUS_SOCKET;
use crate::config::watch::Watched;
use crate::decision::{Decision, Verdict};
use crate::dns::{self, Resolver};
use crate::drain::Drain;
use crate::event::{Event, Kind, Workload};
use crate::ledger::{Ledger, fresh_id, timestamp};
use crate::name::host::DnsName;
use crate::problem::Problem;
use crate::proxy::Gateway;
use crate::proxy::inbound::listener;
use crate::proxy::upstream::Places;
use crate::telemetry::log;
use crate::telemetry::metrics::Metrics;

/// How long the sinks have to write what is left.
const FLUSH: Duration = Duration::from_secs(5);

/// A gateway that serves.
pub(crate) struct Running {
    pub(crate) gateway: Arc<Gateway>,
    health: Arc<GatewayHealth>,
    reload: Arc<Notify>,
    mark: RunningMark,
}

impl Running {
    /// Binds everything, then serves. `config` is where the settings came from and are read again when what is
    /// watched changes.
    pub(crate) async fn start(
        config: &Path,
        checked: Checked,
        watched: Watched,
        sinks: EventSinks,
    ) -> Result<Self, Vec<Problem>> {
        hide_memory();
        let wanted = checked.settings.limits.connections;
        let shares = descriptors::share(descriptors::raise(), wanted).map_err(|problem| vec![problem])?;
        let metrics = Arc::new(Metrics::new().map_err(|error| vec![Problem::at("", error.to_string())])?);
        let workload = &checked.settings.policy.workload;
        let store = sinks.store.as_ref().map(|(_, health, blocks)| (health.clone(), *blocks));
        let retention = sinks.store.as_ref().map(|(store, ..)| store.retention());
        let allowances = sinks.allowances();
        let sinks = sinks.start(workload, &metrics);
        let workload = (*workload != Workload::default()).then(|| Arc::new(workload.clone()));
        let ledger = Ledger::start(sinks, workload, Arc::clone(&metrics))
            .map_err(|error| vec![Problem::at("", format!("no thread for events: {error}"))])?;
        let awaited = store.as_ref().filter(|(_, blocks)| *blocks).map(|(health, _)| health.clone());
        let ledger = ledger.waiting_for(awaited);
        let drain = Drain::default();
        let (surroundings, sources) = (checked.surroundings, checked.sources.clone());
        let facts = GatewayFacts::of(&checked);
        log::follow(checked.expected.log_level);
        let settings = Arc::new(checked.settings.clone());
        let bound = bind(&settings).await?;
        let snapshot =
            build(checked, (&drain, &metrics), None, (Places::new(shares.upstreams), bound.addresses()))?;
        let mut roots_writer = TrustedRootsWriter::default();
        let facts = GatewayFacts {
            credentials: texts(&snapshot.credentials.problems()),
            trust: roots_writer.look(settings.trust.as_ref()),
            ..facts
        };
        log_cut(shares, wanted);
        let names = bound.dns.as_ref().map(|dns| Arc::clone(&dns.names));
        let gateway = Gateway::new(snapshot, ledger, metrics, drain, names, allowances);
        let health = Arc::new(GatewayHealth {
            gateway: Arc::clone(&gateway),
            started_at: SystemTime::now(),
            listeners: bound.shown(),
            facts: Mutex::new(facts),
            connections: shares.connections,
            store,
            retention,
            prover: settings.listeners.transparent.as_ref().map(|_| Arc::default()),
        });
        let (mark, before) = RunningMark::leave(socket(&settings));
        let running = Self { gateway, health, reload: Arc::new(Notify::new()), mark };
        running.announce(&started(before));
        running.serve(bound, &settings)?;
        let reloader = FileReloader {
            config: config.to_owned(),
            watched,
            surroundings,
            sources,
            roots_writer,
            health: Arc::clone(&running.health),
            owed: None,
            unread: UnreadStreak::default(),
        };
        running.gateway.drain.spawn(reloader.run(Arc::clone(&running.reload)));
        Ok(running)
    }

    /// Where the listeners are, with the ports that were bound.
    pub(crate) fn listeners(&self) -> &[ListenerStatus] {
        &self.health.listeners
    }

    /// Reads all files again and tries the redirect again, soon.
    pub(crate) fn reload(&self) {
        self.reload.notify_one();
        if let Some(prover) = &self.health.prover {
            prover.ask();
        }
    }

    /// Stops accepting, lets exchanges end within the grace, flushes events. Returns whether all ended in time.
    pub(crate) async fn stop(&self) -> bool {
        let grace = self.gateway.snapshot().settings.shutdown.grace;
        let drained = self.gateway.drain.shut_down(grace).await;
        if !drained {
            tracing::warn!(?grace, "exchanges were cut at the end of the grace");
        }
        self.announce("the gateway has stopped");
        self.mark.remove();
        self.gateway.ledger.close(FLUSH).await && drained
    }

    fn serve(&self, bound: BoundSockets, settings: &Settings) -> Result<(), Vec<Problem>> {
        let places = Arc::new(Semaphore::new(self.health.connections));
        for (listener, way, _) in bound.ways {
            let accepting = listener::accept(Arc::clone(&self.gateway), listener, way, Arc::clone(&places));
            self.gateway.drain.spawn(accepting);
        }
        if let Some(prover) = &self.health.prover {
            self.gateway.drain.spawn(Arc::clone(prover).run(Arc::clone(&self.gateway)));
        }
        if let Some(dns) = bound.dns {
            self.answer_names(dns);
        }
        let inspect: Arc<dyn Inspect> = self.health.clone();
        admin::serve(bound.admin, Arc::clone(&inspect), &self.gateway.drain);
        if let Some(path) = socket(settings) {
            admin::serve_socket(path, inspect, &self.gateway.drain)
                .map_err(|error| vec![Problem::at("admin.socket", error.to_string())])?;
        }
        Ok(())
    }

    fn answer_names(&self, bound: BoundDns) {
        let Gateway { metrics, drain, .. } = &*self.gateway;
        let gateway = Arc::clone(&self.gateway);
        let judge = Box::new(move |name: &DnsName| gateway.snapshot().answers(name));
        let gateway = Arc::clone(&self.gateway);
        let emit = Box::new(move |event: Event| gateway.emit(event));
        let metrics = Arc::clone(metrics);
        let resolver = Resolver::new(bound.names, judge, search_domains::read(), metrics, emit);
        dns::serve(&Arc::new(resolver), bound.sockets, drain);
    }

    /// Records a step of the gateway's life in an event, with the evidence of the interception gate.
    fn announce(&self, step: &str) {
        let evidence = serde_json::to_string(&self.health.facts().evidence).unwrap_or_default();
        let snapshot = self.gateway.snapshot();
        let reason = format!("{step}; policy {}; interception {evidence}", snapshot.policy().revision());
        let mut decision = Decision::of(Verdict::Allow);
        decision.reason = Some(reason.into());
        self.gateway.ledger.emit(Event::new(fresh_id(), Kind::Lifecycle, decision));
        self.health.update_metrics();
    }
}

/// Describes the start, and whether the gateway `before` ended without being told to.
fn started(before: Option<SystemTime>) -> String {
    let Some(before) = before else { return "the gateway has started".to_owned() };
    let since = timestamp(before);
    tracing::warn!(%since, "the gateway before this one ended without stopping; nothing passed meanwhile");
    format!("the gateway has started again: the one that started at {since} ended without stopping")
}

/// Keeps memory, which holds every key, out of core files and from other processes of the same user, an agent that
/// `postern run` started among them.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "a core file of this process would hold keys");
    }
}

/// Logs that file descriptors are too few for the settings; after the sockets are bound, since a start that fails logs
/// its own reason alone.
fn log_cut(shares: Shares, wanted: usize) {
    let Shares { connections, upstreams } = shares;
    if connections < wanted {
        // A default that is cut is no mistake of anybody's: `postern run` shows warnings alone.
        tracing::info!(
            connections,
            upstreams,
            "limits.connections is cut: there are too few file descriptors for {wanted}; raise the hard limit"
        );
    }
}

/// The status socket: the one that is configured, or the usual one where its directory is there.
fn socket(settings: &Settings) -> Option<&Path> {
    let usual = Path::new(STATUS_SOCKET);
    settings.admin.socket.as_deref().or_else(|| usual.parent().is_some_and(Path::is_dir).then_some(usual))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::snapshot::{credentials, with_age};
    use super::*;
    use crate::command::check;
    use crate::tls::gate::Surroundings;

    const POLICY: &str = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, \
        spec: {destinations: []}}";

    async fn started(place: &Path) -> Running {
        let settings = "policy: {path: policy.yaml}\ninterception: {mode: Off}\nadmin: {address: '127.0.0.1:0'}\n\
            listeners: {explicit: {address: '127.0.0.1:0'}}\n";
        let config = place.join("settings.yaml");
        fs::write(&config, settings).unwrap();
        fs::write(place.join("policy.yaml"), POLICY).unwrap();
        let surroundings = Surroundings { intercept: false, kubernetes: false };
        let (watched, checked) = check::read(&config, surroundings, SystemTime::now());
        Running::start(
            &config,
            checked.unwrap(),
            watched,
            EventSinks::with_exporters_of_environment(Vec::new()),
        )
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn a_policy_that_has_expired_denies_from_its_first_moment() {
        let place = tempfile::tempdir().unwrap();
        let running = started(place.path()).await;
        let before = running.gateway.snapshot();
        for (hours, is_expired) in [(25, true), (1, false)] {
            let (policy, ..) = check::policy(&before.settings.policy).unwrap();
            let values = credentials(&policy, &before.settings, None).unwrap();
            let synced_at = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
            let snapshot = with_age(before.with_policy(policy.with_synced_at(Some(synced_at)), values));
            assert_eq!(snapshot.set_expired(true), !is_expired, "{hours} h");
        }
        running.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_cannot_be_read_for_a_minute_are_a_reason_not_to_be_ready() {
        let place = tempfile::tempdir().unwrap();
        let running = started(place.path()).await;
        let after = async |seconds| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            running.health.status()
        };
        assert!(after(5).await.ready);

        fs::remove_file(place.path().join("policy.yaml")).unwrap();
        let status = after(50).await;
        assert!(status.ready && status.policy.last_error.is_some(), "{:?}", status.reasons);
        let status = after(20).await;
        assert_eq!((status.ready, status.unready), (false, vec!["files cannot be read"]));
        assert!(status.reasons.iter().any(|reason| reason.contains("policy.yaml")), "{:?}", status.reasons);
        let unread = |metrics: &str| metrics.contains("\npostern_files_unread_seconds 0\n");
        assert!(!unread(&running.gateway.metrics.encode()));

        fs::write(place.path().join("policy.yaml"), POLICY).unwrap();
        let status = after(5).await;
        assert!(status.ready && status.reasons.len() < 2, "{:?}", status.reasons);
        assert!(unread(&running.gateway.metrics.encode()));
        running.stop().await;
    }
}
