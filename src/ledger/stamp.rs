//! The clock and the randomness that events are stamped with.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use crate::event::{Id, Timestamp};

thread_local! {
    /// Random keys of this thread, and how often they were used.
    static SOURCE: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
}

/// A new id of an event, a connection or an exchange, made now.
///
/// Its random bits are SipHash of a counter under keys that the system drew for this thread: unique, cheap enough for
/// the data path and unable to fail. They are no secret.
pub fn fresh_id() -> Id {
    let (high, low) = SOURCE.with(|(keys, used)| {
        let n = used.get();
        used.set(n.wrapping_add(2));
        (keys.hash_one(n), keys.hash_one(n.wrapping_add(1)))
    });
    let mut random = [0; 10];
    random[..8].copy_from_slice(&high.to_be_bytes());
    random[8..].copy_from_slice(&low.to_be_bytes()[..2]);
    Id::new(now(), random)
}

/// The time now.
pub fn now() -> Timestamp {
    timestamp(SystemTime::now())
}

/// A time of the system's clock; before 1970 it is 1970.
pub fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_within_a_thread_and_between_threads() {
        let draw = || std::iter::repeat_with(fresh_id).take(10_000).collect::<Vec<_>>();
        let other = std::thread::spawn(draw);
        let mut ids: HashSet<_> = draw().into_iter().collect();
        ids.extend(other.join().unwrap());
        assert_eq!(ids.len(), 20_000);
    }

    #[test]
    fn an_id_holds_the_time_it_was_made() {
        let before = now();
        let id = fresh_id();
        assert!((before..=now()).contains(&id.time()));
    }
}
