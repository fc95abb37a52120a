//! What a WebSocket has said of the calls whose results come alone: agents leave out what the provider has of an earlier
//! response, and so a result would be that of an unknown tool.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answered::AnsweredCalls;
use super::conversations::ConversationKey;
use super::request::{Places, reads_evidence};
use crate::provider::adapter::Adapter;
use crate::provider::request::results::{self, KnownCall};
use crate::wire::json::{Document, Limits};

/// How many bytes of calls are remembered.
const MOST_BYTES: usize = 32 << 10;

/// What was heard on one WebSocket.
#[derive(Debug)]
pub struct Heard(Mutex<State>);

#[derive(Debug)]
struct State {
    /// How the conversation began.
    opening: Option<ConversationKey>,
    calls: AnsweredCalls,
}

impl Default for Heard {
    fn default() -> Self {
        Self(Mutex::new(State { opening: None, calls: AnsweredCalls::within(MOST_BYTES) }))
    }
}

impl Heard {
    /// Hears a message of the provider.
    pub fn hear(&self, adapter: &dyn Adapter, message: &[u8], limits: Limits, places: Option<&dyn Places>) {
        let Ok(document) = Document::parse(message, limits) else { return };
        for call in results::answered_calls(adapter, &document) {
            let Some(id) = call.id.as_deref() else { continue };
            let reads_evidence = places.is_some_and(|places| reads_evidence(&call, places));
            self.lock().calls.add(id, (&call.name, call.namespace.as_deref()), reads_evidence);
        }
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<KnownCall> {
        self.lock().calls.to_vec()
    }

    /// How the conversation began, where that was said here.
    pub(super) fn opening(&self) -> Option<ConversationKey> {
        self.lock().opening
    }

    /// Remembers how the conversation begins; none where nobody says anything.
    pub(super) fn begin(&self, opening: Option<ConversationKey>) {
        self.lock().opening = opening;
    }

    /// A poisoned lock is ignored: the state is consistent after each step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
