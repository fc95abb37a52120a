//! One tool call while its input comes.

use super::Gate;
use crate::call::{CallVerdict, Kinds, KindsBy};
use crate::id::Id;

/// The form of a call's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputForm {
    /// A JSON object.
    Json,
    /// The text of a custom tool.
    Text,
}

/// A call as an answer names it.
#[derive(Debug, Clone, Copy)]
pub struct CallHead<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// The namespace, the toolset or the MCP server.
    pub namespace: Option<&'a str>,
    pub form: InputForm,
    /// Whether the provider runs it.
    pub is_hosted: bool,
}

impl<'a> CallHead<'a> {
    /// A call that the client runs, with a JSON object as input.
    pub fn new(id: &'a str, name: &'a str) -> Self {
        Self { id, name, namespace: None, form: InputForm::Json, is_hosted: false }
    }

    /// A call that the provider runs, with a JSON object as input.
    pub fn hosted(id: &'a str, name: &'a str) -> Self {
        Self { is_hosted: true, ..Self::new(id, name) }
    }
}

/// A call that has begun. Its input is kept up to the bound until it is complete.
#[derive(Debug, Clone)]
pub struct PendingCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) form: InputForm,
    /// How its kinds are known, if they are yet.
    pub(super) kinds_by: Option<KindsBy>,
    /// What it may do, as far as that is known.
    pub(super) kinds: Kinds,
    pub(super) phase: Phase,
    /// The verdict at its start, if that is final.
    pub(super) settled: Option<Box<CallVerdict>>,
    /// The id of its event, made when it was last decided: a refusal names it.
    pub(super) event: Id,
    /// Whether it is noted already.
    pub(super) noted: bool,
    /// Whether the provider runs it.
    pub(super) hosted: bool,
    /// The input so far, up to `limits.toolInputBytes`.
    pub(super) input: String,
    pub(super) bytes: usize,
}

/// What was decided when a call started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Its parts go on as they come.
    Flows,
    /// Its parts are kept until it is complete.
    Held,
    /// It is denied, whatever its input is, and replaced by this text.
    Denied(String),
}

/// The decision about a complete call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    Passes,
    /// It is replaced by this text.
    Denied(String),
}

impl PendingCall {
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn is_held(&self) -> bool {
        self.phase == Phase::Held
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The input so far, up to the bound.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// Marks it as run by the client, although it began as a call that the provider runs.
    pub fn is_of_client(&mut self) {
        self.hosted = false;
    }

    /// Takes the next piece of the input.
    pub fn push(&mut self, piece: &str, gate: &mut Gate) {
        self.bytes += piece.len();
        let room = gate.tool_input_bytes().saturating_sub(self.input.len());
        let cut = piece.floor_char_boundary(room.min(piece.len()));
        self.input.push_str(&piece[..cut]);
        gate.keep(cut);
    }

    /// Whether the input is longer than the bound.
    pub(super) fn is_over(&self) -> bool {
        self.bytes > self.input.len()
    }
}
