//! Remembers answers that a provider keeps: a request that goes on from one names it, and leaves out all that was said before,
//! the calls too whose results it brings.

use super::answered::AnsweredCalls;
use super::conversations::ConversationKey;
use crate::call::CallNote;
use crate::call::recent::Recent;
use crate::provider::request::results::{self, KnownCall};
use crate::wire::json::Value;

/// How many answers are remembered.
const MOST: usize = 1_024;

/// Answers, by their ids and by those of the conversations that they belong to.
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
    /// Adds to what an answer with these ids has called. Calls that do not reach the agent have no result.
    pub fn add<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
        opening: ConversationKey,
        notes: &[CallNote],
    ) {
        let reach_agent = |note: &&CallNote| !(note.inside || note.hosted || note.verdict.decision.denies());
        for id in ids {
            let first = || Link { opening, calls: AnsweredCalls::default() };
            self.0.change(id, first, |link| {
                for note in notes.iter().filter(reach_agent) {
                    let tool = (note.name.as_str(), note.namespace.as_deref());
                    link.calls.add(&note.id, tool, note.reads_evidence);
                }
            });
        }
    }

    /// What a request leaves out that goes on from an answer: its calls, and how the conversation began.
    pub(super) fn before(&self, body: Value<'_>) -> (Vec<KnownCall>, Option<ConversationKey>) {
        let link = results::goes_on_from(body).and_then(|id| self.0.of(&id));
        link.map_or_else(Default::default, |link| (link.calls.to_vec(), Some(link.opening)))
    }
}
