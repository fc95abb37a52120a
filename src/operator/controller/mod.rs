//! Keeps each namespace's objects as policies, pods and secrets ask for, and says in their status how far that is true.

use std::sync::Arc;

use kube::Client;

use super::settings::Settings;
use crate::drain::Drain;

/// Runs the controller until the process is told to stop; the caller leads.
pub async fn run(_client: Client, _settings: Arc<Settings>, _metrics: Arc<metrics::Metrics>, drain: Drain) {
    drain.stopping().await;
}

pub mod metrics;
