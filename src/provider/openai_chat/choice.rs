//! The calls of one choice of an answer, while they come and when they are decided.

use std::collections::BTreeMap;

use super::chunk::{CallKey, CallPiece};
use super::extent::InputExtent;
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate, InputForm, PendingCall, Phase};

/// How many calls a choice may have.
const MOST_CALLS: usize = 1024;

/// The state of one choice.
#[derive(Default)]
pub(super) struct ChoiceState {
    pub(super) calls: Vec<TrackedCall>,
    /// The number of the call with this key; of those without an index, of the last.
    numbers: BTreeMap<CallKey, usize>,
    /// Whether a call was decided since this was taken last.
    settled: bool,
    /// Whether a call was taken out of it, so that what follows has to be looked at again.
    pub(super) cut: bool,
    /// Whether text went on behind which a paragraph has to begin, and whether a role did.
    pub(super) spoke: bool,
    pub(super) role: bool,
    /// The outcome of each tool that the provider ran, by its index.
    pub(super) hosted: BTreeMap<u64, CallOutcome>,
    /// The index that the next call gets where one before it was taken out.
    next: u64,
    /// Whether nothing more comes of its calls.
    is_over: bool,
}

/// One call.
pub(super) struct TrackedCall {
    key: CallKey,
    id: String,
    name: String,
    /// None until something tells.
    form: Option<InputForm>,
    extent: InputExtent,
    state: CallState,
    /// The index under which it went on.
    out: Option<u64>,
    /// Whether the text in its place went on.
    told: bool,
}

enum CallState {
    /// Its name has not come; input that has.
    Unnamed(String),
    Open(Box<PendingCall>),
    /// It goes on; with `true`, its input was complete when that was decided, and must not grow.
    Passed(bool),
    /// The text in its place.
    Denied(String),
    /// It never became complete.
    Gone,
}

impl ChoiceState {
    /// Takes an entry about a call. Returns the call's number.
    ///
    /// # Errors
    /// If clients would make different calls of it.
    pub(super) fn take(&mut self, piece: &CallPiece<'_>, gate: &mut Gate) -> Result<usize, BrokenAnswer> {
        let known = self.find(piece)?;
        let number = known.unwrap_or(self.calls.len());
        if known.is_none() {
            if number >= MOST_CALLS {
                return Err(BrokenAnswer::bound(format!("a choice has more than {MOST_CALLS} tool calls")));
            }
            self.finish_complete(gate);
            self.calls.push(TrackedCall::new(piece.key));
            self.numbers.insert(piece.key, number);
        }
        let call = &mut self.calls[number];
        let was_decided = known.is_some() && !call.is_undecided();
        call.identify(piece)?;
        call.feed(piece, gate)?;
        // No later piece can refer to a call without an index, so that it is complete.
        if piece.key == CallKey::Missing {
            call.finish(gate);
        }
        self.settled |= !was_decided && !call.is_undecided();
        self.cut |= call.is_out();
        Ok(number)
    }

    fn find(&self, piece: &CallPiece<'_>) -> Result<Option<usize>, BrokenAnswer> {
        let is_numbered =
            || self.numbers.range(CallKey::Index(0)..=CallKey::Index(u64::MAX)).next().is_some();
        // Clients join pieces by index. Without one, an entry with a name is a whole call of its own.
        match piece.key {
            CallKey::Missing if is_numbered() || piece.name.is_none() => {
                Err(BrokenAnswer::ambiguous("a piece of a tool call does not say of which"))
            }
            CallKey::Missing => Ok(None),
            CallKey::Index(_) if self.numbers.contains_key(&CallKey::Missing) => {
                Err(BrokenAnswer::ambiguous("some tool calls have an index, others have none"))
            }
            key @ (CallKey::Index(_) | CallKey::Function) => Ok(self.numbers.get(&key).copied()),
        }
    }

    /// A new call begins: those before it whose input is complete are decided. JSON that is complete takes no more.
    fn finish_complete(&mut self, gate: &mut Gate) {
        for call in &mut self.calls {
            if call.is_complete() {
                self.settled |= call.is_undecided();
                call.finish(gate);
            }
        }
        self.note_cut();
    }

    /// Decides every call: no more pieces come.
    pub(super) fn finish(&mut self, gate: &mut Gate) {
        self.end();
        self.calls.iter_mut().for_each(|call| call.finish(gate));
        self.note_cut();
    }

    /// Decides every call after the model was stopped: the call that it was writing is not complete.
    pub(super) fn stop(&mut self, gate: &mut Gate) {
        self.end();
        self.finish_complete(gate);
        self.calls.iter_mut().for_each(|call| call.stop(gate));
        self.note_cut();
    }

    /// Whether the next chunk may be of a call.
    pub(super) fn is_in_call(&self) -> bool {
        !self.is_over && !self.calls.is_empty()
    }

    /// Decides only calls whose input is complete JSON: the stream broke off without an end.
    pub(super) fn break_off(&mut self, gate: &mut Gate) {
        self.finish_complete(gate);
        self.abandon(gate);
    }

    /// Gives up pending calls.
    pub(super) fn abandon(&mut self, gate: &mut Gate) {
        self.end();
        self.calls.iter_mut().for_each(|call| call.abandon(gate));
        self.note_cut();
    }

    /// Marks the choice as over: every call that waits is about to be decided.
    fn end(&mut self) {
        self.is_over = true;
        self.settled |= self.calls.iter().any(TrackedCall::is_undecided);
    }

    fn note_cut(&mut self) {
        self.cut |= self.calls.iter().any(TrackedCall::is_out);
    }

    pub(super) fn is_undecided(&self, call: usize) -> bool {
        self.calls[call].is_undecided()
    }

    /// Whether a call was decided since the last time.
    pub(super) fn take_settled(&mut self) -> bool {
        std::mem::take(&mut self.settled)
    }

    /// Whether it had calls, and all of them were denied or lost.
    pub(super) fn lost_all(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(TrackedCall::is_out)
    }

    /// Gives a call its index for the client.
    pub(super) fn number(&mut self, call: usize) {
        let (cut, next) = (self.cut, self.next);
        let call = &mut self.calls[call];
        if let (CallKey::Index(own), None, false) = (call.key, call.out, call.is_out()) {
            // Clients fill a list by index, and fail at a gap where a call before this one was removed.
            let out = if cut { next } else { own };
            call.out = Some(out);
            self.next = out.saturating_add(1).max(next);
        }
    }

    /// Returns how an entry about the call is edited.
    pub(super) fn action(&mut self, call: usize) -> EntryEdit {
        let call = &mut self.calls[call];
        match (&call.state, call.key) {
            (CallState::Denied(text), _) => {
                let text = (!std::mem::replace(&mut call.told, true)).then(|| text.clone());
                EntryEdit::Remove(text)
            }
            (CallState::Gone, _) => EntryEdit::Remove(None),
            (_, CallKey::Index(own)) => EntryEdit::Keep(call.out.filter(|out| *out != own)),
            (_, CallKey::Missing | CallKey::Function) => EntryEdit::Keep(None),
        }
    }
}

/// How an entry about a call is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryEdit {
    /// It stays, with another index if there is one.
    Keep(Option<u64>),
    /// It is removed; the text, if there is one, is added to the content.
    Remove(Option<String>),
}

impl TrackedCall {
    fn new(key: CallKey) -> Self {
        let (id, name) = (String::new(), String::new());
        let state = CallState::Unnamed(String::new());
        let extent = InputExtent::default();
        Self { key, id, name, form: None, extent, state, out: None, told: false }
    }

    /// Some clients join names and ids that come again, some take the last, some begin another call.
    fn identify(&mut self, piece: &CallPiece<'_>) -> Result<(), BrokenAnswer> {
        for (known, said) in [(&mut self.id, &piece.id), (&mut self.name, &piece.name)] {
            let Some(said) = said else { continue };
            if known.is_empty() {
                known.push_str(said);
            } else if known != said {
                return Err(BrokenAnswer::ambiguous("a tool call has two names or two ids"));
            }
        }
        Ok(())
    }

    fn feed(&mut self, piece: &CallPiece<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        if let Some(form) = piece.form
            && *self.form.get_or_insert(form) != form
        {
            return Err(BrokenAnswer::ambiguous("a tool call is of two kinds"));
        }
        match &mut self.state {
            CallState::Unnamed(input) => {
                input.push_str(&piece.input);
                if !self.name.is_empty() {
                    self.begin(gate);
                }
            }
            CallState::Open(call) => call.push(&piece.input, gate),
            CallState::Passed(true) if !piece.input.trim().is_empty() => {
                return Err(BrokenAnswer::ambiguous("a tool call goes on after its end"));
            }
            CallState::Passed(_) | CallState::Denied(_) | CallState::Gone => {}
        }
        Ok(())
    }

    fn begin(&mut self, gate: &mut Gate) {
        let CallState::Unnamed(input) = &self.state else { return };
        let form = self.form.unwrap_or(InputForm::Json);
        let mut call = gate.begin(&CallHead { form, ..CallHead::new(&self.id, &self.name) });
        call.push(input, gate);
        let denied = match call.phase() {
            Phase::Denied(text) => Some(text.clone()),
            Phase::Flows | Phase::Held => None,
        };
        self.state = denied.map_or_else(|| CallState::Open(Box::new(call)), CallState::Denied);
    }

    fn finish(&mut self, gate: &mut Gate) {
        self.begin(gate);
        self.state = match std::mem::replace(&mut self.state, CallState::Gone) {
            CallState::Open(call) => {
                let is_held = call.is_held();
                match gate.finish(*call) {
                    CallOutcome::Denied(text) if is_held => CallState::Denied(text),
                    // What is not held has gone on already.
                    CallOutcome::Passes | CallOutcome::Denied(_) => CallState::Passed(is_held),
                }
            }
            decided @ (CallState::Unnamed(_)
            | CallState::Passed(_)
            | CallState::Denied(_)
            | CallState::Gone) => decided,
        };
    }

    fn abandon(&mut self, gate: &mut Gate) {
        self.state = match std::mem::replace(&mut self.state, CallState::Gone) {
            CallState::Unnamed(_) => CallState::Gone,
            CallState::Open(call) => {
                let is_held = call.is_held();
                gate.abandon(*call);
                if is_held { CallState::Gone } else { CallState::Passed(false) }
            }
            decided @ (CallState::Passed(_) | CallState::Denied(_) | CallState::Gone) => decided,
        };
    }

    /// Decides about a call that stays incomplete: if it was held, it is replaced by text.
    fn stop(&mut self, gate: &mut Gate) {
        self.begin(gate);
        self.state = match std::mem::replace(&mut self.state, CallState::Gone) {
            CallState::Open(call) => match gate.cut(*call) {
                CallOutcome::Denied(text) => CallState::Denied(text),
                CallOutcome::Passes => CallState::Passed(false),
            },
            decided @ (CallState::Unnamed(_)
            | CallState::Passed(_)
            | CallState::Denied(_)
            | CallState::Gone) => decided,
        };
    }

    fn is_complete(&mut self) -> bool {
        let CallState::Open(call) = &self.state else { return false };
        self.form != Some(InputForm::Text) && self.extent.is_complete(call.input())
    }

    fn is_undecided(&self) -> bool {
        match &self.state {
            CallState::Unnamed(_) => true,
            CallState::Open(call) => call.is_held(),
            CallState::Passed(_) | CallState::Denied(_) | CallState::Gone => false,
        }
    }

    fn is_out(&self) -> bool {
        matches!(self.state, CallState::Denied(_) | CallState::Gone)
    }
}
