//! Tries the redirect at start, every minute and when asked, and says so when the outcome changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::decision::{Decision, Verdict};
use crate::event::{Event, Kind};
use crate::ledger::fresh_id;
use crate::proxy::Gateway;
use crate::proxy::canary::Proof;

/// How often the redirect is tried while it holds, and while it does not: a failure, which is tried once more, is said
/// within a minute of what caused it.
const PERIOD: Duration = Duration::from_secs(50);
const AGAIN: Duration = Duration::from_secs(5);

/// The newest outcome; nothing before the first.
#[derive(Debug, Default)]
pub(super) struct Proving {
    newest: Mutex<Option<Proof>>,
    asked: Notify,
}

impl Proving {
    pub(super) fn newest(&self) -> Option<Proof> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tries again, now.
    pub(super) fn ask(&self) {
        self.asked.notify_one();
    }

    /// Tries until the process stops.
    pub(super) async fn run(self: Arc<Self>, gateway: Arc<Gateway>) {
        loop {
            let proof = tokio::select! {
                proof = prove(&gateway) => proof,
                () = gateway.drain.stopping() => return,
            };
            let wait = if proof.holds() { PERIOD } else { AGAIN };
            if self.newest().as_ref() != Some(&proof) {
                announce(&gateway, &proof);
            }
            *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(proof);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.asked.notified() => {}
                () = gateway.drain.stopping() => return,
            }
        }
    }
}

/// A failure is tried once more before it is believed: a pod that is not proven is deleted, and a canary that was only
/// late is no reason.
async fn prove(gateway: &Gateway) -> Proof {
    let first = gateway.canaries.prove().await;
    if first.holds() { first } else { gateway.canaries.prove().await }
}

fn announce(gateway: &Gateway, proof: &Proof) {
    gateway.metrics.interception_proven(proof.holds());
    let mut decision = Decision::of(if proof.holds() { Verdict::Allow } else { Verdict::Deny });
    let word = if proof.holds() { "proven" } else { "not proven" };
    decision.reason = Some(format!("interception is {word}: {proof}").into());
    if proof.holds() {
        tracing::info!(%proof, "interception is proven");
    } else {
        tracing::error!(%proof, "interception is not proven");
    }
    gateway.ledger.emit(Event::new(fresh_id(), Kind::Lifecycle, decision));
}
