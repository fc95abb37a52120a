//! What tests of transcripts need: judges, a guard that is fed in pieces, and recorded answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::{BrokenAnswer, FailurePolicy, Guard, GuardLimits, GuardSettings, Transcript, TypedLines};
use crate::call::{Advice, CallVerdict, Input, Inputs, Judge, ShellTerms, Start, Tool, ToolCall};
use crate::id::{Id, Timestamp};
use crate::provider::adapter::Framing;
use crate::provider::kind::Offered;
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

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        match tool.name {
            "Denied" => Start::Deny(denial(Advice::NotAvailable)),
            "Held" => Start::NeedsInput,
            _ => Start::Allow(CallVerdict::allowed()),
        }
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        match self.start(&call.tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => verdict,
            Start::Observe | Start::NeedsInput => {
                let text = match call.input {
                    Input::Json(json) => json.to_string(),
                    Input::Text(text) => text.to_owned(),
                };
                let is_forbidden = text.contains("forbidden");
                if is_forbidden { denial(Advice::NotThisUse) } else { CallVerdict::allowed() }
            }
        }
    }
}

/// A denial as [`Names`] says it.
fn denial(advice: Advice) -> CallVerdict {
    CallVerdict { advice, ..CallVerdict::builtin("test", "a test says so") }
}

/// Denies calls by their number: of so many each first, none at 0. Each is held until its input is there if `holds`.
#[derive(Debug)]
pub struct Every {
    step: usize,
    holds: bool,
    asked: AtomicUsize,
}

impl Every {
    pub fn new(step: usize, holds: bool) -> Self {
        Self { step, holds, asked: AtomicUsize::new(0) }
    }

    fn verdict(&self) -> CallVerdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_denied = number.checked_rem(self.step) == Some(0);
        if is_denied { denial(Advice::NotThisUse) } else { CallVerdict::allowed() }
    }
}

impl Judge for Every {
    fn denies(&self, _: bool) -> bool {
        true
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, _: &Tool<'_>) -> Start {
        if self.holds {
            return Start::NeedsInput;
        }
        let verdict = self.verdict();
        if verdict.decision.denies() { Start::Deny(verdict) } else { Start::Allow(verdict) }
    }

    fn complete(&self, _: &ToolCall<'_>) -> CallVerdict {
        self.verdict()
    }
}

/// The recordings below a folder, in the order of their paths; they are beside the repository, none where they are not.
pub fn recorded(folder: &str) -> Vec<PathBuf> {
    let mut found = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures").join(folder));
    found.sort();
    found
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// The id of every event; its text is [`EVENT`].
pub fn event_id() -> Id {
    Id::new(Timestamp::from_unix_millis(0), [0; 10])
}

/// The last line of every refusal.
pub const EVENT: &str = "Event: 00000000-0000-7000-8000-000000000000";

/// Settings with this judge.
pub fn settings(judge: impl Judge + 'static) -> GuardSettings {
    let limits = GuardLimits {
        event_bytes: 1 << 20,
        tool_input_bytes: 1 << 16,
        body_bytes: 1 << 22,
        json: json::Limits::default(),
    };
    GuardSettings {
        judge: Arc::new(judge),
        failure: FailurePolicy::Closed,
        limits,
        inputs: Inputs::Full,
        writes: true,
        offered: Offered::default(),
        conversation: String::new(),
        typed: TypedLines::default(),
        event_id,
        ask_at: None,
        reads_evidence: None,
    }
}

/// What a stream becomes under [`Names`], fed whole, and how it ended.
pub fn guarded(
    transcript: Box<dyn Transcript>,
    framing: Framing,
    stream: &[u8],
) -> (Vec<u8>, Result<(), BrokenAnswer>) {
    fed(Guard::new(transcript, framing, settings(Names::default())), stream, stream.len().max(1))
}

/// What a stream becomes that comes in pieces of so many bytes, and how it ended.
pub fn fed(mut guard: Guard, stream: &[u8], piece: usize) -> (Vec<u8>, Result<(), BrokenAnswer>) {
    let mut out = Vec::new();
    for chunk in stream.chunks(piece) {
        if let Err(broken) = guard.write(Bytes::copy_from_slice(chunk), &mut out) {
            return (out.concat(), Err(broken));
        }
    }
    let result = guard.finish(&mut out);
    (out.concat(), result)
}
