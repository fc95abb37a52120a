//! Asks about tool calls, and notes the decisions and what the answer says of itself.

use super::call::{CallHead, CallOutcome, InputForm, PendingCall, Phase};
use super::decide::{self, CallJudgement};
use super::note::{self, How};
use super::{GuardSettings, refusal};
use crate::call::{
    AnswerFacts, BlockedCall, ByFacts, CallNote, CallVerdict, FactsDeny, KindsBy, SeenCall, Start, Tool,
};
use crate::provider::kind;

/// The one place through which a dialect's transcript asks about calls and reports facts.
pub struct Gate {
    settings: GuardSettings,
    /// Whether nothing can be denied, so that bytes pass as received.
    observes: bool,
    /// Whether the answer broke off or was stopped: no call becomes complete any more.
    given_up: bool,
    /// How many bytes the inputs of pending calls have.
    kept_bytes: usize,
    /// What the answer says of itself; the transcript fills it.
    pub facts: AnswerFacts,
    /// The tokens of all answers of one connection, where a dialect has several; 0 elsewhere.
    pub tokens: u64,
    notes: Vec<CallNote>,
    blocked: Vec<(String, BlockedCall)>,
}

impl Gate {
    pub fn new(settings: GuardSettings) -> Self {
        let denies = settings.judge.denies(settings.writes);
        let observes = !denies && settings.judge.facts_deny() == FactsDeny::Never;
        Self {
            settings,
            observes,
            given_up: false,
            kept_bytes: 0,
            facts: AnswerFacts::default(),
            tokens: 0,
            notes: Vec::new(),
            blocked: Vec::new(),
        }
    }

    /// Whether nothing is ever denied here.
    pub fn observes(&self) -> bool {
        self.observes
    }

    pub(super) fn settings(&self) -> &GuardSettings {
        &self.settings
    }

    /// The bound of one call's input, in bytes.
    pub fn tool_input_bytes(&self) -> usize {
        self.settings.limits.tool_input_bytes
    }

    /// How many bytes the inputs of pending calls have.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Counts bytes of a call's input that are kept.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
    }

    /// Treats every pending call as incomplete from now on.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Asks about a call that starts.
    pub fn begin(&mut self, head: &CallHead<'_>) -> PendingCall {
        let call = self.open(head);
        self.started(call)
    }

    /// Decides about a complete call, and notes it.
    pub fn finish(&mut self, mut call: PendingCall) -> CallOutcome {
        self.kept_bytes = self.kept_bytes.saturating_sub(call.input.len());
        let how = How { incomplete: self.given_up, has_input: !self.given_up };
        if call.noted {
            return match call.phase {
                Phase::Denied(text) => CallOutcome::Denied(text),
                Phase::Flows | Phase::Held => CallOutcome::Passes,
            };
        }
        let ruling = self.ruling(&call);
        call.kinds_by = ruling.kinds_by.or(call.kinds_by);
        call.kinds = ruling.kinds.or(call.kinds);
        let denied = ruling.verdict.decision.denies() && !self.observes;
        // A call inside a wrapper is blamed by its own name: the namespace is that of the wrapper.
        let namespace = call.namespace.as_deref().filter(|_| ruling.blamed.is_none());
        let name = ruling.blamed.as_deref().unwrap_or(&call.name);
        call.event = (self.settings.event_id)();
        let text = denied
            .then(|| refusal::text((name, namespace), &ruling.verdict, call.event, self.settings.ask_at));
        let settings = &self.settings;
        let inner: Vec<CallNote> =
            ruling.inner.into_iter().map(|ruled| note::inner(&call, ruled, how, settings)).collect();
        self.note(call, ruling.verdict, how);
        self.notes.extend(inner);
        text.map_or(CallOutcome::Passes, CallOutcome::Denied)
    }

    /// Asks about a call that comes whole. If the provider has run it, the text replaces its result as well.
    pub fn whole(&mut self, head: &CallHead<'_>, input: &str) -> CallOutcome {
        let mut call = self.open(head);
        call.push(input, self);
        self.finish(call)
    }

    /// Notes a call as incomplete: the answer broke off before the call ended.
    pub fn abandon(&mut self, call: PendingCall) {
        self.kept_bytes = self.kept_bytes.saturating_sub(call.input.len());
        if call.noted {
            return;
        }
        let verdict = match &call.settled {
            Some(verdict) => CallVerdict::clone(verdict),
            None if call.is_held() => unfinished(),
            None => CallVerdict::allowed(),
        };
        self.note(call, verdict, How { incomplete: true, ..How::default() });
    }

    /// Decides about a call that stays incomplete because the model was stopped inside it. If it was held, it is
    /// replaced by the returned text.
    pub fn cut(&mut self, call: PendingCall) -> CallOutcome {
        let text = match call.phase() {
            Phase::Flows => None,
            Phase::Held => Some(refusal::text(
                (&call.name, call.namespace.as_deref()),
                &unfinished(),
                call.event,
                self.settings.ask_at,
            )),
            Phase::Denied(text) => Some(text.clone()),
        };
        self.abandon(call);
        text.map_or(CallOutcome::Passes, CallOutcome::Denied)
    }

    /// Notes a denied call of an answer, or a conversation, that the provider may keep under this id: the provider
    /// waits for the call's output.
    pub fn blocked(&mut self, scope: &str, call: BlockedCall) {
        self.blocked.push((scope.to_owned(), call));
    }

    /// Takes the calls that were denied since the last time, each with the id under which it is kept.
    pub fn take_blocked(&mut self) -> Vec<(String, BlockedCall)> {
        std::mem::take(&mut self.blocked)
    }

    /// Takes the notes since the last time.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        std::mem::take(&mut self.notes)
    }

    fn open(&mut self, head: &CallHead<'_>) -> PendingCall {
        let CallHead { id, name, namespace, form, is_hosted } = *head;
        let tool = kind::tool(name, namespace, form == InputForm::Text, &self.settings.offered);
        let kinds_by = Some(tool.by).filter(|by| !tool.kinds.is_empty() && *by != KindsBy::Possible);
        let start = self.start(&tool);
        // Held: the input decides. Flows with a verdict: it is final. Flows without: it is asked at the end, for the note.
        let event = (self.settings.event_id)();
        let (phase, settled) = match start {
            Start::Deny(verdict) if !self.observes => (
                Phase::Denied(refusal::text((name, namespace), &verdict, event, self.settings.ask_at)),
                Some(Box::new(verdict)),
            ),
            Start::NeedsInput if !self.observes => (Phase::Held, None),
            // The calls inside a wrapper decide as well, and only its input names them.
            Start::Allow(_) | Start::Observe if kind::wrapper(name).is_some() => {
                (if self.observes { Phase::Flows } else { Phase::Held }, None)
            }
            Start::Allow(verdict) | Start::Deny(verdict) => (Phase::Flows, Some(Box::new(verdict))),
            Start::Observe | Start::NeedsInput => (Phase::Flows, None),
        };
        let (id, name, namespace) = (id.to_owned(), name.to_owned(), namespace.map(str::to_owned));
        let (input, bytes) = (String::new(), 0);
        PendingCall {
            id,
            name,
            namespace,
            form,
            kinds_by,
            kinds: tool.kinds.into(),
            phase,
            settled,
            event,
            noted: false,
            hosted: is_hosted,
            input,
            bytes,
        }
    }

    /// Asks about a call by its tool, and by rules over facts as far as they need no input.
    fn start(&self, tool: &Tool<'_>) -> Start {
        let judge = &*self.settings.judge;
        let start = judge.start(tool);
        if matches!(start, Start::Deny(_)) {
            return start;
        }
        match (start, judge.by_facts(&SeenCall::start(tool))) {
            (start, ByFacts::Silent) => start,
            (_, ByFacts::NeedsInput { denies: true }) => Start::NeedsInput,
            (Start::Allow(_), ByFacts::NeedsInput { denies: false }) => Start::Observe,
            (start, ByFacts::NeedsInput { denies: false }) => start,
            (_, ByFacts::Decided(decided)) if decided.decision.denies() => Start::Deny(*decided),
            (Start::Allow(verdict), ByFacts::Decided(decided)) => {
                Start::Allow(decide::together(verdict, *decided))
            }
            // They are asked again once the input is there.
            (start, ByFacts::Decided(_)) => start,
        }
    }

    /// Notes a call at its start if it is denied there.
    fn started(&mut self, mut call: PendingCall) -> PendingCall {
        if let (Phase::Denied(_), Some(verdict)) = (&call.phase, &call.settled) {
            let verdict = CallVerdict::clone(verdict);
            self.note(call.clone(), verdict, How::default());
            call.noted = true;
        }
        call
    }

    fn ruling(&mut self, call: &PendingCall) -> CallJudgement {
        if let Some(verdict) = &call.settled {
            return CallJudgement::of(CallVerdict::clone(verdict));
        }
        if self.given_up {
            return CallJudgement::of(unfinished());
        }
        let tool = (call.name.as_str(), call.namespace.as_deref());
        let ruling = if call.is_over() {
            let most = self.tool_input_bytes();
            CallJudgement::builtin(
                "bound",
                format!("The tool's input is longer than {most} bytes (limits.toolInputBytes)"),
            )
        } else {
            decide::complete(&self.settings, tool, call.form, &call.input)
        };
        // Its beginning went on already: a denial because it cannot be read would come too late.
        if !call.is_held() && ruling.unread {
            return CallJudgement::of(decide::unread(&self.settings, tool, call.form, &call.input));
        }
        ruling
    }

    fn note(&mut self, call: PendingCall, verdict: CallVerdict, how: How) {
        self.notes.push(note::note(call, verdict, how, &self.settings));
    }
}

/// The verdict on a held call whose end never came.
fn unfinished() -> CallVerdict {
    CallVerdict::builtin("unparseable", "The answer ended before the call was complete")
}
