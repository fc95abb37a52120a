//! Tasks that a shutdown waits for.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long what is cut may take to end.
const CUTTING: Duration = Duration::from_secs(1);

/// A handle to every task of the process: who is told to stop, and who is waited for.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    tracker: TaskTracker,
    stopping: CancellationToken,
    aborting: CancellationToken,
}

impl Drain {
    /// Spawns a task that a shutdown waits for.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(task);
    }

    /// Spawns a task that ends by itself with what it serves, and that no shutdown waits for.
    #[expect(clippy::disallowed_methods, reason = "the one place that may")]
    pub fn detach<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(task);
    }

    /// Resolves when the process has been told to stop: accept nothing new, end what can end.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Whether the process has been told to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Resolves when the grace is over: what has not ended by itself is cut.
    pub async fn aborting(&self) {
        self.aborting.cancelled().await;
    }

    /// Tells every task to stop and waits until all have, at most `grace`; then what is left is cut. Answers whether
    /// all ended in time.
    pub async fn shut_down(&self, grace: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        let in_time = tokio::time::timeout(grace, self.tracker.wait()).await.is_ok();
        self.aborting.cancel();
        // What is cut says so in its last event.
        let _ = tokio::time::timeout(CUTTING, self.tracker.wait()).await;
        in_time
    }
}
