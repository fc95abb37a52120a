//! A gateway in this process: its listeners, its admin sockets, and the look at its files each second.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use tokio::sync::{Notify, Semaphore};

use super::condition::{Condition, Facts};
use super::descriptors::{self, Shares};
use super::look::Look;
use super::mark::Mark;
use super::outlets::Outlets;
use super::sockets::{Bound, BoundDns, bind};
use super::trusting::Trusting;
use super::unread::Unread;
use super::{addresses, search};
use crate::admin::status::Listener;
use crate::admin::{self, Inspect};
use crate::command::check::Checked;
use crate::command::surroundings;
use crate::config::listeners::STATUS_SOCKET;
use crate::config::watch::Watched;
use crate::config::{Settings, source};
use crate::credential::Store;
use crate::decision::{Decision, Verdict};
use crate::dns::{self, Resolver};
use crate::drain::Drain;
use crate::event::{Event, Kind, Workload};
use crate::ledger::{Ledger, fresh_id, timestamp};
use crate::name::host::DnsName;
use crate::policy::Policy;
use crate::policy::age::{Age, Freshness};
use crate::problem::Problem;
use crate::proxy::Gateway;
use crate::proxy::inbound::listener;
use crate::proxy::snapshot::{self, Interception, Snapshot};
use crate::proxy::upstream::Places;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{label, log};
use crate::tls::authority::Authority;
use crate::tls::gate;
use crate::tls::leaf::Leaves;

/// How often files, ages and idle connections are looked at, and how often after a new policy: what it needs is mounted
/// a moment later, and connections wait for it.
const TICK: Duration = Duration::from_secs(1);
const BRISK: Duration = Duration::from_millis(100);
/// How long the sinks have to write what is left.
const FLUSH: Duration = Duration::from_secs(5);
/// A password file is one line.
const PASSWORD: u64 = 4 << 10;

/// A gateway that serves.
pub(crate) struct Running {
    pub(crate) gateway: Arc<Gateway>,
    condition: Arc<Condition>,
    reload: Arc<Notify>,
    mark: Mark,
}

impl Running {
    /// Binds everything, then serves. `config` is where the settings came from and are read again when what is
    /// watched changes.
    pub(crate) async fn start(
        config: &Path,
        checked: Checked,
        watched: Watched,
        outlets: Outlets,
    ) -> Result<Self, Vec<Problem>> {
        hide_memory();
        let wanted = checked.settings.limits.connections;
        let shares = descriptors::share(descriptors::raise(), wanted).map_err(|problem| vec![problem])?;
        let metrics = Arc::new(Metrics::new().map_err(|error| vec![Problem::at("", error.to_string())])?);
        let workload = &checked.settings.policy.workload;
        let sinks = outlets.start(workload, &metrics);
        let workload = (*workload != Workload::default()).then(|| Arc::new(workload.clone()));
        let ledger = Ledger::start(sinks, workload, Arc::clone(&metrics))
            .map_err(|error| vec![Problem::at("", format!("no thread for events: {error}"))])?;
        let drain = Drain::default();
        let (surroundings, sources) = (checked.surroundings, checked.sources.clone());
        let facts = Facts::of(&checked);
        log::follow(checked.expected.log_level);
        let settings = Arc::new(checked.settings.clone());
        let snapshot = build(checked, &drain, None, Places::new(shares.upstreams))?;
        let mut trusting = Trusting::default();
        let facts = Facts {
            credentials: problems(&snapshot.credentials.problems()),
            trust: trusting.look(settings.trust.as_ref()),
            ..facts
        };
        let bound = bind(&settings).await?;
        say_cut(shares, wanted);
        let names = bound.dns.as_ref().map(|dns| Arc::clone(&dns.names));
        let gateway = Gateway::new(snapshot, ledger, metrics, drain, names);
        let condition = Arc::new(Condition {
            gateway: Arc::clone(&gateway),
            started_at: SystemTime::now(),
            listeners: bound.shown(),
            facts: Mutex::new(facts),
            connections: shares.connections,
            proving: settings.listeners.transparent.as_ref().map(|_| Arc::default()),
        });
        let (mark, before) = Mark::leave(socket(&settings));
        let running = Self { gateway, condition, reload: Arc::new(Notify::new()), mark };
        running.announce(&started(before));
        running.serve(bound, &settings)?;
        let condition = Arc::clone(&running.condition);
        let config = config.to_owned();
        let (owed, unread) = (None, Unread::default());
        running.look_each_second(Look {
            config,
            watched,
            surroundings,
            sources,
            trusting,
            condition,
            owed,
            unread,
        });
        Ok(running)
    }

    /// Where the listeners are, with the ports that were bound.
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.condition.listeners
    }

    /// Reads all files again and tries the redirect again, soon.
    pub(crate) fn reload(&self) {
        self.reload.notify_one();
        if let Some(proving) = &self.condition.proving {
            proving.ask();
        }
    }

    /// Stops accepting, lets what is under way end within the grace, flushes events. Answers whether all ended.
    pub(crate) async fn stop(&self) -> bool {
        let grace = self.gateway.snapshot().settings.grace;
        let drained = self.gateway.drain.shut_down(grace).await;
        if !drained {
            tracing::warn!(?grace, "exchanges were cut at the end of the grace");
        }
        self.announce("the gateway has stopped");
        self.mark.take();
        self.gateway.ledger.close(FLUSH).await && drained
    }

    fn serve(&self, bound: Bound, settings: &Settings) -> Result<(), Vec<Problem>> {
        let places = Arc::new(Semaphore::new(self.condition.connections));
        for (listener, way, _) in bound.ways {
            let accepting = listener::accept(Arc::clone(&self.gateway), listener, way, Arc::clone(&places));
            self.gateway.drain.spawn(accepting);
        }
        if let Some(proving) = &self.condition.proving {
            self.gateway.drain.spawn(Arc::clone(proving).run(Arc::clone(&self.gateway)));
        }
        if let Some(dns) = bound.dns {
            self.answer_names(dns);
        }
        let inspect: Arc<dyn Inspect> = self.condition.clone();
        admin::serve(bound.admin, Arc::clone(&inspect), &self.gateway.drain);
        if let Some(path) = socket(settings) {
            admin::serve_socket(path, inspect, &self.gateway.drain)
                .map_err(|error| vec![Problem::at("admin.socket", error.to_string())])?;
        }
        Ok(())
    }

    fn answer_names(&self, bound: BoundDns) {
        let Gateway { metrics, ledger, drain, .. } = &*self.gateway;
        let gateway = Arc::clone(&self.gateway);
        let judge = Box::new(move |name: &DnsName| gateway.snapshot().answers(name));
        let (metrics, ledger) = (Arc::clone(metrics), ledger.clone());
        let resolver = Resolver::new(bound.names, judge, search::domains(), metrics, ledger);
        dns::serve(&Arc::new(resolver), bound.sockets, drain);
    }

    /// The lifecycle in the events, with the evidence of the interception gate.
    fn announce(&self, what: &str) {
        let evidence = serde_json::to_string(&self.condition.facts().evidence).unwrap_or_default();
        let snapshot = self.gateway.snapshot();
        let reason = format!("{what}; policy {}; interception {evidence}", snapshot.policy().revision());
        let mut decision = Decision::of(Verdict::Allow);
        decision.reason = Some(reason.into());
        self.gateway.ledger.emit(Event::new(fresh_id(), Kind::Lifecycle, decision));
        self.show();
    }

    /// Metrics of what is in force.
    fn show(&self) {
        show(&self.condition);
    }

    fn look_each_second(&self, mut look: Look) {
        let reload = Arc::clone(&self.reload);
        let drain = self.gateway.drain.clone();
        self.gateway.drain.spawn(async move {
            let gateway = Arc::clone(&look.condition.gateway);
            loop {
                let tick = if gateway.snapshot().is_settling() { BRISK } else { TICK };
                let asked = tokio::select! {
                    () = tokio::time::sleep(tick) => false,
                    () = reload.notified() => true,
                    () = drain.stopping() => return,
                };
                look.once(asked);
            }
        });
    }
}

/// What is said of the start, and whether the gateway `before` ended as nobody meant it to.
fn started(before: Option<SystemTime>) -> String {
    let Some(before) = before else { return "the gateway has started".to_owned() };
    let since = timestamp(before);
    tracing::warn!(%since, "the gateway before this one ended without stopping; nothing passed meanwhile");
    format!("the gateway has started again: the one that started at {since} ended without stopping")
}

pub(super) fn show(condition: &Condition) {
    let snapshot = condition.gateway.snapshot();
    let revision = snapshot.policy().revision();
    let metrics = &condition.gateway.metrics;
    {
        let facts = condition.facts();
        metrics.policy_in_force(revision, facts.synced_at.unwrap_or(facts.loaded_at));
        metrics.policy_programmed(facts.expected.stamped.as_ref().map(|stamped| stamped == revision));
        metrics.policy_unknown(facts.is_unknown());
    }
    metrics.interception(match &snapshot.interception {
        Interception::On(_) => label::Interception::Required,
        Interception::Off => label::Interception::Off,
        Interception::Passthrough(_) => label::Interception::Passthrough,
    });
}

/// Keeps memory, which holds every key, out of core files and from other processes of the same user, an agent that
/// `postern run` started among them.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "a core file of this process would hold keys");
    }
}

pub(super) fn problems(found: &[Problem]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// Says where file descriptors are too few for the settings. A start that fails has one sentence to say, and not this.
fn say_cut(shares: Shares, wanted: usize) {
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

/// The snapshot of what was read.
pub(super) fn build(
    checked: Checked,
    drain: &Drain,
    before: Option<&Snapshot>,
    places: Places,
) -> Result<Snapshot, Vec<Problem>> {
    let Checked { mut settings, policy, gate, upstream_tls, .. } = checked;
    if let Some(before) = before {
        // They stay as they were bound, so that what is shown is true and the pool in use is never dialled.
        settings.listeners = before.settings.listeners.clone();
        settings.admin = before.settings.admin.clone();
    }
    let interception = match gate.interception {
        gate::Interception::On(authority) => {
            Interception::On(leaves(authority, settings.limits.leaf_cache, before))
        }
        gate::Interception::Off => Interception::Off,
        gate::Interception::Passthrough { reason } => Interception::Passthrough(reason),
    };
    let proxy_credentials =
        match settings.upstream.proxy.as_ref().and_then(|proxy| proxy.credentials_file.as_ref()) {
            Some(file) => Some(one_line(file).map_err(|problem| vec![problem])?),
            None => None,
        };
    let credentials = credentials(&policy, &settings, before.map(|before| &*before.credentials));
    let parts = snapshot::Parts {
        settings: Arc::new(settings),
        policy,
        interception,
        credentials,
        tls: Arc::new(upstream_tls),
        proxy_credentials,
        own: addresses::own().map_err(|problem| vec![problem])?,
        places,
        cluster: addresses::cluster(surroundings::variable),
    };
    let snapshot = Snapshot::new(parts, drain.clone());
    let snapshot = match before {
        Some(before) => snapshot.after(before),
        None => snapshot,
    };
    Ok(aged(snapshot))
}

/// A snapshot that is about to be in force, and denies everything from its first moment where its policy has expired.
pub(super) fn aged(snapshot: Snapshot) -> Snapshot {
    let now = SystemTime::now();
    let age = Age::at(now, now, snapshot.policy().synced_at());
    snapshot.set_expired(age.freshness == Freshness::Expired);
    snapshot
}

/// The values of a policy's credentials; those that cannot be read keep the value that they had `before`.
pub(super) fn credentials(policy: &Policy, settings: &Settings, before: Option<&Store>) -> Arc<Store> {
    let directory = settings.credentials.as_deref();
    let credentials = Store::load(policy.credentials(), directory, &surroundings::variable);
    Arc::new(match before {
        Some(before) => credentials.after(before),
        None => credentials,
    })
}

/// The leaves of a CA: those that are cached, where it is the one before.
fn leaves(authority: Arc<Authority>, capacity: usize, before: Option<&Snapshot>) -> Arc<Leaves> {
    match before.map(|before| &before.interception) {
        Some(Interception::On(leaves)) if leaves.authority().fingerprint() == authority.fingerprint() => {
            Arc::clone(leaves)
        }
        Some(Interception::On(leaves)) => Arc::new(leaves.succeeded_by(authority)),
        Some(Interception::Off | Interception::Passthrough(_)) | None => {
            Arc::new(Leaves::new(authority, capacity))
        }
    }
}

pub(super) fn one_line(file: &Path) -> Result<String, Problem> {
    let text = source::read_text(file, PASSWORD)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The status socket: the one that is configured, or the usual one where its directory is there.
fn socket(settings: &Settings) -> Option<&Path> {
    let usual = Path::new(STATUS_SOCKET);
    settings.admin.socket.as_deref().or_else(|| usual.parent().is_some_and(Path::is_dir).then_some(usual))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        Running::start(&config, checked.unwrap(), watched, Outlets::of_environment(Vec::new())).await.unwrap()
    }

    #[tokio::test]
    async fn a_policy_that_has_expired_denies_from_its_first_moment() {
        let place = tempfile::tempdir().unwrap();
        let running = started(place.path()).await;
        let before = running.gateway.snapshot();
        for (hours, is_expired) in [(25, true), (1, false)] {
            let (policy, ..) = check::policy(&before.settings.policy).unwrap();
            let values = credentials(&policy, &before.settings, None);
            let synced_at = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
            let snapshot = aged(before.with_policy(policy.with_synced_at(Some(synced_at)), values));
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
            running.condition.status()
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
