//! Limits of silence: from the sender of a body, and towards an agent while something is held.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The longest silence towards an agent while something is held (design section 6.4).
pub(crate) const HUNGRY: Duration = Duration::from_secs(15);

/// The longest silence of a stream. It costs one clock reading per chunk, and a timer only while a frame is pending.
pub(crate) struct Silence {
    limit: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: Instant::now(), timer: None }
    }

    /// Begins anew: a frame has come.
    pub(crate) fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Whether the silence is longer than the limit.
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

/// The time since the agent last received something. It costs nothing while nothing is held.
pub(crate) struct Watchdog {
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watchdog {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, timer: None }
    }

    /// Begins anew: the agent has received something.
    pub(crate) fn fed(&mut self) {
        self.timer = None;
    }

    /// Whether the agent has received nothing for too long.
    pub(crate) fn poll_hungry(&mut self, cx: &mut Context<'_>) -> bool {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        timer.as_mut().poll(cx).is_ready()
    }
}
