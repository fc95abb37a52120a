//! One candidate while an answer comes: the call that is under way, and the signature that one leaves to another.

use super::arguments::Arguments;
use super::chunk::{self, CandidateEnding, unclear};
use super::hosted::HostedCalls;
use super::page::{Begun, Pages, PartChange, PartPlace};
use super::part::{ContentPart, FunctionCall};
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate, PendingCall, Phase};
use crate::wire::json::Value;

/// The state of one candidate.
#[derive(Debug, Default)]
pub(super) struct CandidateState {
    open: Option<OpenCall>,
    /// Whether the last call was denied: its remaining pieces are removed too.
    denied_last: bool,
    hosted: HostedCalls,
    /// The signature of a call that was denied, for the first that passes after it.
    signature: Option<String>,
    /// Whether a call has passed: what comes after it needs no signature.
    passed: bool,
}

/// A call whose arguments come in pieces.
#[derive(Debug)]
struct OpenCall {
    call: PendingCall,
    arguments: Arguments,
    /// The places of its pieces while they are held.
    pieces: Vec<PartPlace>,
    /// Whether more has come than may be kept of the arguments.
    is_over: bool,
}

impl CandidateState {
    /// Whether chunks wait for a verdict.
    pub(super) fn holds(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.call.is_held())
    }

    /// Whether the next part may be of a call.
    pub(super) fn is_in_call(&self) -> bool {
        self.open.is_some()
    }

    /// How many bytes are kept of arguments.
    pub(super) fn bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.arguments.len())
    }

    /// Reads what a chunk has of this candidate. `at` is the place of its first part.
    ///
    /// # Errors
    /// If it has not one reading, or more than a bound allows.
    pub(super) fn read(
        &mut self,
        candidate: &chunk::ChunkCandidate<'_>,
        mut at: PartPlace,
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        for (position, part) in candidate.parts.iter().enumerate() {
            at.place.part = position;
            match ContentPart::read(*part)? {
                ContentPart::Call(call) => self.call(&call, (candidate.index, at), pages, gate)?,
                ContentPart::Ran(ran) => self.hosted.ran(&ran, at, pages, gate)?,
                ContentPart::Result(result) => self.hosted.result(result, at, pages, gate)?,
                ContentPart::Other => {}
            }
        }
        self.hosted.grounded(&candidate.fields, at, pages, gate)?;
        match candidate.ending {
            Some(CandidateEnding::Complete) => self.complete(pages, gate),
            Some(CandidateEnding::Cut) => self.cut(pages, gate),
            None => {}
        }
        Ok(())
    }

    /// A call, or a piece of one: a piece has no name, and the last one nothing at all.
    fn call(
        &mut self,
        call: &FunctionCall<'_>,
        (candidate, at): (u64, PartPlace),
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        // A name starts a call, and so ends the one before it, which has no end of its own.
        if !call.name.is_empty() {
            self.complete(pages, gate);
            if let Some(page) = pages.page(at.page) {
                let signature = call.signature.map(str::to_owned);
                page.calls.push(Begun { place: at.place, candidate, signature });
            }
            return self.begin(call, at, pages, gate);
        }
        if call.args.is_some() {
            return Err(unclear("arguments have no call"));
        }
        let Some(open) = &mut self.open else {
            if call.partial.is_some() || call.continues == Some(true) {
                return Err(unclear("a piece of a call comes that has not begun"));
            }
            if self.denied_last {
                pages.change(at, PartChange::Gone);
            }
            return Ok(());
        };
        match open.call.phase() {
            Phase::Flows => {}
            Phase::Held => open.pieces.push(at),
            Phase::Denied(_) => pages.change(at, PartChange::Gone),
        }
        match call.partial {
            Some(pieces) => open.take(pieces, gate)?,
            None if call.continues != Some(true) => self.complete(pages, gate),
            None => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        call: &FunctionCall<'_>,
        at: PartPlace,
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        // Only `streamFunctionCallArguments` sends pieces: `willContinue`, with or without `partialArgs`.
        let is_whole = call.partial.is_none() && call.continues != Some(true);
        if is_whole {
            let input = call.args.map_or("{}", Value::raw);
            let fate = gate.whole(&CallHead::new(&call.id, &call.name), input);
            self.denied_last = fate != CallOutcome::Passes;
            if let CallOutcome::Denied(text) = fate {
                pages.change(at, PartChange::Text(text));
            }
            return Ok(());
        }
        if call.args.is_some_and(|args| args.entries().is_none_or(|mut entries| entries.next().is_some())) {
            return Err(unclear("the arguments of a call come whole and in pieces"));
        }
        let begun = gate.begin(&CallHead::new(&call.id, &call.name));
        let pieces = if begun.is_held() { vec![at] } else { Vec::new() };
        if let Phase::Denied(text) = begun.phase() {
            pages.change(at, PartChange::Text(text.clone()));
        }
        let mut open = OpenCall { call: begun, arguments: Arguments::new(), pieces, is_over: false };
        if let Some(pieces) = call.partial {
            open.take(pieces, gate)?;
        }
        self.open = Some(open);
        Ok(())
    }

    /// Decides about the open call: it has ended, another call starts, or the candidate is complete.
    fn complete(&mut self, pages: &mut Pages, gate: &mut Gate) {
        let Some(mut open) = self.open.take() else { return };
        if !open.is_over {
            open.call.push(&open.arguments.json(), gate);
        }
        let fate = gate.finish(open.call);
        self.denied_last = fate != CallOutcome::Passes;
        if let CallOutcome::Denied(text) = fate {
            replace(&open.pieces, text, pages);
        }
    }

    /// Decides about the open call after the model was stopped inside it: if it was held, it is replaced by text.
    pub(super) fn cut(&mut self, pages: &mut Pages, gate: &mut Gate) {
        let Some(open) = self.open.take() else { return };
        let was_held = open.call.is_held();
        let fate = gate.cut(open.call);
        self.denied_last = fate != CallOutcome::Passes;
        if let (CallOutcome::Denied(text), true) = (fate, was_held) {
            replace(&open.pieces, text, pages);
        }
    }

    /// Gives up the open call. Returns whether it was held.
    pub(super) fn end(&mut self, gate: &mut Gate) -> bool {
        let Some(open) = self.open.take() else { return false };
        let was_held = open.call.is_held();
        gate.abandon(open.call);
        was_held
    }

    /// Sees a call go on or be denied, and answers the signature that it takes over: with several calls only the
    /// first is signed, and the provider refuses a next turn whose first call is not.
    pub(super) fn takes_over(&mut self, signature: Option<&str>, is_denied: bool) -> Option<String> {
        if is_denied {
            if !self.passed && self.signature.is_none() {
                self.signature = signature.map(str::to_owned);
            }
            return None;
        }
        self.passed = true;
        self.signature.take().filter(|_| signature.is_none())
    }
}

impl OpenCall {
    fn take(&mut self, pieces: Value<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        if self.is_over {
            return Ok(());
        }
        self.arguments.take(pieces)?;
        if self.arguments.len() > gate.tool_input_bytes() {
            // The call is told so much that it knows of more than it may have.
            self.call.push(&self.arguments.json(), gate);
            self.arguments = Arguments::new();
            self.is_over = true;
        }
        Ok(())
    }
}

/// Puts a text in the place of a call's pieces.
fn replace(pieces: &[PartPlace], text: String, pages: &mut Pages) {
    let Some((first, rest)) = pieces.split_first() else { return };
    pages.change(*first, PartChange::Text(text));
    rest.iter().for_each(|at| pages.change(*at, PartChange::Gone));
}
