//! Asks about tool calls, and notes what was decided and what the answer says of itself.

use aws_lc_rs::digest::{SHA256, digest};

use super::call::{Call, Fate, Form, Phase};
use super::{Settings, refusal};
use crate::call::{AnswerFacts, BlockedCall, CallNote, Input, Inputs, Start, Tool, ToolCall, Verdict};
use crate::wire::json::Document;

/// The one place through which a dialect's reader asks and tells.
pub struct Gate {
    settings: Settings,
    /// Whether nothing could be denied, and bytes pass as received whatever is found.
    observes: bool,
    /// The answer broke off, or cannot go on: no call becomes complete any more.
    given_up: bool,
    /// What the answer says of itself: the transcript fills it.
    pub facts: AnswerFacts,
    notes: Vec<CallNote>,
    blocked: Vec<(String, BlockedCall)>,
}

impl Gate {
    pub fn new(settings: Settings) -> Self {
        let observes = !settings.judge.denies(settings.writes);
        Self {
            settings,
            observes,
            given_up: false,
            facts: AnswerFacts::default(),
            notes: Vec::new(),
            blocked: Vec::new(),
        }
    }

    /// Whether nothing is ever denied here.
    pub fn observes(&self) -> bool {
        self.observes
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How much of one call's input is kept, in bytes.
    pub fn tool_input_bytes(&self) -> usize {
        self.settings.limits.tool_input_bytes
    }

    /// From now on every call that is under way stays incomplete.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// A call has started: its name is known. `namespace` is that of a namespace or toolset.
    pub fn begin(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let (phase, settled) = match self.settings.judge.start(&Tool { name, namespace, kinds: &[] }) {
            Start::Allow(verdict) => (Phase::Flows, Some(verdict)),
            Start::Observe => (Phase::Flows, None),
            Start::Deny(verdict) if self.observes => (Phase::Flows, Some(verdict)),
            Start::NeedsInput if self.observes => (Phase::Flows, None),
            Start::NeedsInput => (Phase::Held, None),
            Start::Deny(verdict) => (Phase::Denied(refusal::text(name, namespace, &verdict)), Some(verdict)),
        };
        let (id, name, namespace) = (id.to_owned(), name.to_owned(), namespace.map(str::to_owned));
        let (input, bytes) = (String::new(), 0);
        let mut call =
            Call { id, name, namespace, form, phase, settled, noted: false, hosted: false, input, bytes };
        if let (Phase::Denied(_), Some(verdict)) = (&call.phase, call.settled.clone()) {
            self.note(call.clone(), verdict, false);
            call.noted = true;
        }
        call
    }

    /// A call is complete.
    pub fn finish(&mut self, call: Call) -> Fate {
        if self.given_up {
            let text = refusal::text(&call.name, call.namespace.as_deref(), &unfinished());
            self.abandon(call);
            return Fate::Denied(text);
        }
        if let Phase::Denied(text) = call.phase {
            return Fate::Denied(text);
        }
        let verdict = self.verdict(&call);
        let denied = verdict.decision.denies() && !self.observes;
        let text = denied.then(|| refusal::text(&call.name, call.namespace.as_deref(), &verdict));
        self.note(call, verdict, false);
        text.map_or(Fate::Passes, Fate::Denied)
    }

    /// A call that came whole, in one piece.
    pub fn whole(&mut self, id: &str, name: &str, namespace: Option<&str>, input: (Form, &str)) -> Fate {
        let mut call = self.begin(id, name, namespace, input.0);
        call.push(input.1, self);
        self.finish(call)
    }

    /// The answer ended before the call did: it is noted, and whatever was kept of it is lost.
    pub fn abandon(&mut self, call: Call) {
        if !call.noted {
            let verdict = call.settled.clone().unwrap_or_else(unfinished);
            self.note(call, verdict, true);
        }
    }

    /// A call that the provider has run already. Under a denial it and its result are replaced by the text.
    pub fn hosted(&mut self, id: &str, name: &str, input: (Form, &str)) -> Fate {
        self.hosted_in(id, name, None, input)
    }

    /// The same for a call of a server's tool, or one of a namespace.
    pub fn hosted_in(&mut self, id: &str, name: &str, namespace: Option<&str>, input: (Form, &str)) -> Fate {
        let mut call = self.begin_hosted(id, name, namespace, input.0);
        call.push(input.1, self);
        self.finish(call)
    }

    /// The same, of which the input comes in pieces. `namespace` is that of an MCP server.
    pub fn begin_hosted(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let before = self.notes.len();
        let call = self.begin(id, name, namespace, form);
        self.notes.iter_mut().skip(before).for_each(|note| note.hosted = true);
        Call { hosted: true, ..call }
    }

    /// A call was denied in an answer, or a conversation, that the provider may keep under this id: it waits for the
    /// call's output.
    pub fn blocked(&mut self, scope: &str, call: BlockedCall) {
        self.blocked.push((scope.to_owned(), call));
    }

    /// The calls that were denied since this was asked last, each with where it is kept.
    pub fn take_blocked(&mut self) -> Vec<(String, BlockedCall)> {
        std::mem::take(&mut self.blocked)
    }

    /// What has been decided since this was asked last.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        std::mem::take(&mut self.notes)
    }

    fn verdict(&self, call: &Call) -> Verdict {
        if let Some(verdict) = &call.settled {
            return verdict.clone();
        }
        if call.is_over() {
            let most = self.tool_input_bytes();
            return Verdict::builtin(
                "bound",
                format!("The tool's input is longer than {most} bytes (limits.toolInputBytes)"),
            );
        }
        let tool = Tool { name: &call.name, namespace: call.namespace.as_deref(), kinds: &[] };
        let json;
        let input = match call.form {
            Form::Text => Input::Text(&call.input),
            Form::Json => match self.parse(&call.input) {
                Ok(value) => {
                    json = value;
                    Input::Json(&json)
                }
                Err(reason) => return Verdict::builtin("unparseable", reason),
            },
        };
        self.settings.judge.complete(&ToolCall { tool, input, facts: None })
    }

    fn parse(&self, input: &str) -> Result<serde_json::Value, String> {
        let text = if input.trim().is_empty() { "{}" } else { input };
        let document = Document::parse(text.as_bytes(), self.settings.limits.json)
            .map_err(|error| format!("The tool's input is not JSON that can be read: {error}"))?;
        if let Some(duplicate) = document.first_duplicate() {
            return Err(format!("The tool's input has two readings: {duplicate}"));
        }
        match serde_json::from_str(text) {
            Ok(value @ serde_json::Value::Object(_)) => Ok(value),
            Ok(_) => Err("The tool's input is no JSON object".to_owned()),
            Err(_) => Err("The tool's input is not JSON that can be read".to_owned()),
        }
    }

    fn note(&mut self, call: Call, verdict: Verdict, incomplete: bool) {
        let came = call.bytes > 0 && !call.is_over();
        let hashed = came && self.settings.inputs >= Inputs::Hash;
        let input_sha256 = hashed.then(|| sha256(&call.input));
        let input = match self.settings.inputs {
            Inputs::Full if came => Some(call.input),
            Inputs::None | Inputs::Hash | Inputs::Redacted | Inputs::Full => None,
        };
        self.notes.push(CallNote {
            id: call.id,
            name: call.name,
            namespace: call.namespace,
            input_bytes: call.bytes as u64,
            input_sha256,
            input,
            verdict,
            hosted: call.hosted,
            incomplete,
        });
    }
}

/// SHA-256 in hex.
fn sha256(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What becomes of a call whose end never came.
fn unfinished() -> Verdict {
    Verdict::builtin("unparseable", "The answer ended before the call was complete")
}
