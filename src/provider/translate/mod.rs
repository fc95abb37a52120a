//! Has one model answer what was asked of another: translations between dialects, and what is edited where none is
//! needed. Pure.
//!
//! Dialects meet in neutral pieces ([`crate::call::turn`]), so that each is written once. A request is read by the agent's
//! dialect ([`prompt`]) and written by the model's ([`ask`]); of an answer the model's dialect reads (`ReadAnswer`), the
//! agent's writes (`WriteAnswer`), and [`AnswerTranslation`] has the one match that says who is who. [`failure`] knows
//! what models say when they do not answer.

mod answer;
#[cfg(test)]
mod answer_tests;
mod context;
pub mod estimate;
pub mod failure;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod guard_tests;
mod host;
mod moved;
#[cfg(test)]
mod moved_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod recording_tests;
mod system_role;
#[cfg(test)]
mod testing;
mod watch;

pub use super::anthropic::marker::{Marked, marked};
pub use super::anthropic::moved::{MessagesServer, has_own_thinking, moved_messages};
pub use super::anthropic::prompt::prompt;
pub use super::anthropic::told::told;
pub use super::openai_chat::ask::{ChatRequest, ChatTerms, EffortTerms, Images, SentNames, ask};
pub use super::openai_chat::moved::moved_chat;
pub use super::openai_chat::transform::{EXIT_TOOL, Transform, Transforms, UnknownTransform};
pub use super::openai_responses::moved::moved_responses;
pub use answer::{AnswerReport, AnswerTerms, AnswerTranslation};
pub use failure::{AgentRoute, UpstreamError, agent_error, classify};
pub(in crate::provider) use failure::{error_event, failure_of_error};
pub use host::default_transforms;
pub use moved::{MovedBody, MovedTerms};
pub(in crate::provider) use moved::{Moving, exceeds, read_params, unsayable};
pub use watch::MovedAnswer;

use std::collections::BTreeMap;

use crate::call::turn::AnswerFailure;
use crate::call::turn::said::Said;

/// The bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLimits {
    /// One event of a stream, in bytes (`limits.sseEventBytes`).
    pub event_bytes: usize,
    /// The arguments of one call (`limits.toolInputBytes`).
    pub tool_input_bytes: usize,
    /// A whole answer, and all that waits of a stream together (`limits.decodedBodyBytes`).
    pub body_bytes: usize,
}

/// What an agent does not get of an answer, and what was mended in it: stable words, each with how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped(BTreeMap<&'static str, u64>);

impl Dropped {
    pub(in crate::provider) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// The words in order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, count)| (*what, *count))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, other: &Self) {
        for (what, count) in other.iter() {
            *self.0.entry(what).or_default() += count;
        }
    }
}

/// Takes the pieces of an answer.
pub(in crate::provider) trait Listen {
    /// Takes the next piece.
    ///
    /// # Errors
    /// If it cannot be said to the agent; nothing more may be said then.
    fn said(&mut self, said: Said<'_>) -> Result<(), AnswerFailure>;
}

/// Reads one answer in the model's dialect. How its body is cut never matters.
pub(in crate::provider) trait ReadAnswer: Send {
    /// Reads the next bytes of the body, and tells what they say.
    ///
    /// # Errors
    /// If the model's server reports an error, the answer cannot be read, or the listener cannot say it.
    fn write(&mut self, piece: &[u8], listener: &mut dyn Listen) -> Result<(), AnswerFailure>;

    /// The body has ended.
    ///
    /// # Errors
    /// As [`Self::write`]; also if the answer is not whole.
    fn finish(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure>;

    /// Whether the answer is whole: what follows is left out.
    fn is_over(&self) -> bool;

    /// How many bytes wait.
    fn held(&self) -> usize;

    /// What was left out or mended.
    fn dropped(&self) -> &Dropped;
}

/// Writes one answer in the agent's dialect.
pub(in crate::provider) trait WriteAnswer: Send {
    /// Says the next piece, and appends what the agent has of it.
    ///
    /// # Errors
    /// If it cannot be said; nothing of it was appended.
    fn say(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> Result<(), AnswerFailure>;

    /// Appends the answer's head, if that is possible before its end. From then on the answer is the agent's.
    fn commit(&mut self, out: &mut Vec<u8>);

    /// Appends a sign of life, if the answer has begun and not ended.
    fn ping(&mut self, out: &mut Vec<u8>);

    /// Whether something was appended: no other model can answer any more.
    fn is_committed(&self) -> bool;

    /// How many bytes wait.
    fn held(&self) -> usize;

    /// What was left out or mended.
    fn dropped(&self) -> &Dropped;

    /// Whether the agent has a call.
    fn has_called(&self) -> bool;

    /// Why the answer ended, in the agent's dialect; `None` before.
    fn stop_reason(&self) -> Option<&'static str>;
}
