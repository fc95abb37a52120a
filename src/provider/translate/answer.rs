//! Translates one answer: what the model's server sends goes in, what the agent reads comes out.

use std::collections::BTreeMap;

use super::{AgentRoute, AnswerLimits, Dropped, Listen, ReadAnswer, Transforms, WriteAnswer};
use crate::call::FailureClass::{Timeout, Unavailable};
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::Said;
use crate::call::{Dialect, Usage};
use crate::provider::anthropic::{MessagesReply, ReplyTerms};
use crate::provider::openai_chat::{ChatReader, HearTerms};

/// What a translation must know of the request, the model and the policy.
#[derive(Debug, Clone)]
pub struct AnswerTerms {
    /// The dialect of the agent.
    pub agent: Dialect,
    /// The dialect of the model.
    pub model: Dialect,
    /// The model's label and the route, which the agent reads.
    pub route: AgentRoute,
    /// 24 hex digits of the exchange, of which the answer's id is made.
    pub exchange: String,
    /// The agent asked for a stream.
    pub is_stream: bool,
    /// The request asks for thinking.
    pub shows_thinking: bool,
    /// The request's stop sequences.
    pub stop_sequences: Vec<String>,
    /// The agent's name of each tool that was sent under another name.
    pub names: BTreeMap<String, String>,
    pub transforms: Transforms,
    /// The request offers [`EXIT_TOOL`](super::EXIT_TOOL) beside the agent's tools.
    pub has_exit_tool: bool,
    /// The estimate of the request's tokens, if there is one.
    pub input_estimate: Option<u64>,
    /// By how many bytes of text a token is estimated.
    pub bytes_per_token: f64,
    /// A chunk that cannot be read is left out (`failurePolicy: Open`).
    pub drops_unreadable: bool,
    pub limits: AnswerLimits,
}

/// What events tell of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// As the model's server counts; `None` if it does not.
    pub usage: Option<Usage>,
    /// The agent's word for the end; `None` before the answer is whole.
    pub stop_reason: Option<&'static str>,
    /// The server's name of the model.
    pub model: Option<String>,
    /// The server's id of the answer.
    pub id: Option<String>,
    /// What the agent does not get, and what was mended.
    pub dropped: Dropped,
    /// The agent has a call.
    pub has_called: bool,
}

/// Translates one answer.
///
/// Until it [is committed](Self::is_committed) a failure is returned, nothing was appended, and another model may answer.
/// From then on a failure is written as the agent's last event.
pub struct AnswerTranslation {
    reader: Box<dyn ReadAnswer>,
    writer: Box<dyn WriteAnswer>,
    heard: Heard,
    is_over: bool,
}

/// What passed on the way from the reader to the writer.
#[derive(Debug, Default)]
struct Heard {
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
    has_piece: bool,
}

/// Passes pieces on.
struct Passage<'a> {
    heard: &'a mut Heard,
    writer: &'a mut dyn WriteAnswer,
    out: &'a mut Vec<u8>,
}

impl Listen for Passage<'_> {
    fn said(&mut self, said: Said<'_>) -> Result<(), AnswerFailure> {
        match &said {
            Said::Begin { id, model } => {
                self.heard.id = id.map(str::to_owned);
                self.heard.model = model.map(str::to_owned);
            }
            Said::Usage(usage) => self.heard.usage = Some(*usage),
            Said::Text(_)
            | Said::Thinking(_)
            | Said::Hidden
            | Said::CallStart { .. }
            | Said::CallName { .. }
            | Said::CallInput { .. }
            | Said::CallComplete { .. }
            | Said::Stop(_)
            | Said::Failed(_) => self.heard.has_piece = true,
        }
        self.writer.say(&said, self.out)
    }
}

impl AnswerTranslation {
    /// Begins to translate a 2xx answer of this content type, which says whether it is a stream.
    ///
    /// # Errors
    /// If it is neither JSON nor a stream of events, or nobody translates between these dialects.
    pub fn new(terms: AnswerTerms, content_type: &str) -> Result<Self, AnswerFailure> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is_stream = essence.eq_ignore_ascii_case("text/event-stream");
        if !is_stream && !essence.eq_ignore_ascii_case("application/json") {
            return Err(AnswerFailure::unreadable("the answer is neither JSON nor a stream of events"));
        }
        let (reader, writer): (Box<dyn ReadAnswer>, Box<dyn WriteAnswer>) = match (terms.agent, terms.model) {
            (Dialect::Anthropic, Dialect::OpenAIChat) => {
                let chat = HearTerms {
                    transforms: terms.transforms,
                    has_exit_tool: terms.has_exit_tool,
                    drops_unreadable: terms.drops_unreadable,
                    limits: terms.limits,
                };
                let reader = ChatReader::new(&chat, is_stream);
                (Box::new(reader), Box::new(MessagesReply::new(reply_terms(terms))))
            }
            (
                Dialect::Anthropic
                | Dialect::OpenAIChat
                | Dialect::OpenAIResponses
                | Dialect::Gemini
                | Dialect::Bedrock,
                _,
            ) => return Err(AnswerFailure::unsayable("nobody translates between these dialects")),
        };
        Ok(Self { reader, writer, heard: Heard::default(), is_over: false })
    }

    /// Takes the next bytes of the body, and appends what the agent reads of them.
    ///
    /// # Errors
    /// If the model gives no answer, and the agent has nothing of one yet.
    pub fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        self.step(out, |reader, listener| reader.write(piece, listener))
    }

    /// The body has ended: appends what is left.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        let result = self.step(out, |reader, listener| reader.finish(listener));
        self.is_over = true;
        result
    }

    /// The body broke off. No call is completed.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn broken_off(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        let failure = AnswerFailure::new(Unavailable, reason);
        self.step(out, |_, _| Err(failure))
    }

    /// Nothing came for too long.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn timed_out(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), AnswerFailure> {
        let failure = AnswerFailure::new(Timeout, reason);
        self.step(out, |_, _| Err(failure))
    }

    /// Appends the answer's head without a piece: no other model follows, and the agent shall know that one answers. An
    /// answer that the agent wants whole has nothing to append before its end.
    pub fn commit_now(&mut self, out: &mut Vec<u8>) {
        if !self.is_over {
            self.writer.commit(out);
        }
    }

    /// Appends a sign of life, if the agent has a part of a stream.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        if !self.is_over {
            self.writer.ping(out);
        }
    }

    /// Whether the agent has a part of the answer, so that no other model can answer.
    pub fn is_committed(&self) -> bool {
        self.writer.is_committed()
    }

    /// Whether nothing is appended any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the model has said anything, reasoning that nobody reads included.
    pub fn has_piece(&self) -> bool {
        self.heard.has_piece
    }

    /// How many bytes wait.
    pub fn held(&self) -> usize {
        self.reader.held() + self.writer.held()
    }

    /// What events tell of the answer so far.
    pub fn report(&self) -> AnswerReport {
        let mut dropped = self.reader.dropped().clone();
        dropped.add(self.writer.dropped());
        AnswerReport {
            usage: self.heard.usage,
            stop_reason: self.writer.stop_reason(),
            model: self.heard.model.clone(),
            id: self.heard.id.clone(),
            dropped,
            has_called: self.writer.has_called(),
        }
    }

    fn step(
        &mut self,
        out: &mut Vec<u8>,
        read: impl FnOnce(&mut dyn ReadAnswer, &mut dyn Listen) -> Result<(), AnswerFailure>,
    ) -> Result<(), AnswerFailure> {
        if self.is_over {
            return Ok(());
        }
        let mut passage = Passage { heard: &mut self.heard, writer: &mut *self.writer, out };
        let result = read(&mut *self.reader, &mut passage);
        self.is_over = self.reader.is_over() || result.is_err();
        match result {
            Err(failure) if self.writer.is_committed() => self.writer.say(&Said::Failed(&failure), out),
            other => other,
        }
    }
}

fn reply_terms(terms: AnswerTerms) -> ReplyTerms {
    ReplyTerms {
        route: terms.route,
        id: format!("msg_postern_{}", terms.exchange),
        is_stream: terms.is_stream,
        shows_thinking: terms.shows_thinking,
        stop_sequences: terms.stop_sequences,
        names: terms.names,
        input_estimate: terms.input_estimate,
        bytes_per_token: terms.bytes_per_token,
        limits: terms.limits,
    }
}
