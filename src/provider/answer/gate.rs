//! Asks about tool calls, and notes what was decided and what the answer says of itself.

use super::call::{Call, Fate, Form, Phase};
use super::{Settings, refusal};
use crate::call::{AnswerFacts, CallNote, Start, Tool};

/// The one place through which a dialect's reader asks and tells.
pub struct Gate {
    settings: Settings,
    /// Whether nothing could be denied, and bytes pass as received whatever is found.
    observes: bool,
    /// What the answer says of itself: the transcript fills it.
    pub facts: AnswerFacts,
    notes: Vec<CallNote>,
}

impl Gate {
    pub fn new(settings: Settings) -> Self {
        let observes = !settings.judge.denies(settings.writes);
        Self { settings, observes, facts: AnswerFacts::default(), notes: Vec::new() }
    }

    /// Whether nothing is ever denied here.
    pub fn observes(&self) -> bool {
        self.observes
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn tool_input_bytes(&self) -> usize {
        self.settings.limits.tool_input_bytes
    }

    /// A call has started: its name is known. `namespace` is that of a namespace or toolset.
    pub fn begin(&mut self, id: &str, name: &str, namespace: Option<&str>, form: Form) -> Call {
        let phase = match self.settings.judge.start(&Tool { name, namespace, kinds: &[] }) {
            Start::Allow(_) | Start::Observe => Phase::Flows,
            Start::NeedsInput => Phase::Held,
            Start::Deny(verdict) => Phase::Denied(refusal::text(name, namespace, &verdict)),
        };
        let (id, namespace) = (id.to_owned(), namespace.map(str::to_owned));
        Call { id, name: name.to_owned(), namespace, form, phase, input: String::new(), bytes: 0 }
    }

    /// A call is complete.
    pub fn finish(&mut self, call: Call) -> Fate {
        if let Phase::Denied(text) = call.phase {
            return Fate::Denied(text);
        }
        if call.is_over() {
            return Fate::Denied(String::new());
        }
        Fate::Passes
    }

    /// A call that came whole, in one piece.
    pub fn whole(&mut self, id: &str, name: &str, namespace: Option<&str>, input: (Form, &str)) -> Fate {
        let mut call = self.begin(id, name, namespace, input.0);
        call.push(input.1, self);
        match call.phase {
            Phase::Denied(text) => Fate::Denied(text),
            Phase::Flows | Phase::Held => self.finish(call),
        }
    }

    /// The answer ended before the call did: it is noted, and whatever was kept of it is lost.
    pub fn abandon(&mut self, call: Call) {
        drop(call);
    }

    /// A call that the provider has run already. Under a denial it and its result are replaced by the text.
    pub fn hosted(&mut self, id: &str, name: &str, input: (Form, &str)) -> Fate {
        self.whole(id, name, None, input)
    }

    /// What has been decided since this was asked last.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        std::mem::take(&mut self.notes)
    }
}
