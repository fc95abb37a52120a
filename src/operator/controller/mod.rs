//! Keeps each namespace's objects as its policies, pods and Secrets require, and reports in the policies' statuses how far.
//!
//! `watch` sees what changes, `queue` orders the namespaces (`edit`: which changes may not wait), `reconcile` takes one:
//! `desired` computes what the namespace shall have (`publish` chooses among the `candidate`s, `previous` and `narrowed`
//! write them for older gateways by their `known_fields`, `packing` puts them into the ConfigMap), `credentials` copies the
//! keys that they refer to. Beside it `root` keeps the root CA, `stamp` makes kubelets refresh (`fair_queue`: whose pods
//! are next), `probe` asks gateways and `fleet` judges their answers, `announce` writes the statuses, `heartbeat` renews
//! `syncedAt`, `unguarded` reports pods without a gateway, `crashes` gateways that end.

mod announce;
mod candidate;
mod certificate;
mod crashes;
mod credentials;
mod desired;
mod edit;
mod fair_queue;
mod fleet;
mod guarded;
mod heartbeat;
mod known_fields;
pub mod metrics;
mod narrowed;
mod packing;
mod policies;
mod previous;
mod probe;
mod publish;
mod queue;
#[cfg(test)]
mod readiness_tests;
mod reconcile;
mod report;
#[cfg(test)]
mod rollout_tests;
mod root;
mod stamp;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unguarded;
#[cfg(test)]
mod unguarded_tests;
mod watch;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kube::Client;
use kube::runtime::events::{Recorder, Reporter};
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::settings::Settings;
use crate::drain::Drain;
use edit::Edit;
use fleet::PodSight;
use known_fields::KnownFields;
use metrics::OperatorMetrics;
use queue::NamespaceQueue;
use watch::ClusterObjects;

/// How many namespaces are worked on at once, and how many objects are written at once.
const AT_ONCE: usize = 8;
/// How long the dispatcher waits if nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// The state that the parts of the controller share.
struct Controller {
    client: Client,
    settings: Arc<Settings>,
    metrics: Arc<OperatorMetrics>,
    watched: ClusterObjects,
    readings: policies::Readings,
    root: root::KeptRoot,
    reports: report::Reports,
    /// The fields of policies that gateways of the last release know.
    last_release: &'static KnownFields,
    queue: Mutex<NamespaceQueue>,
    fleet: Mutex<HashMap<String, PodSight>>,
    stamps: stamp::Stamps,
    written: announce::WrittenStatuses,
    told: unguarded::Reported,
    crashes: crashes::Crashes,
    recorder: Recorder,
    /// The queue has changed.
    queued: Notify,
    /// The root was read.
    rooted: Notify,
    /// A namespace was published.
    published: Notify,
    /// Statuses may have to change.
    outdated: AtomicBool,
}

/// Runs the controller until the process is told to stop; the caller must be the leader. It spawns nothing, so dropping
/// it stops it. A turn that has begun when the process is told to stop is completed.
pub async fn run(client: Client, settings: Arc<Settings>, metrics: Arc<OperatorMetrics>, drain: Drain) {
    let (watched, writers) = watch::stores();
    let controller = Controller::new(client, settings, metrics, watched);
    let controller = &controller;
    let background = async {
        tokio::join!(
            Box::pin(controller.follow(writers)),
            Box::pin(controller.keep_root()),
            Box::pin(controller.keep_stamps()),
            Box::pin(controller.watch_fleet()),
            Box::pin(controller.keep_statuses()),
            Box::pin(controller.keep_fresh()),
            Box::pin(controller.watch_sources()),
            Box::pin(controller.watch_unguarded()),
            Box::pin(controller.watch_crashes()),
        );
    };
    tokio::select! {
        () = Box::pin(controller.work(&drain)) => {}
        () = background => {}
    }
}

impl Controller {
    fn new(
        client: Client,
        settings: Arc<Settings>,
        metrics: Arc<OperatorMetrics>,
        watched: ClusterObjects,
    ) -> Self {
        let reporter = Reporter { controller: "postern.dev/operator".to_owned(), instance: None };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
            settings,
            metrics,
            watched,
            readings: policies::Readings::default(),
            root: root::KeptRoot::default(),
            reports: report::Reports::default(),
            last_release: KnownFields::by_last_release(),
            queue: Mutex::default(),
            fleet: Mutex::default(),
            stamps: stamp::Stamps::default(),
            written: announce::WrittenStatuses::default(),
            told: unguarded::Reported::default(),
            crashes: crashes::Crashes::default(),
            queued: Notify::new(),
            rooted: Notify::new(),
            published: Notify::new(),
            outdated: AtomicBool::new(false),
        }
    }

    /// Reconciles namespaces until the process is told to stop, then completes the turns that have begun.
    async fn work(&self, drain: &Drain) {
        let mut stopping = pin!(drain.stopping());
        tokio::select! {
            () = &mut stopping => return,
            () = self.prepared() => {}
        }
        let mut turns = FuturesUnordered::new();
        loop {
            self.hurry();
            while turns.len() < AT_ONCE {
                let Some(namespace) = self.queue(|queue| queue.take(Instant::now())) else { break };
                turns.push(self.turn(namespace));
            }
            let due = self.queue(|queue| queue.next_due()).unwrap_or_else(|| Instant::now() + IDLE);
            let full = turns.len() == AT_ONCE;
            tokio::select! {
                () = &mut stopping => break,
                Some((namespace, turn)) = turns.next(), if !turns.is_empty() => {
                    self.queue(|queue| queue.end(&namespace, turn, Instant::now(), jitter()));
                }
                () = self.queued.notified() => {}
                () = tokio::time::sleep_until(due.into()), if !full => {}
            }
        }
        while turns.next().await.is_some() {}
    }

    /// Resolves once everything was listed and the root was read.
    async fn prepared(&self) {
        self.watched.ready().await;
        loop {
            let rooted = self.rooted.notified();
            if self.root.now().is_some() {
                break;
            }
            rooted.await;
        }
        self.touch_all();
    }

    /// Lets no namespace wait whose policies could have become stricter.
    fn hurry(&self) {
        for namespace in self.queue(|queue| queue.unjudged(Instant::now())) {
            let known = self.scene(&namespace).zip(self.reports.of(&namespace));
            if known.is_some_and(|(scene, report)| report.outline.judge(&scene.candidates) == Edit::MayDeny) {
                self.queue(|queue| queue.hurry(&namespace, Instant::now()));
            }
        }
    }

    fn queue<T>(&self, act: impl FnOnce(&mut NamespaceQueue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queues a namespace of which something has changed.
    fn touch(&self, namespace: &str) {
        self.queue(|queue| queue.touch(namespace, Instant::now()));
        self.queued.notify_one();
    }

    /// Notes that statuses may have to change.
    fn outdated(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    fn take_outdated(&self) -> bool {
        self.outdated.swap(false, Ordering::Relaxed)
    }
}

/// Ticks every `period`. A late tick delays those after it.
fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A random number between 0 and 1.
fn jitter() -> f64 {
    let mut byte = [0];
    // Without randomness all wait equally long, which is harmless.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
