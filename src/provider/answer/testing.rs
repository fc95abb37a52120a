//! What tests of transcripts need: a judge that goes by names and commands, and a guard that is fed in pieces.

use std::sync::Arc;

use bytes::Bytes;

use super::{Broken, FailurePolicy, Guard, Limits, Settings, Transcript};
use crate::call::{Advice, Input, Inputs, Judge, Start, Tool, ToolCall, Verdict};
use crate::provider::adapter::Framing;
use crate::wire::json;

/// Denies the tool `Denied` at its start, holds `Held` and denies it where its input says `forbidden`, and allows
/// what is called otherwise; with `observes`, nothing is denied at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    pub observes: bool,
}

impl Judge for Names {
    fn denies(&self, _: bool) -> bool {
        !self.observes
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        match tool.name {
            "Denied" => Start::Deny(denial(Advice::NotAvailable)),
            "Held" => Start::NeedsInput,
            _ => Start::Allow(Verdict::allowed()),
        }
    }

    fn complete(&self, call: &ToolCall<'_>) -> Verdict {
        match self.start(&call.tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => verdict,
            Start::Observe | Start::NeedsInput => {
                let text = match call.input {
                    Input::Json(json) => json.to_string(),
                    Input::Text(text) => text.to_owned(),
                };
                let is_forbidden = text.contains("forbidden");
                if is_forbidden { denial(Advice::NotThisUse) } else { Verdict::allowed() }
            }
        }
    }
}

/// A denial as [`Names`] says it.
fn denial(advice: Advice) -> Verdict {
    Verdict { advice, ..Verdict::builtin("test", "a test says so") }
}

/// Settings with this judge.
pub fn settings(judge: impl Judge + 'static) -> Settings {
    let limits = Limits {
        event_bytes: 1 << 20,
        tool_input_bytes: 1 << 16,
        body_bytes: 1 << 22,
        json: json::Limits::default(),
    };
    Settings {
        judge: Arc::new(judge),
        failure: FailurePolicy::Closed,
        limits,
        inputs: Inputs::Full,
        writes: true,
    }
}

/// What a stream becomes under [`Names`], fed whole, and how it ended.
pub fn guarded(
    transcript: Box<dyn Transcript>,
    framing: Framing,
    stream: &[u8],
) -> (Vec<u8>, Result<(), Broken>) {
    fed(Guard::new(transcript, framing, settings(Names::default())), stream, stream.len().max(1))
}

/// What a stream becomes that comes in pieces of so many bytes, and how it ended.
pub fn fed(mut guard: Guard, stream: &[u8], piece: usize) -> (Vec<u8>, Result<(), Broken>) {
    let mut out = Vec::new();
    for chunk in stream.chunks(piece) {
        if let Err(broken) = guard.write(Bytes::copy_from_slice(chunk), &mut out) {
            return (out.concat(), Err(broken));
        }
    }
    let result = guard.finish(&mut out);
    (out.concat(), result)
}
