//! How long nothing may be said: by whoever sends a body, and to an agent while something is held.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How long an agent hears nothing while something is held (design section 6.4).
pub(crate) const HUNGRY: Duration = Duration::from_secs(15);

/// How long a stream may say nothing. Costs a clock reading a chunk, and a timer only while something is waited for.
pub(crate) struct Silence {
    limit: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: Instant::now(), timer: None }
    }

    /// Something was said.
    pub(crate) fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Whether nothing was said for longer than the limit.
    pub(crate) fn poll_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        if self.limit == Duration::MAX {
            return false;
        }
        let due = self.since + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return true;
            }
            timer.as_mut().reset(due);
        }
        false
    }
}

/// When the agent last heard something. Costs nothing while nothing is held.
pub(crate) struct Watchdog {
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watchdog {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, timer: None }
    }

    /// The agent has heard something.
    pub(crate) fn fed(&mut self) {
        self.timer = None;
    }

    /// Whether the agent has heard nothing for too long.
    pub(crate) fn poll_hungry(&mut self, cx: &mut Context<'_>) -> bool {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        timer.as_mut().poll(cx).is_ready()
    }
}
