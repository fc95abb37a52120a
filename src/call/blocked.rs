//! Remembers which calls were blocked in conversations that a provider keeps (plain data): the provider waits for
//! their outputs, and refuses to go on without them.

use quick_cache::sync::{Cache, DefaultLifecycle, EntryAction, EntryResult};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};

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
pub struct BlockedCalls {
    calls: Cache<String, Vec<BlockedCall>>,
}

/// The most calls of one id that are remembered.
const MOST_CALLS: usize = 256;

/// The longest id or kind, in bytes.
const LONGEST: usize = 256;

impl BlockedCalls {
    /// Remembers calls under at most so many ids, and forgets the oldest first.
    pub fn new(most: usize) -> Self {
        // Most ids are asked for once, soon: room for what is asked for often would fill up and keep new ids out. Shards
        // would forget new ids where theirs is full.
        let mut options = OptionsBuilder::new();
        options.shards(1).hot_allocation(0.0).estimated_items_capacity(most).weight_capacity(most as u64);
        let with = |options| {
            Cache::with_options(
                options,
                UnitWeighter,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            )
        };
        Self { calls: options.build().map_or_else(|_| Cache::new(most), with) }
    }

    /// Remembers a call. Skips calls that are remembered already, and those with an id that no provider makes.
    pub fn remember(&self, scope: &str, call: BlockedCall) {
        if scope.is_empty() || [scope, &call.id, &call.kind].iter().any(|text| text.len() > LONGEST) {
            return;
        }
        // Two exchanges may belong to one conversation, so that a call is added under the lock of its entry.
        let entry = self.calls.entry(scope, None, |_, calls| {
            if calls.len() < MOST_CALLS && !calls.contains(&call) {
                calls.push(call.clone());
            }
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(vacant) = entry {
            // It fails only where the entry was removed meanwhile, which is to forget it.
            let _ = vacant.insert(vec![call]);
        }
    }

    /// Returns the calls that were blocked there.
    pub fn of(&self, scope: &str) -> Vec<BlockedCall> {
        self.calls.get(scope).unwrap_or_default()
    }

    /// Forgets the calls that were blocked there: the provider has the outputs now. Only for conversations, because
    /// another request may go on from the same response.
    pub fn forget(&self, scope: &str) {
        self.calls.remove(scope);
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
    fn new_calls_are_remembered_though_older_ones_fill_the_room() {
        let calls = BlockedCalls::new(4_096);
        for number in 0..20_000 {
            calls.remember(&number.to_string(), call("1"));
        }
        let remembered = |number: &u32| !calls.of(&number.to_string()).is_empty();
        assert_eq!((18_000..20_000).filter(remembered).count(), 2_000);
        assert!((0..10_000).filter(remembered).count() <= 1, "old ids take the room of new ones");
    }

    #[test]
    fn no_more_ids_are_remembered_than_there_is_room_for() {
        let calls = BlockedCalls::new(2);
        let scopes: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        scopes.iter().for_each(|scope| calls.remember(scope, call("1")));
        let remembered = scopes.iter().filter(|scope| !calls.of(scope).is_empty()).count();
        assert!((1..=2).contains(&remembered), "{remembered}");
    }

    #[test]
    fn nothing_that_is_kept_grows_without_a_bound() {
        let calls = BlockedCalls::new(1);
        for number in 0..1000 {
            calls.remember("a", call(&number.to_string()));
        }
        let long = "b".repeat(LONGEST + 1);
        calls.remember(&long, call("1"));
        calls.remember("b", BlockedCall { kind: long.clone(), ..call("1") });
        assert_eq!((calls.of("a").len(), calls.of("b").len(), calls.of(&long).len()), (MOST_CALLS, 0, 0));
    }
}
