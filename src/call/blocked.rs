//! Remembers which calls were blocked in conversations that a provider keeps (plain data): the provider waits for
//! their outputs, and refuses to go on without them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call that was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedCall {
    /// By which its output is known.
    pub id: String,
    /// What the dialect calls its kind of call.
    pub kind: String,
}

/// The calls that were blocked of late, by the id of the answer or the conversation that holds them; shared by all
/// exchanges.
#[derive(Debug)]
pub struct BlockedCalls {
    most: usize,
    remembered: Mutex<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    calls: HashMap<String, Vec<BlockedCall>>,
    /// The ids, those first that were remembered first.
    order: VecDeque<String>,
}

/// The most calls of one id that are remembered.
const MOST_CALLS: usize = 256;

/// The longest id, in bytes.
const LONGEST: usize = 256;

impl BlockedCalls {
    /// Remembers calls under at most so many ids; the oldest are forgotten first.
    pub fn new(most: usize) -> Self {
        Self { most, remembered: Mutex::default() }
    }

    /// Remembers a call. One that is remembered already, and one with an id that no provider makes, changes nothing.
    pub fn remember(&self, scope: &str, call: BlockedCall) {
        if scope.is_empty() || scope.len() > LONGEST || call.id.len() > LONGEST || self.most == 0 {
            return;
        }
        let Remembered { calls, order } = &mut *self.lock();
        if !calls.contains_key(scope) {
            if order.len() >= self.most
                && let Some(oldest) = order.pop_front()
            {
                calls.remove(&oldest);
            }
            order.push_back(scope.to_owned());
        }
        let calls = calls.entry(scope.to_owned()).or_default();
        if calls.len() < MOST_CALLS && !calls.contains(&call) {
            calls.push(call);
        }
    }

    /// What was blocked there.
    pub fn of(&self, scope: &str) -> Vec<BlockedCall> {
        self.lock().calls.get(scope).cloned().unwrap_or_default()
    }

    /// Forgets what was blocked there: the provider has the outputs now. A response can be gone on from again, so
    /// that this is for conversations alone.
    pub fn forget(&self, scope: &str) {
        let mut remembered = self.lock();
        if remembered.calls.remove(scope).is_some() {
            remembered.order.retain(|other| other != scope);
        }
    }

    /// What is remembered is whole after every step, so that a lock whose holder failed is as good as another.
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> BlockedCall {
        BlockedCall { id: id.to_owned(), kind: "function_call".to_owned() }
    }

    #[test]
    fn calls_are_known_by_what_holds_them_and_remembered_once() {
        let calls = BlockedCalls::new(2);
        calls.remember("a", call("1"));
        calls.remember("a", call("1"));
        calls.remember("a", call("2"));
        assert_eq!(calls.of("a"), [call("1"), call("2")]);
        assert_eq!(calls.of("b"), []);
        calls.forget("a");
        assert_eq!(calls.of("a"), []);
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let calls = BlockedCalls::new(2);
        for scope in ["a", "b", "c"] {
            calls.remember(scope, call("1"));
        }
        assert_eq!((calls.of("a").len(), calls.of("b").len(), calls.of("c").len()), (0, 1, 1));
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let calls = BlockedCalls::new(1);
        for number in 0..1000 {
            calls.remember("a", call(&number.to_string()));
        }
        calls.remember(&"b".repeat(1000), call("1"));
        assert_eq!(calls.of("a").len(), MOST_CALLS);
    }
}
