//! Remembers which calls were blocked in conversations that a provider keeps (plain data): the provider waits for
//! their outputs, and refuses to go on without them.

use super::recent::{LONGEST, Recent};

/// A call that was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedCall {
    /// The id by which its output refers to it.
    pub id: String,
    /// What the dialect calls its kind of call.
    pub kind: String,
}

/// The calls that were blocked lately, by the id of the answer or the conversation that holds them; shared by all
/// exchanges. Both the ids and what is kept of each are bounded.
#[derive(Debug)]
pub struct BlockedCalls(Recent<Vec<BlockedCall>>);

/// The most calls of one id that are remembered.
const MOST_CALLS: usize = 256;

impl BlockedCalls {
    /// Remembers calls under at most so many ids, and forgets the oldest first.
    pub fn new(most: usize) -> Self {
        Self(Recent::new(most))
    }

    /// Remembers a call. Skips calls that are remembered already, and those with an id that no provider makes.
    pub fn remember(&self, scope: &str, call: &BlockedCall) {
        if call.id.len() > LONGEST || call.kind.len() > LONGEST {
            return;
        }
        self.0.change(scope, Vec::new, |calls| {
            if calls.len() < MOST_CALLS && !calls.contains(call) {
                calls.push(call.clone());
            }
        });
    }

    /// Returns the calls that were blocked there.
    pub fn of(&self, scope: &str) -> Vec<BlockedCall> {
        self.0.of(scope).unwrap_or_default()
    }

    /// Forgets the calls that were blocked there: the provider has the outputs now. Only for conversations, because
    /// another request may go on from the same response.
    pub fn forget(&self, scope: &str) {
        self.0.forget(scope);
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
        calls.remember("a", &call("1"));
        calls.remember("a", &call("1"));
        calls.remember("a", &call("2"));
        assert_eq!(calls.of("a"), [call("1"), call("2")]);
        assert_eq!(calls.of("b"), []);
        calls.forget("a");
        assert_eq!(calls.of("a"), []);
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let calls = BlockedCalls::new(1);
        for number in 0..1000 {
            calls.remember("a", &call(&number.to_string()));
        }
        let long = "b".repeat(LONGEST + 1);
        calls.remember(&long, &call("1"));
        calls.remember("b", &BlockedCall { kind: long.clone(), ..call("1") });
        assert_eq!((calls.of("a").len(), calls.of("b").len(), calls.of(&long).len()), (MOST_CALLS, 0, 0));
    }
}
