//! One tool call while its input comes.

use super::Gate;
use crate::call::{KindsBy, Verdict};

/// What a call's input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A JSON object.
    Json,
    /// That of a custom tool.
    Text,
}

/// A call that has begun. Its input is kept, within the bound, until it is complete.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) form: Form,
    /// How its kinds are known, as far as that is known yet.
    pub(super) kinds_by: Option<KindsBy>,
    pub(super) phase: Phase,
    /// What was decided when it started, where that is final.
    pub(super) settled: Option<Box<Verdict>>,
    /// Whether it is noted already.
    pub(super) noted: bool,
    /// Whether the provider runs it.
    pub(super) hosted: bool,
    /// What came of the input, up to `limits.toolInputBytes`.
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
    /// It does not go on, whatever its input is; this text stands in its place.
    Denied(String),
}

/// What becomes of a call that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Passes,
    /// This text stands in its place.
    Denied(String),
}

impl Call {
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

    /// What has come of its input, up to the bound.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// The client runs it, although it began as a call that the provider runs.
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

    /// Whether more came than the bound lets be kept.
    pub(super) fn is_over(&self) -> bool {
        self.bytes > self.input.len()
    }
}
