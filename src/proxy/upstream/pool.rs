//! The pool of idle connections to upstreams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Origin, h1, h2};

/// Idle HTTP/1.1 connections that are kept for one key.
const IDLE_PER_KEY: usize = 64;
/// Idle HTTP/1.1 connections, and HTTP/2 connections, that are kept in all.
const IDLE: usize = 1_024;

/// The exchanges that may reuse a connection: those of one origin, and of one credential once it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) origin: Origin,
    pub(crate) user: User,
}

/// The sender of the requests on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// None yet: the connection was made to verify the upstream.
    Nobody,
    /// Requests that carry what the agent itself sent.
    Agent,
    /// Requests that carry this credential, by its rule's id.
    Credential(Arc<str>),
    /// Requests of the gateway to this provider of models, by its rule's id: its addresses are judged otherwise.
    Provider(Arc<str>),
}

/// The pool of one snapshot. A new snapshot begins with an empty one, so that no connection outlives the roots, the
/// addresses and the proxy under which it was made.
#[derive(Clone)]
pub(crate) struct Pool(Arc<PoolCell>);

struct PoolCell {
    idle_for: Duration,
    /// Locked twice per exchange, for a look-up in a map; never across an await.
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    idle: Idle<h1::Connection>,
    /// With the time of its last use. Exchanges on a dropped handle go on.
    multiplexed: HashMap<Key, (h2::Connection, Instant)>,
    closed: bool,
}

/// Connections that serve one exchange at a time.
struct Idle<C> {
    waiting: HashMap<Key, Vec<Waiting<C>>>,
    count: usize,
}

/// A connection that was given back, when that was, and how long it may wait: its peer may have said.
struct Waiting<C> {
    connection: C,
    since: Instant,
    idle_for: Duration,
}

impl<C> Waiting<C> {
    fn is_fresh(&self, idle_for: Duration) -> bool {
        self.since.elapsed() < idle_for.min(self.idle_for)
    }
}

impl Pool {
    /// `idle_for`: how long an unused connection is kept.
    pub(crate) fn new(idle_for: Duration) -> Self {
        Self(Arc::new(PoolCell { idle_for, state: Mutex::default() }))
    }

    /// Returns an idle HTTP/1.1 connection; the caller checks whether it still stands.
    pub(crate) fn take(&self, key: &Key) -> Option<h1::Connection> {
        self.state().idle.take(key, self.0.idle_for)
    }

    /// Keeps a connection for the next exchange with the same key.
    pub(crate) fn give_back(&self, key: Key, connection: h1::Connection) {
        let mut state = self.state();
        if !state.closed {
            let kept_for = connection.kept_for();
            state.idle.keep(key, (connection, kept_for), self.0.idle_for);
        }
    }

    /// Returns the HTTP/2 connection for the key, if one is open.
    pub(crate) fn shared(&self, key: &Key) -> Option<h2::Connection> {
        let mut state = self.state();
        // An unused connection becomes this user's.
        let (connection, _) = [key, &key.unused()]
            .into_iter()
            .find_map(|key| state.multiplexed.remove(key).filter(|(connection, _)| connection.is_open()))?;
        state.multiplexed.insert(key.clone(), (connection.clone(), Instant::now()));
        Some(connection)
    }

    /// Shares an HTTP/2 connection, unless another is open.
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

    /// Drops connections that were idle for too long. Called now and then.
    pub(crate) fn sweep(&self) {
        let mut state = self.state();
        state.sweep(self.0.idle_for);
    }

    /// Drops every idle connection, since others need the descriptors; exchanges in progress go on.
    pub(crate) fn make_room(&self) {
        let mut state = self.state();
        *state = PoolState { closed: state.closed, ..PoolState::default() };
    }

    /// Drops every idle connection and keeps none from now on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = PoolState { closed: true, ..PoolState::default() };
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PoolState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn unused(&self) -> Self {
        Self { origin: self.origin.clone(), user: User::Nobody }
    }
}

impl PoolState {
    fn sweep(&mut self, idle_for: Duration) {
        self.idle.sweep(idle_for);
        self.multiplexed.retain(|_, (connection, asked)| connection.is_open() && asked.elapsed() < idle_for);
    }
}

impl<C> Default for Idle<C> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), count: 0 }
    }
}

impl<C> Idle<C> {
    /// The connection that was given back last under this key, or one that nobody has used yet.
    fn take(&mut self, key: &Key, idle_for: Duration) -> Option<C> {
        self.take_youngest(key, idle_for).or_else(|| self.take_youngest(&key.unused(), idle_for))
    }

    fn take_youngest(&mut self, key: &Key, idle_for: Duration) -> Option<C> {
        let list = self.waiting.get_mut(key)?;
        let youngest = list.pop().filter(|waiting| waiting.is_fresh(idle_for));
        self.count -= 1;
        // If the youngest is too old, all are.
        if list.is_empty() || youngest.is_none() {
            self.count -= self.waiting.remove(key).map_or(0, |list| list.len());
        }
        youngest.map(|waiting| waiting.connection)
    }

    /// Keeps a connection, for no longer than its peer says, unless too many wait already.
    fn keep(&mut self, key: Key, (connection, kept_for): (C, Option<Duration>), idle_for: Duration) {
        if self.count >= IDLE {
            self.sweep(idle_for);
        }
        if self.count >= IDLE {
            return;
        }
        let list = self.waiting.entry(key).or_default();
        if list.len() < IDLE_PER_KEY {
            let kept_for = kept_for.unwrap_or(Duration::MAX);
            list.push(Waiting { connection, since: Instant::now(), idle_for: kept_for });
            self.count += 1;
        }
    }

    fn sweep(&mut self, idle_for: Duration) {
        self.waiting.retain(|_, list| {
            list.retain(|waiting| waiting.is_fresh(idle_for));
            !list.is_empty()
        });
        self.count = self.waiting.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::host::Host;

    const LONG: Duration = Duration::from_secs(3_600);

    fn key(host: &str, user: User) -> Key {
        let origin = Origin { tls: true, host: Host::parse(host).unwrap(), port: 443 };
        Key { origin, user }
    }

    #[test]
    fn the_youngest_is_taken_first_and_each_once() {
        let (mut idle, agent) = (Idle::default(), key("a.example", User::Agent));
        for connection in 0..3 {
            idle.keep(agent.clone(), (connection, None), LONG);
        }
        let taken: Vec<_> = (0..4).map(|_| idle.take(&agent, LONG)).collect();
        assert_eq!(taken, [Some(2), Some(1), Some(0), None]);
        assert_eq!((idle.count, idle.waiting.len()), (0, 0));
    }

    #[test]
    fn a_connection_serves_one_origin_and_whoever_used_it_first() {
        let mut idle = Idle::default();
        let credential = |id: &str| User::Credential(id.into());
        idle.keep(key("a.example", User::Nobody), ("verified", None), LONG);
        idle.keep(key("a.example", credential("one")), ("one's", None), LONG);
        assert_eq!(idle.take(&key("b.example", credential("one")), LONG), None);
        assert_eq!(idle.take(&key("a.example", User::Nobody), LONG), Some("verified"));
        idle.keep(key("a.example", User::Nobody), ("verified", None), LONG);
        assert_eq!(idle.take(&key("a.example", credential("other")), LONG), Some("verified"));
        assert_eq!(idle.take(&key("a.example", credential("other")), LONG), None);
        assert_eq!(idle.take(&key("a.example", credential("one")), LONG), Some("one's"));
    }

    #[test]
    fn what_waited_too_long_is_dropped() {
        let (mut idle, agent) = (Idle::default(), key("a.example", User::Agent));
        for connection in 0..3 {
            idle.keep(agent.clone(), (connection, None), LONG);
        }
        assert_eq!(idle.take(&agent, Duration::ZERO), None);
        assert_eq!((idle.count, idle.waiting.len()), (0, 0));
        idle.keep(agent, (4, None), LONG);
        idle.sweep(Duration::ZERO);
        assert_eq!((idle.count, idle.waiting.len()), (0, 0));
    }

    #[test]
    fn a_connection_waits_no_longer_than_its_peer_says() {
        let (mut idle, agent) = (Idle::default(), key("a.example", User::Agent));
        idle.keep(agent.clone(), ("long", Some(LONG)), LONG);
        assert_eq!(idle.take(&agent, LONG), Some("long"));
        idle.keep(agent.clone(), ("closing", Some(Duration::ZERO)), LONG);
        assert_eq!(idle.take(&agent, LONG), None);
        idle.keep(agent, ("closing", Some(Duration::ZERO)), LONG);
        idle.sweep(LONG);
        assert_eq!((idle.count, idle.waiting.len()), (0, 0));
    }

    #[test]
    fn what_waits_is_bounded_by_origin_and_in_all() {
        let mut idle = Idle::default();
        for host in 0..=IDLE / IDLE_PER_KEY {
            for connection in 0..=IDLE_PER_KEY {
                idle.keep(key(&format!("h{host}.example"), User::Agent), (connection, None), LONG);
            }
        }
        assert_eq!(idle.count, IDLE);
        assert!(idle.waiting.values().all(|list| list.len() <= IDLE_PER_KEY));
        // Where all that wait are too old, they make room.
        idle.keep(key("new.example", User::Agent), (0, None), Duration::ZERO);
        assert_eq!((idle.count, idle.waiting.len()), (1, 1));
    }
}
