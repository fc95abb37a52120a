//! The calls of one choice of an answer, while they come and when they are decided.

use std::collections::BTreeMap;

use super::chunk::{Key, Piece};
use super::extent::Extent;
use crate::provider::answer::{Broken, Call, Fate, Form, Gate, Phase};

/// How many calls a choice may have.
const MOST_CALLS: usize = 1024;

/// What is known of one choice.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) calls: Vec<Tracked>,
    /// The number of the call with this key; of those without an index, of the last.
    numbers: BTreeMap<Key, usize>,
    /// Whether a call was decided since this was taken last.
    settled: bool,
    /// Whether a call was taken out of it, so that what follows has to be looked at again.
    pub(super) cut: bool,
    /// Whether text went on behind which a paragraph has to begin, and whether a role did.
    pub(super) spoke: bool,
    pub(super) role: bool,
    /// What becomes of each tool that the provider ran, by its index.
    pub(super) hosted: BTreeMap<u64, Fate>,
    /// The index that the next call gets where one before it was taken out.
    next: u64,
    /// Whether nothing more comes of its calls.
    is_over: bool,
}

/// One call.
pub(super) struct Tracked {
    key: Key,
    id: String,
    name: String,
    /// None until something tells.
    form: Option<Form>,
    extent: Extent,
    state: State,
    /// The index under which it went on.
    out: Option<u64>,
    /// Whether the text in its place went on.
    told: bool,
}

enum State {
    /// Its name has not come; input that has.
    Unnamed(String),
    Open(Box<Call>),
    /// It goes on; with `true`, as its input was when that was decided.
    Passed(bool),
    /// The text in its place.
    Denied(String),
    /// It never became complete.
    Gone,
}

impl Choice {
    /// Takes what is said of a call. Answers the call's number.
    ///
    /// # Errors
    /// Where clients would make different calls of it.
    pub(super) fn take(&mut self, piece: &Piece<'_>, gate: &mut Gate) -> Result<usize, Broken> {
        let known = self.find(piece)?;
        let number = known.unwrap_or(self.calls.len());
        if known.is_none() {
            if number >= MOST_CALLS {
                return Err(Broken::bound(format!("a choice has more than {MOST_CALLS} tool calls")));
            }
            self.finish_complete(gate);
            self.calls.push(Tracked::new(piece.key));
            self.numbers.insert(piece.key, number);
        }
        let call = &mut self.calls[number];
        let was_decided = known.is_some() && !call.is_undecided();
        call.identify(piece)?;
        call.feed(piece, gate)?;
        if piece.key == Key::Missing {
            call.finish(gate);
        }
        self.settled |= !was_decided && !call.is_undecided();
        self.cut |= call.is_out();
        Ok(number)
    }

    fn find(&self, piece: &Piece<'_>) -> Result<Option<usize>, Broken> {
        let is_numbered = || self.numbers.range(Key::Index(0)..=Key::Index(u64::MAX)).next().is_some();
        match piece.key {
            Key::Missing if is_numbered() || piece.name.is_none() => {
                Err(Broken::ambiguous("a piece of a tool call does not say of which"))
            }
            Key::Missing => Ok(None),
            Key::Index(_) if self.numbers.contains_key(&Key::Missing) => {
                Err(Broken::ambiguous("some tool calls have an index, others have none"))
            }
            key @ (Key::Index(_) | Key::Function) => Ok(self.numbers.get(&key).copied()),
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

    /// No more comes of any call.
    pub(super) fn finish(&mut self, gate: &mut Gate) {
        self.end();
        self.calls.iter_mut().for_each(|call| call.finish(gate));
        self.note_cut();
    }

    /// The model was stopped: the call that it was writing is not complete.
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

    /// The stream broke off, and said nothing of an end: only what is complete by itself is decided.
    pub(super) fn break_off(&mut self, gate: &mut Gate) {
        self.finish_complete(gate);
        self.abandon(gate);
    }

    /// Nothing becomes complete any more.
    pub(super) fn abandon(&mut self, gate: &mut Gate) {
        self.end();
        self.calls.iter_mut().for_each(|call| call.abandon(gate));
        self.note_cut();
    }

    /// All calls that wait are about to be decided.
    fn end(&mut self) {
        self.is_over = true;
        self.settled |= self.calls.iter().any(Tracked::is_undecided);
    }

    fn note_cut(&mut self) {
        self.cut |= self.calls.iter().any(Tracked::is_out);
    }

    pub(super) fn is_undecided(&self, call: usize) -> bool {
        self.calls[call].is_undecided()
    }

    /// Whether a call was decided since this was asked last.
    pub(super) fn take_settled(&mut self) -> bool {
        std::mem::take(&mut self.settled)
    }

    /// Whether it had calls, and none of them goes on.
    pub(super) fn lost_all(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(Tracked::is_out)
    }

    /// Gives a call its index in what goes on.
    pub(super) fn number(&mut self, call: usize) {
        let (cut, next) = (self.cut, self.next);
        let call = &mut self.calls[call];
        if let (Key::Index(own), None, false) = (call.key, call.out, call.is_out()) {
            let out = if cut { next } else { own };
            call.out = Some(out);
            self.next = out.saturating_add(1).max(next);
        }
    }

    /// What becomes of what is said of a call.
    pub(super) fn action(&mut self, call: usize) -> Action {
        let call = &mut self.calls[call];
        match (&call.state, call.key) {
            (State::Denied(text), _) => {
                let text = (!std::mem::replace(&mut call.told, true)).then(|| text.clone());
                Action::Remove(text)
            }
            (State::Gone, _) => Action::Remove(None),
            (_, Key::Index(own)) => Action::Keep(call.out.filter(|out| *out != own)),
            (_, Key::Missing | Key::Function) => Action::Keep(None),
        }
    }
}

/// What becomes of an entry that speaks of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// It stays, under another index where there is one.
    Keep(Option<u64>),
    /// It goes, and the text, where there is one, stands in its place.
    Remove(Option<String>),
}

impl Tracked {
    fn new(key: Key) -> Self {
        let (id, name) = (String::new(), String::new());
        let state = State::Unnamed(String::new());
        let extent = Extent::default();
        Self { key, id, name, form: None, extent, state, out: None, told: false }
    }

    /// Some clients join names and ids that come again, some take the last, some begin another call.
    fn identify(&mut self, piece: &Piece<'_>) -> Result<(), Broken> {
        for (known, said) in [(&mut self.id, &piece.id), (&mut self.name, &piece.name)] {
            let Some(said) = said else { continue };
            if known.is_empty() {
                known.push_str(said);
            } else if known != said {
                return Err(Broken::ambiguous("a tool call has two names or two ids"));
            }
        }
        Ok(())
    }

    fn feed(&mut self, piece: &Piece<'_>, gate: &mut Gate) -> Result<(), Broken> {
        if let Some(form) = piece.form
            && *self.form.get_or_insert(form) != form
        {
            return Err(Broken::ambiguous("a tool call is of two kinds"));
        }
        match &mut self.state {
            State::Unnamed(input) => {
                input.push_str(&piece.input);
                if !self.name.is_empty() {
                    self.begin(gate);
                }
            }
            State::Open(call) => call.push(&piece.input, gate),
            State::Passed(true) if !piece.input.trim().is_empty() => {
                return Err(Broken::ambiguous("a tool call goes on after its end"));
            }
            State::Passed(_) | State::Denied(_) | State::Gone => {}
        }
        Ok(())
    }

    fn begin(&mut self, gate: &mut Gate) {
        let State::Unnamed(input) = &self.state else { return };
        let mut call = gate.begin(&self.id, &self.name, None, self.form.unwrap_or(Form::Json));
        call.push(input, gate);
        let denied = match call.phase() {
            Phase::Denied(text) => Some(text.clone()),
            Phase::Flows | Phase::Held => None,
        };
        self.state = denied.map_or_else(|| State::Open(Box::new(call)), State::Denied);
    }

    fn finish(&mut self, gate: &mut Gate) {
        self.begin(gate);
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Open(call) => {
                let is_held = call.is_held();
                match gate.finish(*call) {
                    Fate::Denied(text) if is_held => State::Denied(text),
                    // What is not held has gone on already.
                    Fate::Passes | Fate::Denied(_) => State::Passed(is_held),
                }
            }
            decided @ (State::Unnamed(_) | State::Passed(_) | State::Denied(_) | State::Gone) => decided,
        };
    }

    fn abandon(&mut self, gate: &mut Gate) {
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Unnamed(_) => State::Gone,
            State::Open(call) => {
                let is_held = call.is_held();
                gate.abandon(*call);
                if is_held { State::Gone } else { State::Passed(false) }
            }
            decided @ (State::Passed(_) | State::Denied(_) | State::Gone) => decided,
        };
    }

    /// It does not become complete: where it was held, a text stands in its place.
    fn stop(&mut self, gate: &mut Gate) {
        self.begin(gate);
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Open(call) => match gate.cut(*call) {
                Fate::Denied(text) => State::Denied(text),
                Fate::Passes => State::Passed(false),
            },
            decided @ (State::Unnamed(_) | State::Passed(_) | State::Denied(_) | State::Gone) => decided,
        };
    }

    fn is_complete(&mut self) -> bool {
        let State::Open(call) = &self.state else { return false };
        self.form != Some(Form::Text) && self.extent.is_complete(call.input())
    }

    fn is_undecided(&self) -> bool {
        match &self.state {
            State::Unnamed(_) => true,
            State::Open(call) => call.is_held(),
            State::Passed(_) | State::Denied(_) | State::Gone => false,
        }
    }

    fn is_out(&self) -> bool {
        matches!(self.state, State::Denied(_) | State::Gone)
    }
}
