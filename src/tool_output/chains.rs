//! Remembers answers that a provider keeps. A request that goes on from one names it and leaves out what was said before, with
//! the calls whose results it brings.

use super::answered::AnsweredCalls;
use super::conversations::ConversationKey;
use crate::call::CallNote;
use crate::call::recent::Recent;
use crate::name::host::Host;
use crate::provider::request::results::KnownCall;

/// How many answers and conversations are remembered.
const MOST: usize = 1_024;

/// How many bytes of calls are remembered of each.
const MOST_BYTES: usize = 4 << 10;

/// Answers, by their ids at a provider, and by those of the conversations that they belong to.
#[derive(Debug)]
pub struct Chains(Recent<Link>);

/// An answer, or the answers of a conversation.
#[derive(Debug, Clone)]
struct Link {
    /// How the conversation began.
    opening: ConversationKey,
    calls: AnsweredCalls,
}

impl Default for Chains {
    fn default() -> Self {
        Self(Recent::new(MOST))
    }
}

impl Chains {
    /// Adds to what an answer with this id, or the answers of a conversation, have called. Calls that do not reach the agent
    /// have no result.
    pub fn add(&self, (host, id): (&Host, &str), opening: ConversationKey, notes: &[CallNote]) {
        let reach_agent = |note: &&CallNote| !(note.inside || note.hosted || note.verdict.decision.denies());
        let first = || Link { opening, calls: AnsweredCalls::within(MOST_BYTES) };
        self.0.change(&key(host, id), first, |link| {
            for note in notes.iter().filter(reach_agent) {
                let tool = (note.name.as_str(), note.namespace.as_deref());
                link.calls.add(&note.id, tool, note.reads_evidence);
            }
        });
    }

    /// What a request leaves out that goes on from an answer: its calls, and how the conversation began. None where the answer
    /// is not known.
    pub(super) fn before(&self, host: &Host, id: &str) -> Option<(Vec<KnownCall>, ConversationKey)> {
        self.0.of(&key(host, id)).map(|link| (link.calls.to_vec(), link.opening))
    }
}

fn key(host: &Host, id: &str) -> String {
    format!("{host} {id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallVerdict;
    use crate::ledger::fresh_id;

    fn note(id: &str) -> CallNote {
        CallNote { id: id.to_owned(), ..CallNote::allowed(fresh_id(), "Bash") }
    }

    #[test]
    fn an_answer_has_the_calls_that_reach_the_agent_and_no_other_answer_has() {
        let (chains, host, other) = (
            Chains::default(),
            Host::parse("api.openai.com").unwrap(),
            Host::parse("other.example").unwrap(),
        );
        let notes = [
            CallNote { inside: true, ..note("inside") },
            CallNote { hosted: true, ..note("hosted") },
            CallNote { verdict: CallVerdict::builtin("bound", "too long"), ..note("denied") },
            note("call"),
        ];
        chains.add((&host, "resp_1"), [1; 32], &notes);
        let (calls, opening) = chains.before(&host, "resp_1").unwrap();
        assert_eq!(calls.iter().map(|call| &*call.id).collect::<Vec<_>>(), ["call"]);
        assert_eq!(opening, [1; 32]);
        assert!(chains.before(&host, "resp_2").is_none() && chains.before(&other, "resp_1").is_none());
    }

    #[test]
    fn an_answer_keeps_the_opening_that_it_was_first_seen_with() {
        let (chains, host) = (Chains::default(), Host::parse("api.openai.com").unwrap());
        chains.add((&host, "conv_1"), [1; 32], &[]);
        chains.add((&host, "conv_1"), [2; 32], &[note("call")]);
        let (calls, opening) = chains.before(&host, "conv_1").unwrap();
        assert_eq!((calls.len(), opening), (1, [1; 32]));
    }
}
