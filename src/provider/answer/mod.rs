//! Guards answers: reads them in their dialect, asks about every tool call, and replaces calls that are denied.
//!
//! [`Guard`] cuts a body into parts and gives each, parsed, to the dialect's [`Transcript`], which holds undecided
//! parts, asks the [`Gate`] about calls, and puts the parts that go on into [`Out`]. The same transcript reads streams
//! and whole answers, so that both get the same verdicts.

mod blocks;
mod call;
mod command;
mod decide;
mod delta_template;
#[cfg(test)]
mod delta_template_tests;
mod encode;
mod framing;
mod gate;
#[cfg(test)]
mod gate_tests;
mod guard;
pub(in crate::provider) mod member;
mod nested;
mod note;
mod part;
mod refusal;
mod script;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod typed;
mod unread;

use std::sync::Arc;

pub(in crate::provider) use blocks::{BlockDialect, BlockKind, BlockStart, Blocks, MessageCalls};
pub use call::{CallHead, CallOutcome, InputForm, PendingCall, Phase};
pub use decide::{AskedCall, ask};
pub use gate::Gate;
pub use guard::Guard;
pub use part::{AnswerPart, Out, Received, StreamEvent};
pub use typed::TypedLines;
pub(in crate::provider) use unread::may_hold_call;

use crate::call::{Inputs, Judge};
use crate::id::Id;
use crate::provider::kind::Offered;
use crate::wire::json::{self, Document, Value};

/// Reads one answer in one dialect.
pub trait Transcript: Send {
    /// Takes the next part of a stream. Parts that go on are put into `out`; others are held until a call is decided.
    ///
    /// # Errors
    /// If the stream cannot be understood, or must not go on.
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer>;

    /// Returns the values of the last part on which nothing depends: with any other string, or whole number, in their
    /// places the part would go on just so and change no state. None if the part, or a second one like it, has any
    /// other effect.
    ///
    /// Parts that differ in these values alone are not parsed: [`Self::again`] reports them.
    fn free<'d>(&mut self, _event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        Vec::new()
    }

    /// Takes note of parts that went on unparsed: they differ from the last in the values of [`Self::free`] alone.
    /// `numbers` are the numbers among these values in the last such part, in the order of the document.
    fn again(&mut self, _numbers: &[u64], _gate: &mut Gate) {}

    /// Decides or gives up pending calls: the stream has ended.
    ///
    /// # Errors
    /// If the answer is not complete without what was held.
    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer>;

    /// Reads an answer that came whole. Returns the edited body; none if the original goes on.
    ///
    /// # Errors
    /// If it cannot be understood, or must not go on.
    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer>;

    /// Whether a call is pending, held or not, so that the next part may belong to it.
    fn is_in_call(&self) -> bool;

    /// Whether a part that cannot be read may hold a call.
    fn suspects(&self, unread: &[u8]) -> bool {
        may_hold_call(unread)
    }

    /// Takes note that a part went on which could not be read: the start or the end of something that is no call.
    fn skipped(&mut self) {}

    /// How many bytes are held.
    fn held(&self) -> usize;

    /// Returns what the client receives while parts are held, so that it does not give up.
    fn keep_alive(&self) -> KeepAlive;

    /// Writes the dialect's error for a stream that cannot go on, the last parts that the client reads. `message` is for
    /// people.
    fn broken(&mut self, message: &str, out: &mut Out);
}

/// What a client may receive while parts are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepAlive {
    /// Nothing: the dialect's clients lose events over anything that is no event.
    Nothing,
    /// A comment between two events (or a ping frame, of a WebSocket).
    Comment,
    /// An event of this name with this JSON.
    Event(&'static str, &'static str),
    /// A comment, and each minute this event instead: some clients give up after minutes without an event, and ignore
    /// comments.
    CommentOrEvent(&'static str, String),
}

/// Why an answer does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BrokenAnswer {
    /// The built-in rule: `unparseable`, `bound`.
    pub rule: &'static str,
    /// Text that the agent may read.
    pub reason: String,
    /// Whether `failurePolicy: Open` lets the part pass as it came (design section 6.6).
    pub forgivable: bool,
    /// The id of the event that ends the answer, if the agent was told one.
    pub event: Option<Id>,
}

impl BrokenAnswer {
    /// Malformed JSON outside a tool call, or a broken grammar of the stream.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self { rule: "unparseable", reason: reason.into(), forgivable: true, event: None }
    }

    /// A call that has more than one reading: parts that contradict each other, duplicate keys.
    pub fn ambiguous(reason: impl Into<String>) -> Self {
        Self { rule: "unparseable", reason: reason.into(), forgivable: false, event: None }
    }

    /// More than a bound allows.
    pub fn bound(reason: impl Into<String>) -> Self {
        Self { rule: "bound", reason: reason.into(), forgivable: false, event: None }
    }
}

/// What a guard needs to know of the request and the policy.
#[derive(Clone)]
pub struct GuardSettings {
    pub judge: Arc<dyn Judge>,
    pub failure: FailurePolicy,
    pub limits: GuardLimits,
    /// How much of the inputs of calls is noted.
    pub inputs: Inputs,
    /// Whether the request offers a tool of kind Write.
    pub writes: bool,
    /// The definitions in the request of tools that the catalogue does not know.
    pub offered: Offered,
    /// What the client calls its conversation; empty where it does not.
    pub conversation: String,
    /// What calls of this and other answers typed into programs that run.
    pub typed: TypedLines,
    /// Makes the id of an event, which refusals name.
    pub event_id: fn() -> Id,
    /// Where the agent may ask about an event, before its id; none where it may not.
    pub ask_at: Option<&'static str>,
    /// Tells whether a call reads evidence; none where no results are shortened.
    pub reads_evidence: Option<ReadsEvidence>,
}

/// Whether a call reads what was cut of a result before, by its name and its input.
pub type ReadsEvidence = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// Whether an answer that cannot be understood is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    Closed,
    Open,
}

/// The bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub struct GuardLimits {
    /// One part of a stream, in bytes.
    pub event_bytes: usize,
    /// The input of one tool call.
    pub tool_input_bytes: usize,
    /// An answer that comes whole.
    pub body_bytes: usize,
    pub json: json::Limits,
}
