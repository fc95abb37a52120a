//! Upstream connections that wait for their next exchange.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Origin, h1, h2};

/// Idle HTTP/1.1 connections that are kept for one key.
const IDLE_PER_KEY: usize = 64;
/// Idle HTTP/1.1 connections, and HTTP/2 connections, that are kept in all.
const IDLE: usize = 1_024;

/// What a connection may be reused for: one origin, and one credential once one has been sent on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) origin: Origin,
    pub(crate) user: User,
}

/// On whose behalf a connection has spoken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// Nobody's yet: it was made to verify the upstream.
    Nobody,
    /// Requests that carry what the agent itself sent.
    Agent,
    /// Requests that carry this credential, by its rule's id.
    Credential(Arc<str>),
}

/// The pool of one snapshot. A new snapshot begins with an empty one, so that no connection outlives the roots, the
/// addresses and the proxy under which it was made.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    idle_for: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: HashMap<Key, Vec<(h1::Connection, Instant)>>,
    count: usize,
    /// With when it was last asked for: what still flows on one that is dropped flows on.
    multiplexed: HashMap<Key, (h2::Connection, Instant)>,
    closed: bool,
}

impl Pool {
    /// `idle_for`: how long an unused connection is kept.
    pub(crate) fn new(idle_for: Duration) -> Self {
        Self(Arc::new(Shared { idle_for, state: Mutex::default() }))
    }

    /// An HTTP/1.1 connection that was idle; whether it still stands is for the caller to see.
    pub(crate) fn take(&self, key: &Key) -> Option<h1::Connection> {
        let mut state = self.state();
        state.take(key, self.0.idle_for).or_else(|| state.take(&key.unused(), self.0.idle_for))
    }

    /// Keeps a connection for the next exchange with the same key.
    pub(crate) fn give_back(&self, key: Key, connection: h1::Connection) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        if state.count >= IDLE {
            state.sweep(self.0.idle_for);
        }
        let full = state.count >= IDLE;
        let list = state.idle.entry(key).or_default();
        if !full && list.len() < IDLE_PER_KEY {
            list.push((connection, Instant::now()));
            state.count += 1;
        }
    }

    /// The HTTP/2 connection for the key, if one stands.
    pub(crate) fn shared(&self, key: &Key) -> Option<h2::Connection> {
        let mut state = self.state();
        // One that nobody has used yet becomes this user's.
        let (connection, _) = [key, &key.unused()]
            .into_iter()
            .find_map(|key| state.multiplexed.remove(key).filter(|(connection, _)| connection.is_open()))?;
        state.multiplexed.insert(key.clone(), (connection.clone(), Instant::now()));
        Some(connection)
    }

    /// Shares an HTTP/2 connection, unless another one came first.
    pub(crate) fn share(&self, key: Key, connection: h2::Connection) {
        let mut state = self.state();
        if state.multiplexed.len() >= IDLE {
            state.sweep(self.0.idle_for);
        }
        let is_taken = state.multiplexed.get(&key).is_some_and(|(first, _)| first.is_open());
        if !state.closed && !is_taken && state.multiplexed.len() < IDLE {
            state.multiplexed.insert(key, (connection, Instant::now()));
        }
    }

    /// Drops what has been idle for too long. Called now and then.
    pub(crate) fn sweep(&self) {
        let mut state = self.state();
        state.sweep(self.0.idle_for);
    }

    /// Drops every connection that waits, whose descriptors others need; what flows flows on.
    pub(crate) fn make_room(&self) {
        let mut state = self.state();
        *state = State { closed: state.closed, ..State::default() };
    }

    /// Drops every idle connection and keeps none from now on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State { closed: true, ..State::default() };
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn unused(&self) -> Self {
        Self { origin: self.origin.clone(), user: User::Nobody }
    }
}

impl State {
    fn take(&mut self, key: &Key, idle_for: Duration) -> Option<h1::Connection> {
        let list = self.idle.get_mut(key)?;
        let found = list.pop();
        let rest = list.len();
        if found.is_some() {
            self.count -= 1;
        }
        if rest == 0 {
            self.idle.remove(key);
        }
        // The last one in is the youngest: if it is too old, all are.
        match found {
            Some((connection, since)) if since.elapsed() < idle_for => Some(connection),
            Some(_) => {
                self.count -= self.idle.remove(key).map_or(0, |list| list.len());
                None
            }
            None => None,
        }
    }

    fn sweep(&mut self, idle_for: Duration) {
        self.idle.retain(|_, list| {
            list.retain(|(_, since)| since.elapsed() < idle_for);
            !list.is_empty()
        });
        self.count = self.idle.values().map(Vec::len).sum();
        self.multiplexed.retain(|_, (connection, asked)| connection.is_open() && asked.elapsed() < idle_for);
    }
}
