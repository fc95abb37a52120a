//! Keeps each namespace's objects as policies, pods and secrets ask for, and says in their status how far that is true.
//!
//! `watch` hears what changes, `queue` says whose turn it is (`edit`: what may not wait), `reconcile` takes it:
//! `chosen` computes what the namespace is to have (`publish` chooses documents, `previous` and `narrowed` those for older
//! gateways, `packing` lays them into the ConfigMap), `credentials` copies what they refer to. Beside it
//! `root` keeps the root CA, `stamp` makes kubelets refresh (`rota`: whose pods are next), `probe` asks gateways, `fleet` judges what they say,
//! `announce` writes the statuses, `heartbeat` vouches. `unguarded` tells of pods without a gateway, `crashes` of gateways that end.

mod announce;
mod certificate;
mod chosen;
mod crashes;
mod credentials;
mod edit;
mod fleet;
mod guarded;
mod heartbeat;
pub mod metrics;
mod narrowed;
mod objects;
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
mod rota;
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

use super::settings::Settings;
use crate::drain::Drain;
use edit::Edit;
use fleet::Sight;
use metrics::Metrics;
use previous::Known;
use queue::Queue;
use watch::Watched;

/// How many namespaces are worked on at once, and how many objects are written at once.
const AT_ONCE: usize = 8;
/// How long the dispatcher waits where nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// What the parts of the controller share.
struct Controller {
    client: Client,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
    watched: Watched,
    readings: policies::Readings,
    root: root::KeptRoot,
    reports: report::Reports,
    /// What gateways of the last release know of policies.
    last_release: &'static Known,
    queue: Mutex<Queue>,
    fleet: Mutex<HashMap<String, Sight>>,
    stamps: stamp::Stamps,
    written: announce::Written,
    told: unguarded::Told,
    crashes: crashes::Crashes,
    recorder: Recorder,
    /// The queue has changed.
    queued: Notify,
    /// The root was read.
    rooted: Notify,
    /// A namespace was published.
    published: Notify,
    /// Something that statuses speak of has changed.
    outdated: AtomicBool,
}

/// Runs the controller until the process is told to stop; the caller leads. It spawns nothing: where the caller drops
/// it, it has stopped. What is being written when the process is told to stop is written to its end.
pub async fn run(client: Client, settings: Arc<Settings>, metrics: Arc<Metrics>, drain: Drain) {
    let (watched, writers) = watch::stores();
    let controller = Controller::new(client, settings, metrics, watched);
    let controller = &controller;
    let for_ever = async {
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
        () = for_ever => {}
    }
}

impl Controller {
    fn new(client: Client, settings: Arc<Settings>, metrics: Arc<Metrics>, watched: Watched) -> Self {
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
            last_release: Known::by_last_release(),
            queue: Mutex::default(),
            fleet: Mutex::default(),
            stamps: stamp::Stamps::default(),
            written: announce::Written::default(),
            told: unguarded::Told::default(),
            crashes: crashes::Crashes::default(),
            queued: Notify::new(),
            rooted: Notify::new(),
            published: Notify::new(),
            outdated: AtomicBool::new(false),
        }
    }

    /// Takes turns until the process is told to stop, then ends those that have begun.
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

    /// Resolves when everything was listed and the root was looked for.
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

    /// Has nobody wait whose policies could have become stricter.
    fn hurry(&self) {
        for namespace in self.queue(|queue| queue.unjudged(Instant::now())) {
            let known = self.scene(&namespace).zip(self.reports.of(&namespace));
            if known.is_some_and(|(scene, report)| report.outline.judge(&scene.candidates) == Edit::MayDeny) {
                self.queue(|queue| queue.hurry(&namespace, Instant::now()));
            }
        }
    }

    fn queue<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something of a namespace has changed.
    fn touch(&self, namespace: &str) {
        self.queue(|queue| queue.touch(namespace, Instant::now()));
        self.queued.notify_one();
    }

    /// Something that statuses speak of has changed.
    fn outdated(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    fn take_outdated(&self) -> bool {
        self.outdated.swap(false, Ordering::Relaxed)
    }
}

/// Between 0 and 1.
fn jitter() -> f64 {
    let mut byte = [0];
    // Without randomness everybody waits the same time, which does.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
