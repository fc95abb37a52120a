//! Flow-control windows of HTTP/2: how much a peer may send before somebody reads it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::proxy::budget::{Exhausted, Reserved};

/// The total of all windows of one side beyond their least.
const TOTAL: usize = 64 << 20;
/// The smallest window of a connection: it cannot begin lower (RFC 9113, section 6.9.2).
const LEAST: usize = (64 << 10) - 1;
/// The window of an agent's connection, and of one to an upstream, while few are open: large enough for a path with much
/// bandwidth and latency.
pub(crate) const AGENT: usize = 2 << 20;
pub(crate) const UPSTREAM: usize = 4 << 20;

/// Flow-control windows of HTTP/2. A peer may fill its window before anybody reads, so that each window is promised
/// memory: the more are open, the smaller the next one is.
#[derive(Default)]
pub(crate) struct Windows(Arc<AtomicUsize>);

/// The window of one connection, until it is dropped.
pub(crate) struct Window {
    promised: Arc<AtomicUsize>,
    bytes: usize,
}

impl Windows {
    /// The window of another connection: a part of what is free, and `most` while few are open.
    pub(crate) fn open(&self, most: usize) -> Window {
        let free = TOTAL.saturating_sub(self.0.load(Ordering::Relaxed));
        let bytes = (free / (TOTAL / most)).max(LEAST);
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Window { promised: Arc::clone(&self.0), bytes }
    }
}

impl Window {
    /// The window of the connection.
    pub(crate) fn connection(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX >> 1)
    }

    /// The window of each of its streams.
    pub(crate) fn stream(&self) -> u32 {
        self.connection() / 2
    }

    /// The bound on a head, of which a half-sent one holds as much: lower where windows are small.
    pub(crate) fn head(&self, header_bytes: usize) -> u32 {
        let bound = header_bytes.min((self.bytes / 8).max(16 << 10));
        u32::try_from(bound).unwrap_or(u32::MAX)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.promised.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The unread bytes that the streams of one h2 connection may have sent, at most the window of the connection. Each
/// stream counts from its head to the end of its body.
pub(crate) struct Uploads {
    stream: usize,
    connection: usize,
    /// Locked at the beginning and the end of a body: the sum and its reservation change together.
    state: Mutex<(usize, Reserved)>,
}

/// The share of one stream's body.
pub(crate) struct Upload {
    uploads: Arc<Uploads>,
    bytes: usize,
}

impl Uploads {
    pub(crate) fn new(window: &Window, reserved: Reserved) -> Arc<Self> {
        let state = Mutex::new((0, reserved));
        Arc::new(Self { stream: window.stream() as usize, connection: window.bytes, state })
    }

    /// Reserves memory for a body, of so many bytes if its length is known.
    pub(crate) fn begin(self: &Arc<Self>, length: Option<u64>) -> Result<Upload, Exhausted> {
        let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
        let bytes = length.min(self.stream);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = state.0 + bytes;
        state.1.set(wanted.min(self.connection))?;
        state.0 = wanted;
        drop(state);
        Ok(Upload { uploads: Arc::clone(self), bytes })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut state = self.uploads.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 -= self.bytes;
        let wanted = state.0.min(self.uploads.connection);
        // To shrink never fails.
        let _ = state.1.set(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::budget::Budget;
    use crate::telemetry::Metrics;

    #[test]
    fn windows_shrink_with_their_number_and_grow_again() {
        let windows = Windows::default();
        let first = windows.open(AGENT);
        assert_eq!((first.connection(), first.stream()), (2 << 20, 1 << 20));
        assert_eq!(first.head(64 << 10), 64 << 10);
        let open: Vec<Window> = (0..999).map(|_| windows.open(AGENT)).collect();
        assert!(open.iter().take(9).all(|window| window.connection() > 1 << 20), "a few keep large ones");
        let last = open.last().unwrap();
        assert_eq!((last.connection(), last.head(64 << 10)), ((64 << 10) - 1, 16 << 10));
        let total: usize = open.iter().map(|window| window.bytes).sum();
        assert!(total < 128 << 20, "{total}");
        drop(open);
        assert!(windows.open(AGENT).connection() > 1 << 20);
    }

    #[test]
    fn the_bodies_of_a_connection_count_for_its_window_at_most() {
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let window = Windows::default().open(AGENT);
        let uploads = Uploads::new(&window, budget.open(3 << 20));
        let known = uploads.begin(Some(1000)).unwrap();
        assert_eq!(budget.held(), 1000);
        let unknown: Vec<Upload> = (0..5).map(|_| uploads.begin(None).unwrap()).collect();
        assert_eq!(budget.held(), 2 << 20);
        let other = Uploads::new(&window, budget.open(3 << 20));
        let _fits = other.begin(None).unwrap();
        assert!(other.begin(None).is_err(), "the limit is over all connections");
        drop((known, unknown));
        assert_eq!(budget.held(), 1 << 20);
    }
}
