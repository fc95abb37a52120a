//! Asks about tool calls, and notes what was decided and what the answer says of itself.

use super::call::{Call, Fate, Form, Phase};
use super::decide::{self, Ruling};
use super::note::{self, How};
use super::{Settings, refusal};
use crate::call::{AnswerFacts, BlockedCall, CallNote, KindsBy, Start, Verdict};
use crate::provider::kind;

/// The one place through which a dialect's reader asks and tells.
pub struct Gate {
    settings: Settings,
    /// Whether nothing could be denied, and bytes pass as received whatever is found.
    observes: bool,
    /// The answer broke off, or cannot go on: no call becomes complete any more.
    given_up: bool,
    /// How many bytes the inputs of calls that are under way have.
    kept_bytes: usize,
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
            kept_bytes: 0,
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

    /// How many bytes the inputs of calls that are under way have.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// More of a call's input is kept.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
    }

    /// From now on every call that is under way stays incomplete.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// A call has started: its name is known. `namespace` is that of a namespace or toolset.
    pub fn begin(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let call = self.open(id, name, namespace, form);
        self.started(call)
    }

    /// A call is complete.
    pub fn finish(&mut self, mut call: Call) -> Fate {
        self.kept_bytes = self.kept_bytes.saturating_sub(call.input.len());
        let how = How { incomplete: self.given_up, has_input: !self.given_up };
        if call.noted {
            return match call.phase {
                Phase::Denied(text) => Fate::Denied(text),
                Phase::Flows | Phase::Held => Fate::Passes,
            };
        }
        let ruling = self.ruling(&call);
        call.kinds_by = ruling.kinds_by.or(call.kinds_by);
        let denied = ruling.verdict.decision.denies() && !self.observes;
        let namespace = call.namespace.as_deref().filter(|_| ruling.blamed.is_none());
        let name = ruling.blamed.as_deref().unwrap_or(&call.name);
        let text = denied.then(|| refusal::text(name, namespace, &ruling.verdict));
        let settings = &self.settings;
        let inner: Vec<CallNote> =
            ruling.inner.into_iter().map(|ruled| note::inner(&call, ruled, how, settings)).collect();
        self.note(call, ruling.verdict, how);
        self.notes.extend(inner);
        text.map_or(Fate::Passes, Fate::Denied)
    }

    /// A call that came whole, in one piece.
    pub fn whole(&mut self, id: &str, name: &str, namespace: Option<&str>, input: (Form, &str)) -> Fate {
        let mut call = self.open(id, name, namespace, input.0);
        call.push(input.1, self);
        self.finish(call)
    }

    /// The answer ended before the call did: it is noted, and whatever was kept of it is lost.
    pub fn abandon(&mut self, call: Call) {
        self.kept_bytes = self.kept_bytes.saturating_sub(call.input.len());
        if call.noted {
            return;
        }
        let verdict = match &call.settled {
            Some(verdict) => Verdict::clone(verdict),
            None if call.is_held() => unfinished(),
            None => Verdict::allowed(),
        };
        self.note(call, verdict, How { incomplete: true, ..How::default() });
    }

    /// The answer ended, as it says itself, before the call did. What was held of it does not go on: this text stands in
    /// its place.
    pub fn cut(&mut self, call: Call) -> Fate {
        let text = match call.phase() {
            Phase::Flows => None,
            Phase::Held => Some(refusal::text(&call.name, call.namespace.as_deref(), &unfinished())),
            Phase::Denied(text) => Some(text.clone()),
        };
        self.abandon(call);
        text.map_or(Fate::Passes, Fate::Denied)
    }

    /// A call that the provider has run already. Under a denial it and its result are replaced by the text.
    pub fn hosted(&mut self, id: &str, name: &str, input: (Form, &str)) -> Fate {
        self.hosted_in(id, name, None, input)
    }

    /// The same for a call of a server's tool, or one of a namespace.
    pub fn hosted_in(&mut self, id: &str, name: &str, namespace: Option<&str>, input: (Form, &str)) -> Fate {
        let mut call = Call { hosted: true, ..self.open(id, name, namespace, input.0) };
        call.push(input.1, self);
        self.finish(call)
    }

    /// The same, of which the input comes in pieces. `namespace` is that of an MCP server.
    pub fn begin_hosted(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let call = Call { hosted: true, ..self.open(id, name, namespace, form) };
        self.started(call)
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

    fn open(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let tool = kind::tool(name, namespace, form == Form::Text, &self.settings.offered);
        let kinds_by = Some(tool.by).filter(|by| !tool.kinds.is_empty() && *by != KindsBy::Possible);
        let start = self.settings.judge.start(&tool);
        let (phase, settled) = match start {
            Start::Deny(verdict) if !self.observes => {
                (Phase::Denied(refusal::text(name, namespace, &verdict)), Some(Box::new(verdict)))
            }
            Start::NeedsInput if !self.observes => (Phase::Held, None),
            // What it calls in its turn decides, too.
            Start::Allow(_) | Start::Observe if kind::wrapper(name).is_some() => {
                (if self.observes { Phase::Flows } else { Phase::Held }, None)
            }
            Start::Allow(verdict) | Start::Deny(verdict) => (Phase::Flows, Some(Box::new(verdict))),
            Start::Observe | Start::NeedsInput => (Phase::Flows, None),
        };
        let (id, name, namespace) = (id.to_owned(), name.to_owned(), namespace.map(str::to_owned));
        let (input, bytes) = (String::new(), 0);
        Call {
            id,
            name,
            namespace,
            form,
            kinds_by,
            phase,
            settled,
            noted: false,
            hosted: false,
            input,
            bytes,
        }
    }

    /// Notes at once what is denied at once.
    fn started(&mut self, mut call: Call) -> Call {
        if let (Phase::Denied(_), Some(verdict)) = (&call.phase, &call.settled) {
            let verdict = Verdict::clone(verdict);
            self.note(call.clone(), verdict, How::default());
            call.noted = true;
        }
        call
    }

    fn ruling(&self, call: &Call) -> Ruling {
        if let Some(verdict) = &call.settled {
            return Ruling::of(Verdict::clone(verdict));
        }
        if self.given_up {
            return Ruling::of(unfinished());
        }
        let tool = (call.name.as_str(), call.namespace.as_deref());
        let ruling = if call.is_over() {
            let most = self.tool_input_bytes();
            Ruling::builtin(
                "bound",
                format!("The tool's input is longer than {most} bytes (limits.toolInputBytes)"),
            )
        } else {
            decide::complete(&self.settings, tool, call.form, &call.input)
        };
        // It has passed already, whatever is wrong with it.
        if !call.is_held() && ruling.unread {
            return Ruling::of(decide::unread(&self.settings, tool, call.form, &call.input));
        }
        ruling
    }

    fn note(&mut self, call: Call, verdict: Verdict, how: How) {
        self.notes.push(note::note(call, verdict, how, &self.settings));
    }
}

/// What becomes of a call whose end never came.
fn unfinished() -> Verdict {
    Verdict::builtin("unparseable", "The answer ended before the call was complete")
}
