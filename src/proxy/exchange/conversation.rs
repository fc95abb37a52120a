//! A WebSocket to a model: each message of the agent is read as a request, each of the provider is guarded.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::answer::ResponseGuard;
use super::enforce::{Allowance, EnforcedGuard};
use super::judge::PolicyInForce;
use super::model_request::{ModelRequest, RequestReader};
use super::record::Record;
use super::tool_results::{self, ResultsPlan};
use crate::call::Denial;
use crate::event::Id;
use crate::filter::Rewrite;
use crate::filter::scrub::Scrubber;
use crate::provider::adapter::RefusalMessage;
use crate::proxy::body::silence::HUNGRY;
use crate::proxy::budget::Reserved;
use crate::proxy::inbound::session::Session;
use crate::proxy::inbound::tunnel::read_some;
use crate::proxy::snapshot::Snapshot;
use crate::secret::SecretMatcher;
use crate::tool_output::heard::Heard;
use crate::tool_output::request::Earlier;
use crate::wire::json::{Document, KnownParts};
use crate::wire::websocket::{Decoder, Message, POLICY_VIOLATION, Sender, WebSocketError, encode};

/// A WebSocket whose messages are read.
pub(crate) struct Conversation {
    pub(crate) session: Arc<Session>,
    /// The snapshot when it was opened: its bounds stay.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The request that asked for the WebSocket.
    pub(crate) model_request: ModelRequest,
    pub(crate) allowance: Allowance,
    pub(crate) secrets: Option<Arc<SecretMatcher>>,
    /// Judges the calls of the provider's messages.
    pub(crate) judge: Arc<PolicyInForce>,
}

/// What both directions use.
struct Directions<'a, W> {
    guard: Mutex<EnforcedGuard>,
    record: Mutex<&'a mut Record>,
    heard: Heard,
    to_agent: tokio::sync::Mutex<W>,
}

/// The outcome of a message of the agent.
enum MessageOutcome {
    Send(Message),
    /// A request to the model, which may go on.
    Ask(Bytes),
    /// It is answered here.
    Refuse(Option<Bytes>),
    /// The connection ends.
    Close(Message),
}

impl Conversation {
    /// Carries messages both ways, until either side breaks off or both have ended.
    pub(crate) async fn run<A, U>(&self, agent: A, upstream: U, record: &mut Record) -> io::Result<()>
    where
        A: AsyncRead + AsyncWrite,
        U: AsyncRead + AsyncWrite,
    {
        let (session, snapshot) = (&self.session, &self.snapshot);
        let guard = ResponseGuard {
            session,
            snapshot,
            model_request: &self.model_request,
            allowance: &self.allowance,
            facts: None,
        };
        let judge = Arc::clone(&self.judge);
        let message_guard =
            guard.guard_messages(judge).ok_or_else(|| io::Error::other("nothing is said there"))?;
        let (from_agent, to_agent) = tokio::io::split(agent);
        let (from_upstream, to_upstream) = tokio::io::split(upstream);
        let shared = Directions {
            guard: Mutex::new(message_guard),
            record: Mutex::new(record),
            heard: Heard::default(),
            to_agent: tokio::sync::Mutex::new(to_agent),
        };
        let out = self.carry_requests(from_agent, to_upstream, &shared);
        let back = self.carry_answers(from_upstream, &shared);
        tokio::try_join!(out, back).map(|_| ())
    }

    /// Carries the messages of the agent.
    async fn carry_requests<W: AsyncWrite + Unpin>(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        shared: &Directions<'_, W>,
    ) -> io::Result<()> {
        let mut decoder = Decoder::new(Sender::Client, self.snapshot.request_body_bytes());
        let mut buffers = self.buffers();
        while let Some(message) = next(&mut decoder, &mut from, None, &mut buffers).await? {
            let outcome = match message {
                Ok(Some(message)) => self.judge(message, shared),
                Ok(None) => continue,
                Err(error) => MessageOutcome::Close(Message::close(error.code(), &error.to_string())),
            };
            match outcome {
                MessageOutcome::Send(message) => to.write_all(&encode(&message, Some(mask()?))).await?,
                MessageOutcome::Ask(text) => {
                    let text = self.shortened(text, shared).await;
                    lock(&shared.record).ws_request_allowed();
                    to.write_all(&encode(&Message::Text(text), Some(mask()?))).await?;
                }
                MessageOutcome::Refuse(message) => {
                    self.session.pace.refused(&self.session.gateway.drain).await;
                    if let Some(message) = message {
                        shared.say(&Message::Text(message)).await?;
                    }
                }
                MessageOutcome::Close(message) => {
                    shared.say(&message).await?;
                    return Err(io::Error::other("the agent said what cannot be read"));
                }
            }
            to.flush().await?;
        }
        to.shutdown().await
    }

    fn buffers(&self) -> Buffers {
        let (budget, limits) = (&self.session.gateway.budget, &self.snapshot.settings.limits);
        Buffers { reading: budget.unread(limits), message: budget.open(limits.buffered_bytes) }
    }

    /// Decides by the policy in force, which may have changed since the WebSocket was opened.
    fn judge<W>(&self, message: Message, shared: &Directions<'_, W>) -> MessageOutcome {
        let snapshot = self.session.gateway.snapshot();
        let text = match message {
            Message::Text(text) => text,
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => return MessageOutcome::Send(message),
            Message::Binary(_) if snapshot.policy().audit_only() => return MessageOutcome::Send(message),
            Message::Binary(_) => {
                return MessageOutcome::Close(Message::close(POLICY_VIOLATION, "only text is spoken here"));
            }
        };
        let mut record = lock(&shared.record);
        let reader = RequestReader {
            session: &self.session,
            snapshot: &snapshot,
            service: self.model_request.service,
            dialect: self.model_request.dialect,
            host: &self.model_request.host,
            is_vouched: self.model_request.is_vouched,
        };
        let read = reader.message(&self.model_request.asked(), &text, &self.allowance, &mut record);
        let read = read.and_then(|(text, facts)| {
            let recorded = self.allowance.admit(snapshot.policy())?;
            record.emit_audits(recorded.into_iter().collect());
            facts.into_iter().for_each(|facts| self.judge.asked(facts));
            Ok(text)
        });
        match read {
            Ok(text) => MessageOutcome::Ask(text),
            Err(denial) => {
                let event = record.ws_request_denied(&denial);
                MessageOutcome::Refuse(self.refusal(&denial, event, &text))
            }
        }
    }

    /// Shortens the results of tools in a request.
    async fn shortened<W>(&self, text: Bytes, shared: &Directions<'_, W>) -> Bytes {
        let (gateway, snapshot) = (&self.session.gateway, self.session.gateway.snapshot());
        if !gateway.shortened.is_asked(snapshot.policy()) {
            return text;
        }
        let (asked, known) = ((&self.model_request, Earlier::Socket(&shared.heard)), KnownParts::default());
        let shortened = tool_results::shorten(gateway, &snapshot, asked, (&text, &known, ResultsPlan::Open));
        let Some(shortened) = Box::pin(shortened).await else { return text };
        lock(&shared.record).results_shortened(shortened.told, None);
        shortened.body.unwrap_or(text)
    }

    /// Returns the message that the agent reads in place of an answer.
    fn refusal(&self, denial: &Denial, event: Id, text: &Bytes) -> Option<Bytes> {
        let rule = denial.decision.rule.as_ref().map_or("", |rule| rule.as_str());
        let reason = denial.decision.reason.as_deref().unwrap_or_default();
        let message = format!("[postern] Blocked by policy\nRule: {rule}\nReason: {reason}\nEvent: {event}");
        let refusal =
            RefusalMessage { service: self.model_request.service, message: &message, answer: denial.answer };
        let limits = self.snapshot.json_limits();
        let document = Document::parse(text, limits).or_else(|_| Document::parse(b"null", limits)).ok()?;
        self.model_request.adapter.refused_message(&refusal, &document).map(Bytes::from)
    }

    /// Carries the messages of the provider.
    async fn carry_answers<W: AsyncWrite + Unpin>(
        &self,
        mut from: impl AsyncRead + Unpin,
        shared: &Directions<'_, W>,
    ) -> io::Result<()> {
        let mut decoder = Decoder::new(Sender::Server, self.snapshot.settings.limits.sse_event_bytes);
        let mut buffers = self.buffers();
        loop {
            let patience = (lock(&shared.guard).guard.held() > 0).then_some(HUNGRY);
            let Some(message) = next(&mut decoder, &mut from, patience, &mut buffers).await? else { break };
            match message {
                Ok(Some(message)) => self.carry_answer(message, shared).await?,
                Ok(None) => shared.say(&Message::Ping(Bytes::new())).await?,
                Err(error) => {
                    shared.say(&Message::close(error.code(), &error.to_string())).await?;
                    return Err(io::Error::other(error));
                }
            }
        }
        shared.to_agent.lock().await.shutdown().await
    }

    async fn carry_answer<W: AsyncWrite + Unpin>(
        &self,
        message: Message,
        shared: &Directions<'_, W>,
    ) -> io::Result<()> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) if !lock(&shared.guard).guard.observes() => {
                let close = Message::close(POLICY_VIOLATION, "only text is spoken here");
                shared.say(&close).await?;
                return Err(io::Error::other("the provider said what cannot be read"));
            }
            other @ (Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => {
                return shared.say(&other).await;
            }
        };
        let (gateway, snapshot) = (&self.session.gateway, self.session.gateway.snapshot());
        tool_results::hear(gateway, &snapshot, &self.model_request, &text, &shared.heard);
        let mut messages = Vec::new();
        let is_terminated = {
            let mut guard = lock(&shared.guard);
            let mut broken = guard.guard.message(text, &mut messages).err();
            let kept = guard.guard.kept_bytes();
            if guard.reserved.set(kept).is_err() {
                broken = guard.guard.exhausted(&mut messages).err();
            }
            let mut record = lock(&shared.record);
            guard.tell_facts(&mut record);
            if let Some(broken) = &broken {
                record.answer_terminated(broken);
            }
            broken.is_some()
        };
        for message in messages {
            shared.say(&Message::Text(self.scrubbed(message)?)).await?;
        }
        if is_terminated {
            shared.say(&Message::close(POLICY_VIOLATION, "the answer was ended by policy")).await?;
            return Err(io::Error::other("the answer was ended by policy"));
        }
        Ok(())
    }

    fn scrubbed(&self, message: Bytes) -> io::Result<Bytes> {
        let Some(secrets) = &self.secrets else { return Ok(message) };
        let mut scrubber = Scrubber::new(Arc::clone(secrets));
        let mut chunks = Vec::new();
        scrubber.write(message, &mut chunks).map_err(io::Error::other)?;
        scrubber.finish(&mut chunks).map_err(io::Error::other)?;
        Ok(chunks.concat().into())
    }
}

impl<W: AsyncWrite + Unpin> Directions<'_, W> {
    async fn say(&self, message: &Message) -> io::Result<()> {
        let mut to = self.to_agent.lock().await;
        to.write_all(&encode(message, None)).await?;
        to.flush().await
    }
}

/// The budget of one direction: for the bytes of one read, and for a message until it is sent.
struct Buffers {
    reading: Reserved,
    message: Reserved,
}

/// Returns the next message, `None` at the end, or `Some(Ok(None))` after so long without a byte.
async fn next(
    decoder: &mut Decoder,
    from: &mut (impl AsyncRead + Unpin),
    patience: Option<Duration>,
    buffers: &mut Buffers,
) -> io::Result<Option<Result<Option<Message>, WebSocketError>>> {
    loop {
        match decoder.next_message() {
            Ok(None) => {}
            result => return Ok(Some(result)),
        }
        // Until here the budget was that of the last message, which has been sent by now.
        if buffers.message.set(decoder.held()).is_err() {
            return Ok(Some(Err(WebSocketError::NoRoom)));
        }
        let mut read = BytesMut::new();
        let reading = read_some(from, &mut read, &mut buffers.reading);
        let count = match patience {
            None => reading.await?,
            Some(patience) => match tokio::time::timeout(patience, reading).await {
                Ok(count) => count?,
                Err(_) => return Ok(Some(Ok(None))),
            },
        };
        if count == 0 {
            return Ok(None);
        }
        decoder.push(&read);
    }
}

/// A poisoned lock is ignored: the state is consistent after each step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An unpredictable masking key (RFC 6455, section 10.3).
fn mask() -> io::Result<[u8; 4]> {
    let mut mask = [0; 4];
    aws_lc_rs::rand::fill(&mut mask).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::budget::Budget;
    use crate::telemetry::Metrics;

    #[tokio::test]
    async fn silence_while_a_call_is_held_is_noticed() {
        let (mut near, mut far) = tokio::io::duplex(1 << 10);
        let mut decoder = Decoder::new(Sender::Server, 1 << 10);
        let patience = Some(Duration::from_millis(1));
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let mut buffers = Buffers { reading: budget.open(1 << 20), message: budget.open(1 << 20) };

        assert_eq!(next(&mut decoder, &mut far, patience, &mut buffers).await.unwrap(), Some(Ok(None)));
        near.write_all(b"\x81\x02hi").await.unwrap();
        let message = Message::Text(Bytes::from_static(b"hi"));
        assert_eq!(
            next(&mut decoder, &mut far, Some(HUNGRY), &mut buffers).await.unwrap(),
            Some(Ok(Some(message)))
        );
    }
}
