//! The blocks of a streamed message that come one after the other, as Anthropic and Converse send them: holds a call
//! until it is decided, replaces a denied one by text, removes the result of a hosted one, and numbers what follows.
//!
//! The other dialects have no such sequence, and keep machines of their own. In Responses several items are open at
//! once, a call is repeated in up to three events and must agree with itself, and it is events that are numbered. In
//! Chat Completions and Gemini a chunk holds pieces of several choices, so that chunks wait, and not blocks.

use std::collections::HashSet;

use super::{AnswerPart, BrokenAnswer, CallOutcome, Gate, Out, PendingCall, Phase};
use crate::wire::json::{Document, Limits};

/// How many hosted calls of one message may be replaced: their results are recognised by the ids that are kept.
const MOST_REPLACED: usize = 4096;

/// How a dialect writes the text in the place of a call.
pub(in crate::provider) trait BlockDialect {
    /// What the dialect remembers of an open block that is no call.
    type Plain;

    /// Writes the text in the place of a denied call. `number` is the number of its block for the client.
    fn replace(&self, number: u64, text: &str, out: &mut Out);

    /// Ends the block of that text. `received` is the end of the call's block; none where the message ended inside it.
    fn end_replaced(&self, number: u64, received: Option<AnswerPart>, out: &mut Out);
}

/// The blocks of one streamed message, of which at most one is open.
pub(in crate::provider) struct Blocks<D: BlockDialect> {
    dialect: D,
    open: Option<OpenBlock<D::Plain>>,
    /// How many blocks were removed: later ones have lower numbers by so many.
    removed: u64,
    decided: MessageCalls,
}

/// What became of the calls of one message.
#[derive(Debug, Default)]
pub(in crate::provider) struct MessageCalls {
    client_denied: bool,
    client_left: bool,
    hosted_denied: bool,
    /// The ids of hosted calls that were replaced, whose results are removed.
    replaced: HashSet<String>,
}

/// How a block starts.
pub(in crate::provider) enum BlockStart<P> {
    Plain(P),
    /// A call, with the input that stands in the start.
    Call(PendingCall, Option<String>),
    /// The result of a hosted call that was replaced.
    Removed,
}

/// What the open block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum BlockKind<P> {
    Plain(P),
    Call,
    Removed,
}

struct OpenBlock<P> {
    /// Its number as received.
    index: u64,
    content: Content<P>,
}

enum Content<P> {
    Plain(P),
    Call(Box<CallBlock>),
    Removed,
}

/// A call whose input comes.
struct CallBlock {
    call: PendingCall,
    /// The input that stood in the start of the block.
    seed: Option<String>,
    /// What waits for the verdict, in order.
    kept: Vec<KeptPart>,
    kept_bytes: usize,
}

struct KeptPart {
    part: AnswerPart,
    /// Whether it is of the call, and not only among its parts.
    of_call: bool,
}

impl MessageCalls {
    /// Counts a call that is decided.
    pub(in crate::provider) fn count(&mut self, is_hosted: bool, is_denied: bool) {
        self.client_denied |= !is_hosted && is_denied;
        self.client_left |= !is_hosted && !is_denied;
        self.hosted_denied |= is_hosted && is_denied;
    }

    /// Remembers a hosted call that was replaced.
    pub(in crate::provider) fn remove_result_of(&mut self, id: impl Into<String>) {
        self.replaced.insert(id.into());
    }

    /// Whether the call with this id was replaced, so that its result is removed.
    pub(in crate::provider) fn is_replaced(&self, id: &str) -> bool {
        self.replaced.contains(id)
    }

    /// Whether the client had calls to run, and all of them were denied.
    pub(in crate::provider) fn lost_client_calls(&self) -> bool {
        self.client_denied && !self.client_left
    }

    /// Whether the client has no call to run, and some call, hosted or not, was denied.
    pub(in crate::provider) fn lost_calls(&self) -> bool {
        (self.client_denied || self.hosted_denied) && !self.client_left
    }
}

impl<D: BlockDialect> Blocks<D> {
    pub(in crate::provider) fn new(dialect: D) -> Self {
        Self { dialect, open: None, removed: 0, decided: MessageCalls::default() }
    }

    /// Continues after blocks that came complete in the first event of the stream.
    pub(in crate::provider) fn follow(&mut self, decided: MessageCalls, removed: u64) {
        self.decided = decided;
        self.removed = removed;
    }

    /// What became of the calls so far.
    pub(in crate::provider) fn decided(&self) -> &MessageCalls {
        &self.decided
    }

    /// The open block: its number as received, and what it is.
    pub(in crate::provider) fn open(&self) -> Option<(u64, BlockKind<&D::Plain>)> {
        let open = self.open.as_ref()?;
        let kind = match &open.content {
            Content::Plain(plain) => BlockKind::Plain(plain),
            Content::Call(_) => BlockKind::Call,
            Content::Removed => BlockKind::Removed,
        };
        Some((open.index, kind))
    }

    /// Whether a block of a call is open, or of its result.
    pub(in crate::provider) fn is_in_call(&self) -> bool {
        matches!(self.open(), Some((_, BlockKind::Call | BlockKind::Removed)))
    }

    /// How many bytes are kept.
    pub(in crate::provider) fn held(&self) -> usize {
        match &self.open {
            Some(OpenBlock { content: Content::Call(pending), .. }) => pending.kept_bytes,
            Some(_) | None => 0,
        }
    }

    /// Whether blocks have other numbers for the client than they were received with.
    pub(in crate::provider) fn are_renumbered(&self) -> bool {
        self.removed > 0
    }

    /// The number for the client of the block that was received with this number.
    pub(in crate::provider) fn number(&self, index: u64) -> u64 {
        index.saturating_sub(self.removed)
    }

    /// Opens a block; `part` is its start, with its number for the client.
    pub(in crate::provider) fn start(
        &mut self,
        index: u64,
        start: BlockStart<D::Plain>,
        part: AnswerPart,
        out: &mut Out,
    ) {
        let content = match start {
            BlockStart::Plain(plain) => {
                out.release([part]);
                Content::Plain(plain)
            }
            BlockStart::Removed => {
                self.removed += 1;
                Content::Removed
            }
            BlockStart::Call(call, seed) => {
                let mut pending = CallBlock { call, seed, kept: Vec::new(), kept_bytes: 0 };
                match pending.call.phase() {
                    Phase::Denied(text) => self.dialect.replace(self.number(index), text, out),
                    Phase::Flows | Phase::Held => pending.forward(part, out),
                }
                Content::Call(Box::new(pending))
            }
        };
        self.open = Some(OpenBlock { index, content });
    }

    /// Opens a block whose start did not come, or could not be read.
    pub(in crate::provider) fn start_unseen(&mut self, index: u64, plain: D::Plain) {
        self.open = Some(OpenBlock { index, content: Content::Plain(plain) });
    }

    /// Closes the open block if it is no call: its end could not be read. Returns whether it did.
    pub(in crate::provider) fn close_plain(&mut self) -> bool {
        self.open.take_if(|open| matches!(open.content, Content::Plain(_))).is_some()
    }

    /// Takes the next part of the open block; `piece` is what it adds to the input of a call.
    pub(in crate::provider) fn delta(
        &mut self,
        piece: &str,
        part: AnswerPart,
        gate: &mut Gate,
        out: &mut Out,
    ) {
        match self.open.as_mut().map(|open| &mut open.content) {
            Some(Content::Call(pending)) => {
                pending.push(piece, gate);
                pending.forward(part, out);
            }
            Some(Content::Plain(_)) | None => out.release([part]),
            Some(Content::Removed) => {}
        }
    }

    /// Takes a part that is of no block: it keeps its place among those of the open one.
    pub(in crate::provider) fn beside(&mut self, part: AnswerPart, out: &mut Out) {
        match self.open.as_mut().map(|open| &mut open.content) {
            Some(Content::Call(pending)) if pending.call.is_held() => pending.keep(part, false),
            Some(_) | None => out.release([part]),
        }
    }

    /// Takes the end of the open block, and decides its call.
    ///
    /// # Errors
    /// If the call's input came twice and differs, if the call is denied after it went on, or if too many are denied.
    pub(in crate::provider) fn stop(
        &mut self,
        part: AnswerPart,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let Some(OpenBlock { index, content }) = self.open.take() else {
            out.release([part]);
            return Ok(());
        };
        let mut pending = match content {
            Content::Plain(_) => {
                out.release([part]);
                return Ok(());
            }
            Content::Removed => return Ok(()),
            Content::Call(pending) => *pending,
        };
        pending.join_seed(gate)?;
        let (call, number) = (pending.call, self.number(index));
        let (id, is_hosted) = (call.id.clone(), call.hosted);
        let (is_held, is_over) = (call.is_held(), call.is_over());
        let is_replaced = matches!(call.phase(), Phase::Denied(_));
        match gate.finish(call) {
            // Its parts were dropped.
            CallOutcome::Passes if is_held && is_over => {
                return Err(BrokenAnswer::bound("a tool's input is longer than may be held"));
            }
            CallOutcome::Passes => {
                self.decided.count(is_hosted, false);
                out.release(pending.kept.into_iter().map(|kept| kept.part));
                out.release([part]);
                return Ok(());
            }
            CallOutcome::Denied(text) if is_held => {
                self.dialect.replace(number, &text, out);
                out.release(beside_call(pending.kept));
            }
            CallOutcome::Denied(_) if is_replaced => {}
            // Its beginning went on already. Clients execute a call only once it is complete.
            CallOutcome::Denied(text) => return Err(BrokenAnswer::ambiguous(text.trim_end())),
        }
        self.decided.count(is_hosted, true);
        self.dialect.end_replaced(number, Some(part), out);
        if is_hosted {
            if self.decided.replaced.len() >= MOST_REPLACED {
                return Err(BrokenAnswer::bound(format!(
                    "more than {MOST_REPLACED} hosted calls are denied"
                )));
            }
            self.decided.remove_result_of(id);
        }
        Ok(())
    }

    /// Closes the block in which the message ends: the model was stopped there, mostly by the number of its tokens. A
    /// call that was held is not complete, and is replaced.
    pub(in crate::provider) fn cut(&mut self, gate: &mut Gate, out: &mut Out) {
        let Some(OpenBlock { index, content: Content::Call(pending) }) = self.open.take() else { return };
        let CallBlock { call, kept, .. } = *pending;
        let (is_held, is_hosted) = (call.is_held(), call.hosted);
        let fate = gate.cut(call);
        self.decided.count(is_hosted, fate != CallOutcome::Passes);
        let CallOutcome::Denied(text) = fate else { return };
        let number = self.number(index);
        if is_held {
            // Nothing follows, and the APIs take no last message of the model that ends in white space.
            self.dialect.replace(number, text.trim_end(), out);
            out.release(beside_call(kept));
        }
        self.dialect.end_replaced(number, None, out);
    }

    /// Gives up the open block: the stream ended inside it. Returns whether parts of it were held.
    pub(in crate::provider) fn abandon(&mut self, gate: &mut Gate) -> bool {
        let Some(OpenBlock { content: Content::Call(pending), .. }) = self.open.take() else { return false };
        let is_held = pending.call.is_held();
        gate.abandon(pending.call);
        is_held
    }
}

impl CallBlock {
    fn push(&mut self, piece: &str, gate: &mut Gate) {
        // The input of a call that is denied already is compared with its seed and serves nothing else.
        if self.seed.is_some() || !matches!(self.call.phase(), Phase::Denied(_)) {
            self.call.push(piece, gate);
        }
    }

    /// Lets a part of the call go on, keeps it, or drops it.
    fn forward(&mut self, part: AnswerPart, out: &mut Out) {
        match self.call.phase() {
            Phase::Flows => out.release([part]),
            Phase::Denied(_) => {}
            // More came than may be kept: the call will be denied, and its parts need not wait.
            Phase::Held if self.call.is_over() => {
                self.kept.retain(|kept| !kept.of_call);
                self.kept_bytes = self.kept.iter().map(|kept| kept.part.kept_bytes()).sum();
            }
            Phase::Held => self.keep(part, true),
        }
    }

    fn keep(&mut self, part: AnswerPart, of_call: bool) {
        self.kept_bytes += part.kept_bytes();
        self.kept.push(KeptPart { part, of_call });
    }

    /// Clients take the pieces as the input, and without pieces the start's. Where there are both, they must be the same.
    fn join_seed(&mut self, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        let Some(seed) = self.seed.take() else { return Ok(()) };
        if self.call.bytes == 0 {
            self.call.push(&seed, gate);
            return Ok(());
        }
        let is_same = !self.call.is_over()
            && read_once(&seed).is_some_and(|seed| read_once(self.call.input()) == Some(seed));
        if is_same {
            return Ok(());
        }
        Err(BrokenAnswer::ambiguous("the start of a tool call has another input than what follows"))
    }
}

/// The parts that stood among those of a call and are not of it.
fn beside_call(kept: Vec<KeptPart>) -> impl Iterator<Item = AnswerPart> {
    kept.into_iter().filter(|kept| !kept.of_call).map(|kept| kept.part)
}

/// A value that has one reading.
fn read_once(text: &str) -> Option<serde_json::Value> {
    let document = Document::parse(text.as_bytes(), Limits::default()).ok()?;
    document.first_duplicate().is_none().then(|| serde_json::from_str(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the reason to stop is corrected: for the client's calls alone, and with hosted ones.
    fn lost(calls: &[(bool, bool)]) -> (bool, bool) {
        let mut decided = MessageCalls::default();
        calls.iter().for_each(|(is_hosted, is_denied)| decided.count(*is_hosted, *is_denied));
        (decided.lost_client_calls(), decided.lost_calls())
    }

    #[test]
    fn calls_are_lost_if_some_were_denied_and_the_client_has_none_left() {
        let (client, hosted) = (false, true);
        assert_eq!(lost(&[]), (false, false));
        assert_eq!(lost(&[(client, true)]), (true, true));
        assert_eq!(lost(&[(client, true), (client, false)]), (false, false));
        assert_eq!(lost(&[(hosted, true)]), (false, true));
        assert_eq!(lost(&[(hosted, true), (client, false)]), (false, false));
        assert_eq!(lost(&[(hosted, false), (client, true)]), (true, true));
    }
}
