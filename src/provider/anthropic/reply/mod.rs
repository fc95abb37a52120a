//! Writes the neutral pieces of an answer as Messages: a stream of events, or one document.
//!
//! Blocks are a queue (`queue`): the open block closes once another waits and it is complete, so that blocks are numbered
//! without gaps and no two are open, whatever interleaves. Thinking stays open until then: Claude Code takes an answer
//! that breaks off behind a closed block of thinking for a whole one.

mod block;
#[cfg(test)]
pub(in crate::provider) mod checker;
mod event;
mod ids;
mod paper;
mod queue;
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use crate::call::Usage;
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::{JsonText, Said, Stop};
use crate::provider::translate::{AgentRoute, AnswerLimits, Dropped, WriteAnswer, error_event};

use block::{Block, Prose};
use event::{End, Tokens};
use ids::CallIds;
use paper::Paper;

/// What the agent reads where the server's filter left nothing of an answer.
const FILTERED: &str = "[postern] The content filter of the model's server left nothing of this answer.";

/// What a writer must know of the request and the model.
#[derive(Debug, Clone)]
pub(in crate::provider) struct ReplyTerms {
    pub(in crate::provider) route: AgentRoute,
    /// The answer's id.
    pub(in crate::provider) id: String,
    pub(in crate::provider) is_stream: bool,
    pub(in crate::provider) shows_thinking: bool,
    pub(in crate::provider) stop_sequences: Vec<String>,
    /// The agent's name of each tool that was sent under another name.
    pub(in crate::provider) names: BTreeMap<String, String>,
    pub(in crate::provider) input_estimate: Option<u64>,
    pub(in crate::provider) bytes_per_token: f64,
    pub(in crate::provider) limits: AnswerLimits,
}

/// Writes one answer.
pub(in crate::provider) struct MessagesReply {
    terms: ReplyTerms,
    stage: Stage,
    paper: Paper,
    blocks: VecDeque<Block>,
    /// The number of the first block of the queue.
    index: u64,
    /// White space that may become the beginning of a text, and of thinking.
    blanks: [Vec<u8>; 2],
    ids: CallIds,
    usage: Option<Usage>,
    /// How many bytes the model has written.
    written: usize,
    /// How many bytes wait.
    held: usize,
    has_called: bool,
    hides_reasoning: bool,
    stop_reason: Option<&'static str>,
    dropped: Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Running,
    Ended,
}

impl WriteAnswer for MessagesReply {
    fn say(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        if self.stage == Stage::Ended {
            return Ok(());
        }
        match *said {
            Said::Text(piece) => return self.prose(Prose::Text, piece, out),
            Said::Thinking(piece) if self.terms.shows_thinking => {
                return self.prose(Prose::Thinking, piece, out);
            }
            Said::Thinking(piece) => {
                self.written += piece.len();
                self.hide_reasoning();
            }
            Said::CallStart { call } => self.begin_call(call, out),
            Said::CallName { call, id, name } => self.name_call(call, id, name, out),
            Said::CallInput { call, piece } => return self.call_input(call, piece, out),
            Said::CallComplete { call } => self.complete_call(call, out),
            Said::Usage(usage) => self.usage = Some(usage),
            Said::Stop(stop) => return self.end(stop, out),
            Said::Failed(failure) => {
                self.stage = Stage::Ended;
                event::error(&error_event(failure, &self.terms.route), out);
            }
            Said::Hidden => self.hide_reasoning(),
            Said::Begin { .. } => {}
        }
        Ok(())
    }

    fn commit(&mut self, out: &mut Vec<u8>) {
        match self.paper {
            Paper::Stream => self.begin_message(out),
            // A document is written at its end.
            Paper::Whole(_) => {}
        }
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        if self.stage == Stage::Running {
            event::ping(out);
        }
    }

    fn is_committed(&self) -> bool {
        self.stage != Stage::Before
    }

    fn held(&self) -> usize {
        self.held + self.paper.held()
    }

    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn has_called(&self) -> bool {
        self.has_called
    }

    fn stop_reason(&self) -> Option<&'static str> {
        self.stop_reason
    }
}

impl MessagesReply {
    pub(in crate::provider) fn new(terms: ReplyTerms) -> Self {
        Self {
            paper: if terms.is_stream { Paper::Stream } else { Paper::Whole(Vec::new()) },
            terms,
            stage: Stage::Before,
            blocks: VecDeque::new(),
            index: 0,
            blanks: [Vec::new(), Vec::new()],
            ids: CallIds::default(),
            usage: None,
            written: 0,
            held: 0,
            has_called: false,
            hides_reasoning: false,
            stop_reason: None,
            dropped: Dropped::default(),
        }
    }

    /// Writes the beginning of a stream, once.
    fn begin_message(&mut self, out: &mut Vec<u8>) {
        if self.stage == Stage::Before && matches!(self.paper, Paper::Stream) {
            self.stage = Stage::Running;
            let tokens = self.terms.input_estimate.unwrap_or(0);
            event::message_start(&self.terms.id, &self.terms.route.label, tokens, out);
        }
    }

    /// Reasoning is left out, which is recorded once.
    fn hide_reasoning(&mut self) {
        if !self.hides_reasoning {
            self.hides_reasoning = true;
            self.dropped.count("reasoning");
        }
    }

    fn end(&mut self, stop: Stop<'_>, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        if stop == Stop::Filtered && self.index == 0 && self.blocks.is_empty() {
            self.prose(Prose::Text, JsonText::Plain(FILTERED), out)?;
        }
        self.close_all(stop == Stop::Length, out)?;
        let (reason, sequence) = self.reason(stop);
        let end = End { reason, sequence, tokens: self.tokens() };
        self.begin_message(out);
        match &self.paper {
            Paper::Stream => event::end(end, out),
            Paper::Whole(content) => {
                event::head(&self.terms.id, &self.terms.route.label, out);
                out.extend_from_slice(content);
                out.extend_from_slice(b"],");
                event::reason(end, out);
                out.extend_from_slice(b",\"usage\":");
                event::usage(end.tokens, out);
                out.push(b'}');
            }
        }
        self.stop_reason = Some(reason);
        self.stage = Stage::Ended;
        Ok(())
    }

    /// Why the answer ended. A server's word for an end with calls counts for nothing: what the agent has does.
    fn reason<'a>(&self, stop: Stop<'a>) -> (&'static str, Option<&'a str>) {
        match stop {
            Stop::Length => ("max_tokens", None),
            Stop::Done { .. } | Stop::Filtered if self.has_called => ("tool_use", None),
            Stop::Done { sequence: Some(sequence) }
                if self.terms.stop_sequences.iter().any(|own| own == sequence) =>
            {
                ("stop_sequence", Some(sequence))
            }
            // Claude Code takes `refusal` for its provider's own safeguards.
            Stop::Done { .. } | Stop::Filtered => ("end_turn", None),
        }
    }

    /// The tokens for the agent: what the server reports, and estimates of what it does not.
    fn tokens(&self) -> Tokens {
        let usage = self.usage.unwrap_or_default();
        let (read, wrote) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let input = usage.input.map(|all| all.saturating_sub(read).saturating_sub(wrote));
        let estimate = (self.written as f64 / self.terms.bytes_per_token.max(1.0)).ceil() as u64;
        Tokens {
            input: input.or(self.terms.input_estimate).unwrap_or(0),
            cache_write: wrote,
            cache_read: read,
            output: usage.output.unwrap_or(estimate),
        }
    }
}
