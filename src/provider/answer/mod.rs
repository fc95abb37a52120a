//! Guards answers: reads what a model says in its dialect, asks about every tool call, and takes out what is denied.
//!
//! [`Guard`] frames a body and hands each part of it, parsed, to a dialect's [`Transcript`]; that keeps what is
//! undecided, asks the [`Gate`] about calls, and says what goes on. The same transcript reads streams and whole
//! answers, so that both meet the same verdicts.

mod blocks;
mod call;
mod command;
mod decide;
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
mod stencil;
#[cfg(test)]
mod stencil_tests;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod unread;

use std::sync::Arc;

pub(in crate::provider) use blocks::{BlockDialect, BlockKind, BlockStart, Blocks, MessageCalls};
pub use call::{Call, Fate, Form, Phase};
pub use decide::ask;
pub use gate::Gate;
pub use guard::Guard;
pub use part::{Event, Out, Part, Received};
pub(in crate::provider) use unread::may_hold_call;

use crate::call::{Inputs, Judge};
use crate::provider::kind::Offered;
use crate::wire::json::{self, Document, Value};

/// Reads one answer in one dialect.
pub trait Transcript: Send {
    /// Takes the next part of a stream. It may be kept until a call is decided; what goes on is put into `out`.
    ///
    /// # Errors
    /// Where the stream cannot be understood, or must not go on.
    fn event(&mut self, event: &Event<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), Broken>;

    /// The values of the part that was taken last, each of which could have been any other string, or whole number,
    /// without more coming of that part than that it goes on. None where it came to anything else, and where a second
    /// part like it would.
    ///
    /// Parts that are the same but for such values are not read any more: [`Self::again`] tells of them.
    fn free<'d>(&mut self, _event: &Event<'d>) -> Vec<Value<'d>> {
        Vec::new()
    }

    /// Parts went on that are the same as the last but for the values that [`Self::free`] named. `numbers` are those of
    /// the last of them, in the order of the document.
    fn again(&mut self, _numbers: &[u64], _gate: &mut Gate) {}

    /// The stream has ended: what is still undecided is decided, or given up.
    ///
    /// # Errors
    /// Where it ended in a way in which it must not go on.
    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), Broken>;

    /// Reads an answer that came whole. Answers the edited body; none where the original goes on.
    ///
    /// # Errors
    /// Where it cannot be understood, or must not go on.
    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, Broken>;

    /// Whether a call is under way, held or not, so that the next part may be of it.
    fn is_in_call(&self) -> bool;

    /// Whether a part that cannot be read may hold a call.
    fn suspects(&self, unread: &[u8]) -> bool {
        may_hold_call(unread)
    }

    /// A part went on that could not be read. It may have been the beginning or the end of something that is no call.
    fn skipped(&mut self) {}

    /// How many bytes are kept.
    fn held(&self) -> usize;

    /// What feeds a client's watchdog while something is kept, where the dialect has such a thing.
    fn keep_alive(&self) -> KeepAlive;

    /// What the client is told where the stream cannot go on: the last parts that it reads. `message` is for people.
    fn broken(&mut self, message: &str, out: &mut Out);
}

/// What may be said while something is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepAlive {
    /// Its clients lose events over anything that is no event.
    Nothing,
    /// A comment between two events (or a ping frame, of a WebSocket).
    Comment,
    /// An event of this name with this JSON.
    Event(&'static str, &'static str),
    /// A comment, and each minute this event instead: some clients give up after minutes without an event, and do not
    /// count comments.
    CommentOrEvent(&'static str, String),
}

/// Why an answer does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Broken {
    /// Of what is built in: `unparseable`, `bound`.
    pub rule: &'static str,
    /// Fit for the agent's eyes.
    pub reason: String,
    /// Whether `failurePolicy: Open` lets the part of which this is said pass as it came (design section 6.6).
    pub forgivable: bool,
}

impl Broken {
    /// Malformed JSON outside a tool call, or a broken grammar of the stream.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self { rule: "unparseable", reason: reason.into(), forgivable: true }
    }

    /// A call that has more than one reading: parts that contradict each other, keys that stand twice.
    pub fn ambiguous(reason: impl Into<String>) -> Self {
        Self { rule: "unparseable", reason: reason.into(), forgivable: false }
    }

    /// More than a bound allows.
    pub fn bound(reason: impl Into<String>) -> Self {
        Self { rule: "bound", reason: reason.into(), forgivable: false }
    }
}

/// What a guard is given.
#[derive(Clone)]
pub struct Settings {
    pub judge: Arc<dyn Judge>,
    pub failure: FailurePolicy,
    pub limits: Limits,
    /// What is noted of the inputs of calls.
    pub inputs: Inputs,
    /// Whether the request offers a tool of kind Write.
    pub writes: bool,
    /// What the request says of tools that the catalogue does not know.
    pub offered: Offered,
}

/// What becomes of an answer that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    Closed,
    Open,
}

/// What one answer may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// One part of a stream, in bytes.
    pub event_bytes: usize,
    /// The input of one tool call.
    pub tool_input_bytes: usize,
    /// An answer that comes whole.
    pub body_bytes: usize,
    pub json: json::Limits,
}
