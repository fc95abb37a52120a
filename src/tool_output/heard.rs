//! What a WebSocket has said of the calls whose results come alone: agents leave out what the provider has of an earlier
//! response, and so a result would be that of an unknown tool.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answered::AnsweredCalls;
use super::conversations::ConversationKey;
use super::request::{Places, names_evidence};
use crate::provider::adapter::Adapter;
use crate::provider::request::results::{self, KnownCall, ToolResults};
use crate::wire::json::{Document, Limits, Value};

/// What was heard on one WebSocket.
#[derive(Debug, Default)]
pub struct Heard(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How the conversation began.
    opening: Option<ConversationKey>,
    calls: AnsweredCalls,
}

impl Heard {
    /// Hears a message of the provider.
    pub fn hear(&self, adapter: &dyn Adapter, message: &[u8], limits: Limits, places: Option<&dyn Places>) {
        let Ok(document) = Document::parse(message, limits) else { return };
        for call in results::answered_calls(adapter, &document) {
            let Some(id) = call.id.as_deref() else { continue };
            let reads_evidence =
                places.is_some_and(|places| names_evidence(&call.name, call.input.map(Value::raw), places));
            self.lock().calls.add(id, (&call.name, call.namespace.as_deref()), reads_evidence);
        }
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<KnownCall> {
        self.lock().calls.to_vec()
    }

    /// How the conversation of a request began: a request that goes on with an earlier one does not say it again.
    pub(super) fn opening(&self, found: &ToolResults<'_>) -> ConversationKey {
        let mut state = self.lock();
        match state.opening {
            Some(opening) if found.is_chained => opening,
            Some(_) | None => {
                state.opening = found.has_opening.then_some(found.opening);
                found.opening
            }
        }
    }

    /// A poisoned lock is ignored: the state is consistent after each step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
