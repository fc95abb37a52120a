//! The queue of blocks: the first is open and is written as it comes, what belongs to others waits.

use super::block::{Block, BlockContent, CallBlock, Prose};
use super::event::{self, Delta};
use super::waiting::Waiting;
use super::{MessagesReply, Paper};
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::JsonText;
use crate::wire::json::{Document, Kind, Limits};

impl MessagesReply {
    /// Says a piece of text or thinking: in the last block if that is one, else in a new one, which white space alone
    /// does not begin.
    pub(super) fn prose(
        &mut self,
        prose: Prose,
        piece: JsonText<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerFailure> {
        self.written += piece.len();
        if self.blocks.back().is_none_or(|block| block.kind() != Some(prose)) {
            if piece.is_blank() {
                piece.write(self.blanks_of(prose));
                return self.hold(piece.len());
            }
            let blanks = std::mem::take(self.blanks_of(prose));
            self.forget_blanks();
            let mut block = Block::prose(prose, &self.terms.route.label);
            let blanks = JsonText::Raw(str::from_utf8(&blanks).unwrap_or_default());
            block.sign(blanks);
            block.waiting.push(blanks);
            self.blocks.push_back(block);
        }
        let is_alone = self.blocks.len() == 1;
        let Some(block) = self.blocks.back_mut() else { return Ok(()) };
        block.sign(piece);
        if is_alone && block.is_started {
            self.paper.piece(self.index, prose, piece, out);
            return self.hold(0);
        }
        block.waiting.push(piece);
        self.hold(piece.len())?;
        self.advance(out);
        Ok(())
    }

    fn blanks_of(&mut self, prose: Prose) -> &mut Vec<u8> {
        let [text, thinking] = &mut self.blanks;
        match prose {
            Prose::Text => text,
            Prose::Thinking => thinking,
        }
    }

    /// White space that waited for a block of its kind goes: another block begins.
    fn forget_blanks(&mut self) {
        for blanks in &mut self.blanks {
            self.held = self.held.saturating_sub(blanks.len());
            blanks.clear();
        }
    }

    /// A call takes its place.
    pub(super) fn begin_call(&mut self, number: u32, out: &mut Vec<u8>) {
        self.forget_blanks();
        self.blocks.push_back(Block::call(number));
        self.advance(out);
    }

    pub(super) fn name_call(&mut self, number: u32, id: Option<&str>, name: &str, out: &mut Vec<u8>) {
        if let Some((call, _)) = self.call(number) {
            call.id = id.map(str::to_owned);
            call.name = Some(name.to_owned());
        }
        self.advance(out);
    }

    pub(super) fn call_input(
        &mut self,
        number: u32,
        piece: JsonText<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerFailure> {
        self.written += piece.len();
        let is_whole = matches!(self.paper, Paper::Whole(_));
        let is_blank = piece.is_blank();
        match self.call(number) {
            Some((call, waiting)) => {
                // What goes on behind an object is none.
                call.is_complete &= is_blank;
                if is_whole { call.input.push_str(&piece.text()) } else { waiting.push(piece) }
            }
            None if is_blank => return Ok(()),
            None => return Err(AnswerFailure::unreadable("the input of a call goes on behind its end")),
        }
        self.hold(piece.len())?;
        self.advance(out);
        Ok(())
    }

    pub(super) fn complete_call(&mut self, number: u32, out: &mut Vec<u8>) {
        if let Some((call, _)) = self.call(number) {
            call.is_complete = true;
        }
        self.advance(out);
    }

    /// A call of the queue, with what waits of its input.
    fn call(&mut self, number: u32) -> Option<(&mut CallBlock, &mut Waiting)> {
        self.blocks.iter_mut().rev().find_map(|block| match &mut block.content {
            BlockContent::Call(call) if call.number == number => Some((call, &mut block.waiting)),
            BlockContent::Call(_) | BlockContent::Text | BlockContent::Thinking(_) => None,
        })
    }

    /// Counts more bytes that wait.
    fn hold(&mut self, bytes: usize) -> Result<(), AnswerFailure> {
        self.held += bytes;
        let most = self.terms.limits.body_bytes;
        if self.held + self.paper.held() > most {
            let message = format!("more of the answer waits than {most} bytes (limits.decodedBodyBytes)");
            return Err(AnswerFailure::unreadable(&message));
        }
        Ok(())
    }

    /// Writes what can be written: the first block, and those behind it while the first is complete.
    fn advance(&mut self, out: &mut Vec<u8>) {
        while let Some(mut block) = self.blocks.pop_front() {
            if !block.is_started && block.can_start() {
                self.start(&mut block, out);
            }
            if block.is_started {
                self.write_waiting(&mut block, out);
            }
            if self.blocks.is_empty() || !block.is_started || !block.is_complete() {
                self.blocks.push_front(block);
                break;
            }
            self.close(block, out);
        }
    }

    fn start(&mut self, block: &mut Block, out: &mut Vec<u8>) {
        self.begin_message(out);
        block.is_started = true;
        match (&block.content, &mut self.paper) {
            (BlockContent::Text, paper) => paper.start_prose(self.index, Prose::Text, out),
            (BlockContent::Thinking(_), paper) => paper.start_prose(self.index, Prose::Thinking, out),
            (BlockContent::Call(call), Paper::Stream) => {
                let (id, name) = head_of(call, &mut self.ids, &self.terms);
                self.has_called = true;
                event::call_start(self.index, &id, name, out);
            }
            // It is written at its end, when its input is known.
            (BlockContent::Call(_), Paper::Whole(_)) => {}
        }
    }

    fn write_waiting(&mut self, block: &mut Block, out: &mut Vec<u8>) {
        if block.waiting.is_empty() {
            return;
        }
        self.held = self.held.saturating_sub(block.waiting.len());
        let waiting = block.waiting.take();
        // Only texts were written into it.
        let piece = JsonText::Raw(str::from_utf8(&waiting).unwrap_or_default());
        match block.kind() {
            Some(prose) => self.paper.piece(self.index, prose, piece, out),
            None => event::delta(self.index, Delta::Input, piece, out),
        }
    }

    fn close(&mut self, block: Block, out: &mut Vec<u8>) {
        match (block.content, &mut self.paper) {
            (BlockContent::Text, paper) => paper.stop_text(self.index, out),
            (BlockContent::Thinking(signature), paper) => {
                paper.stop_thinking(self.index, &signature.text(), out)
            }
            (BlockContent::Call(_), Paper::Stream) => event::stop(self.index, out),
            (BlockContent::Call(call), Paper::Whole(content)) => {
                let (id, name) = head_of(&call, &mut self.ids, &self.terms);
                self.has_called = true;
                self.held = self.held.saturating_sub(call.input.len());
                let input = call.input.trim_ascii();
                super::paper::separate(content);
                event::call_head(&id, name, content);
                content.extend_from_slice(if input.is_empty() { b"{}" } else { input.as_bytes() });
                content.push(b'}');
            }
        }
        self.index += 1;
    }

    /// Writes all that waits: nothing follows. `is_cut` says that the model reached the limit of tokens.
    ///
    /// # Errors
    /// If a call cannot be given to the agent.
    pub(super) fn close_all(&mut self, is_cut: bool, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        self.forget_blanks();
        while let Some(mut block) = self.blocks.pop_front() {
            let is_whole = matches!(self.paper, Paper::Whole(_));
            match left_out(&block, is_whole, is_cut)? {
                Some(what) => self.dropped.count(what),
                None => {
                    if !block.is_started {
                        self.start(&mut block, out);
                    }
                    self.write_waiting(&mut block, out);
                    self.close(block, out);
                }
            }
        }
        Ok(())
    }
}

/// The id and the name of a call, as the agent has them.
fn head_of<'a>(
    call: &'a CallBlock,
    ids: &mut super::ids::CallIds,
    terms: &'a super::ReplyTerms,
) -> (String, &'a str) {
    let name = call.name.as_deref().unwrap_or_default();
    let name = terms.names.get(name).map_or(name, String::as_str);
    (ids.next(&terms.id, call.id.as_deref()), name)
}

/// Why the agent does not get a block at the answer's end; `None` if it does.
fn left_out(block: &Block, is_whole: bool, is_cut: bool) -> Result<Option<&'static str>, AnswerFailure> {
    let BlockContent::Call(call) = &block.content else { return Ok(None) };
    if call.name.is_none() {
        let is_empty = block.waiting.is_empty() && call.input.is_empty();
        let failure = || AnswerFailure::unreadable("a call of the model has no name");
        return if is_empty { Ok(Some("call without a name")) } else { Err(failure()) };
    }
    // A stream passes any input: the guard behind decides, and some clients raise.
    if !is_whole || call.input.trim_ascii().is_empty() || is_object(&call.input) {
        return Ok(None);
    }
    let failure = || AnswerFailure::unreadable("the input of a call is no JSON object");
    if is_cut { Ok(Some("cut call")) } else { Err(failure()) }
}

fn is_object(input: &str) -> bool {
    let document = Document::parse(input.as_bytes(), Limits::default());
    document.is_ok_and(|document| document.root().kind() == Kind::Object)
}
