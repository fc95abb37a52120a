//! The events of a page while more come: written by one thread, read by its server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::window::{BOUNDS, EventKey, EventWindow, SourceState};
use crate::event::Event;

/// What a page shows, shared by who writes and who serves.
pub(crate) struct LivePage {
    window: Mutex<EventWindow>,
    /// Counts changes from 1.
    changes: watch::Sender<u64>,
}

/// What an asker has seen: the number of the next event, and the change after which it was told.
pub(super) struct Seen {
    pub(super) from: u64,
    pub(super) change: u64,
}

impl LivePage {
    /// A page without events.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { window: Mutex::new(EventWindow::new(BOUNDS)), changes: watch::Sender::new(1) })
    }

    /// Adds an event with its line of JSON.
    pub(crate) fn push(&self, event: &Event, line: &str) {
        self.window().push(event, line);
        self.changed();
    }

    /// Changes what is said of the source.
    pub(crate) fn describe(&self, change: impl FnOnce(&mut SourceState)) {
        let mut window = self.window();
        let before = window.source.clone();
        change(&mut window.source);
        let is_changed = window.source != before;
        drop(window);
        if is_changed {
            self.changed();
        }
    }

    /// The rows from a number on, as soon as something is there that the asker has not seen; after `patience` without any.
    pub(super) async fn rows(&self, seen: &Seen, patience: Duration) -> serde_json::Result<Vec<u8>> {
        let mut changes = self.changes.subscribe();
        if *changes.borrow_and_update() == seen.change {
            // The answer without rows says that nothing came.
            let _ = tokio::time::timeout(patience, changes.changed()).await;
        }
        let change = *changes.borrow_and_update();
        self.window().rows(seen.from, change)
    }

    /// One event, whole.
    pub(super) fn event(&self, key: &EventKey) -> Option<serde_json::Result<Vec<u8>>> {
        self.window().event(key)
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// A poisoned lock is ignored: an event that was half taken in is at worst counted, and not shown.
    fn window(&self) -> MutexGuard<'_, EventWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
