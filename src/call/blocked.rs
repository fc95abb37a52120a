//! Remembers which calls were blocked in conversations that a provider keeps (plain data): the provider waits for
//! their outputs, and refuses to go on without them.

use std::collections::{HashMap, VecDeque};

/// A call that was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedCall {
    /// By which its output is known.
    pub id: String,
    /// What the dialect calls its kind of call.
    pub kind: String,
}

/// The calls that were blocked of late, by the id of the answer or the conversation that holds them.
#[derive(Debug)]
pub struct BlockedCalls {
    most: usize,
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
        Self { most, calls: HashMap::new(), order: VecDeque::new() }
    }

    /// Remembers a call. One that is remembered already, and one with an id that no provider makes, changes nothing.
    pub fn remember(&mut self, scope: &str, call: BlockedCall) {
        if scope.is_empty() || scope.len() > LONGEST || call.id.len() > LONGEST || self.most == 0 {
            return;
        }
        if !self.calls.contains_key(scope) {
            if self.order.len() >= self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.calls.remove(&oldest);
            }
            self.order.push_back(scope.to_owned());
        }
        let calls = self.calls.entry(scope.to_owned()).or_default();
        if calls.len() < MOST_CALLS && !calls.contains(&call) {
            calls.push(call);
        }
    }

    /// What was blocked there.
    pub fn of(&self, scope: &str) -> &[BlockedCall] {
        self.calls.get(scope).map_or(&[], Vec::as_slice)
    }

    /// Forgets what was blocked there: the provider has the outputs now. A response can be gone on from again, so
    /// that this is for conversations alone.
    pub fn forget(&mut self, scope: &str) {
        if self.calls.remove(scope).is_some() {
            self.order.retain(|other| other != scope);
        }
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
        let mut calls = BlockedCalls::new(2);
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
        let mut calls = BlockedCalls::new(2);
        for scope in ["a", "b", "c"] {
            calls.remember(scope, call("1"));
        }
        assert_eq!((calls.of("a").len(), calls.of("b").len(), calls.of("c").len()), (0, 1, 1));
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let mut calls = BlockedCalls::new(1);
        for number in 0..1000 {
            calls.remember("a", call(&number.to_string()));
        }
        calls.remember(&"b".repeat(1000), call("1"));
        assert_eq!(calls.of("a").len(), MOST_CALLS);
    }
}
