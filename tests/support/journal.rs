//! A list that other threads write and a test waits on: every wait has a deadline, none is a sleep.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// Entries in the order in which they came.
#[derive(Debug)]
pub(crate) struct Journal<T> {
    entries: Mutex<Vec<T>>,
    changed: Condvar,
}

impl<T: Clone> Journal<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()), changed: Condvar::new() }
    }

    /// Appends an entry and answers its index.
    pub(crate) fn push(&self, entry: T) -> usize {
        let mut entries = self.lock();
        entries.push(entry);
        self.changed.notify_all();
        entries.len() - 1
    }

    /// Changes an entry in place.
    pub(crate) fn edit(&self, index: usize, change: impl FnOnce(&mut T)) {
        change(&mut self.lock()[index]);
        self.changed.notify_all();
    }

    /// What has come so far.
    pub(crate) fn entries(&self) -> Vec<T> {
        self.lock().clone()
    }

    /// Waits for the first entry that `wanted` accepts; `what` names it where it does not come in time.
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&T) -> bool) -> T {
        self.wait_until(what, |entries| entries.iter().find(|entry| wanted(entry)).cloned())
    }

    /// Waits until `look` finds what it looks for in all that has come.
    pub(crate) fn wait_until<R>(&self, what: &str, look: impl Fn(&[T]) -> Option<R>) -> R {
        let deadline = Instant::now() + PATIENCE;
        let mut entries = self.lock();
        loop {
            if let Some(found) = look(&entries) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                left > Duration::ZERO,
                "{what} did not come within {PATIENCE:?} ({} came)",
                entries.len()
            );
            let waited = self.changed.wait_timeout(entries, left);
            entries = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        // A test that failed while it waited still shows what came.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks every 10 ms until there is an answer: for what can only be polled, such as another process's socket.
pub(crate) fn poll<R>(what: &str, mut ask: impl FnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
