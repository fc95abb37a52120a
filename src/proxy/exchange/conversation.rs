//! A WebSocket to a model: each message of the agent is a request that is read, each of the provider is guarded.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::answer::Hearing;
use super::question::{Question, Reader};
use super::record::Record;
use crate::call::Denial;
use crate::filter::Rewrite;
use crate::filter::scrub::{Scrubber, SecretMatcher};
use crate::provider::adapter::Refusal;
use crate::proxy::body::rewriting::Guarding;
use crate::proxy::body::silence::HUNGRY;
use crate::proxy::budget::Reserved;
use crate::proxy::inbound::session::Session;
use crate::proxy::inbound::tunnel::read_some;
use crate::proxy::snapshot::Snapshot;
use crate::wire::json::Document;
use crate::wire::websocket::{Decoder, Message, POLICY_VIOLATION, Sender, WebSocketError, encode};

/// A WebSocket whose messages are looked into.
pub(crate) struct Conversation {
    pub(crate) session: Arc<Session>,
    /// What was in force when it was opened: its bounds stay.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The request that asked for the WebSocket.
    pub(crate) question: Question,
    /// The name of the credential that is attached.
    pub(crate) credential: Option<String>,
    pub(crate) needles: Option<Arc<SecretMatcher>>,
}

/// What both directions use.
struct Shared<'a, W> {
    guarding: Mutex<Guarding>,
    record: Mutex<&'a mut Record>,
    to_agent: tokio::sync::Mutex<W>,
}

/// What becomes of a message of the agent.
enum Asked {
    GoesOn(Message),
    /// It is answered here.
    Refused(Option<Bytes>),
    /// The connection ends.
    Closed(Message),
}

impl Conversation {
    /// Carries messages both ways, until either side breaks off or both have ended.
    pub(crate) async fn run<A, U>(&self, agent: A, upstream: U, record: &mut Record) -> io::Result<()>
    where
        A: AsyncRead + AsyncWrite,
        U: AsyncRead + AsyncWrite,
    {
        let hearing = Hearing { session: &self.session, snapshot: &self.snapshot, question: &self.question };
        let guarding = hearing.conversation().ok_or_else(|| io::Error::other("nothing is said there"))?;
        let (from_agent, to_agent) = tokio::io::split(agent);
        let (from_upstream, to_upstream) = tokio::io::split(upstream);
        let shared = Shared {
            guarding: Mutex::new(guarding),
            record: Mutex::new(record),
            to_agent: tokio::sync::Mutex::new(to_agent),
        };
        let out = self.ask(from_agent, to_upstream, &shared);
        let back = self.answer(from_upstream, &shared);
        tokio::try_join!(out, back).map(|_| ())
    }

    /// Carries what the agent says.
    async fn ask<W: AsyncWrite + Unpin>(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        shared: &Shared<'_, W>,
    ) -> io::Result<()> {
        let mut decoder = Decoder::new(Sender::Client, self.snapshot.request_body_bytes());
        let mut rooms = self.rooms();
        while let Some(message) = next(&mut decoder, &mut from, None, &mut rooms).await? {
            let asked = match message {
                Ok(Some(message)) => self.judge(message, shared),
                Ok(None) => continue,
                Err(error) => Asked::Closed(Message::close(error.code(), &error.to_string())),
            };
            match asked {
                Asked::GoesOn(message) => to.write_all(&encode(&message, Some(mask()?))).await?,
                Asked::Refused(message) => {
                    self.session.pace.refused(&self.session.gateway.drain).await;
                    if let Some(message) = message {
                        shared.say(&Message::Text(message)).await?;
                    }
                }
                Asked::Closed(message) => {
                    shared.say(&message).await?;
                    return Err(io::Error::other("the agent said what cannot be read"));
                }
            }
            to.flush().await?;
        }
        to.shutdown().await
    }

    fn rooms(&self) -> Rooms {
        let (budget, limits) = (&self.session.gateway.budget, &self.snapshot.settings.limits);
        Rooms { reading: budget.unread(limits), message: budget.open(limits.buffered_bytes) }
    }

    /// Decides by the policy in force, which may have changed since the WebSocket was opened.
    fn judge<W>(&self, message: Message, shared: &Shared<'_, W>) -> Asked {
        let snapshot = self.session.gateway.snapshot();
        let text = match message {
            Message::Text(text) => text,
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => return Asked::GoesOn(message),
            Message::Binary(_) if snapshot.policy().audit_only() => return Asked::GoesOn(message),
            Message::Binary(_) => {
                return Asked::Closed(Message::close(POLICY_VIOLATION, "only text is spoken here"));
            }
        };
        let mut record = lock(&shared.record);
        let reader = Reader {
            session: &self.session,
            snapshot: &snapshot,
            service: self.question.service,
            dialect: self.question.dialect,
        };
        let read = reader.message(&self.question.asked(), &text, &mut record).and_then(|text| {
            let allowances = &self.session.gateway.allowances;
            let credential = self.credential.as_deref();
            let recorded = allowances.admit(snapshot.policy(), credential, SystemTime::now())?;
            record.weighed(recorded.into_iter().collect());
            Ok(text)
        });
        match read {
            Ok(goes_on) => {
                record.asked_again();
                Asked::GoesOn(Message::Text(goes_on))
            }
            Err(denial) => {
                record.refused_again(&denial);
                Asked::Refused(self.refusal(&denial, &text))
            }
        }
    }

    /// What the agent reads in the place of an answer.
    fn refusal(&self, denial: &Denial, text: &Bytes) -> Option<Bytes> {
        let rule = denial.decision.rule.as_ref().map_or("", |rule| rule.as_str());
        let reason = denial.decision.reason.as_deref().unwrap_or_default();
        let message = format!("[postern] Blocked by policy\nRule: {rule}\nReason: {reason}");
        let refusal = Refusal { service: self.question.service, message: &message, answer: denial.answer };
        let limits = self.snapshot.json_limits();
        let document = Document::parse(text, limits).or_else(|_| Document::parse(b"null", limits)).ok()?;
        self.question.adapter.refused_message(&refusal, &document).map(Bytes::from)
    }

    /// Carries what the provider says.
    async fn answer<W: AsyncWrite + Unpin>(
        &self,
        mut from: impl AsyncRead + Unpin,
        shared: &Shared<'_, W>,
    ) -> io::Result<()> {
        let mut decoder = Decoder::new(Sender::Server, self.snapshot.settings.limits.sse_event_bytes);
        let mut rooms = self.rooms();
        loop {
            let patience = (lock(&shared.guarding).guard.held() > 0).then_some(HUNGRY);
            let Some(message) = next(&mut decoder, &mut from, patience, &mut rooms).await? else { break };
            match message {
                Ok(Some(message)) => self.hear(message, shared).await?,
                Ok(None) => shared.say(&Message::Ping(Bytes::new())).await?,
                Err(error) => {
                    shared.say(&Message::close(error.code(), &error.to_string())).await?;
                    return Err(io::Error::other(error));
                }
            }
        }
        shared.to_agent.lock().await.shutdown().await
    }

    async fn hear<W: AsyncWrite + Unpin>(&self, message: Message, shared: &Shared<'_, W>) -> io::Result<()> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) if !lock(&shared.guarding).guard.observes() => {
                let close = Message::close(POLICY_VIOLATION, "only text is spoken here");
                shared.say(&close).await?;
                return Err(io::Error::other("the provider said what cannot be read"));
            }
            other @ (Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => {
                return shared.say(&other).await;
            }
        };
        let mut messages = Vec::new();
        let broken = {
            let mut guarding = lock(&shared.guarding);
            let mut broken = guarding.guard.message(text, &mut messages).err();
            let kept = guarding.guard.kept_bytes();
            if guarding.reserved.set(kept).is_err() {
                broken = guarding.guard.exhausted(&mut messages).err();
            }
            let mut record = lock(&shared.record);
            guarding.tell_facts(&mut record);
            if let Some(broken) = &broken {
                record.broke(broken);
            }
            broken.is_some()
        };
        for message in messages {
            shared.say(&Message::Text(self.scrubbed(message)?)).await?;
        }
        if broken {
            shared.say(&Message::close(POLICY_VIOLATION, "the answer was ended by policy")).await?;
            return Err(io::Error::other("the answer was ended by policy"));
        }
        Ok(())
    }

    fn scrubbed(&self, message: Bytes) -> io::Result<Bytes> {
        let Some(needles) = &self.needles else { return Ok(message) };
        let mut scrubber = Scrubber::new(Arc::clone(needles));
        let mut chunks = Vec::new();
        scrubber.write(message, &mut chunks).map_err(io::Error::other)?;
        scrubber.finish(&mut chunks).map_err(io::Error::other)?;
        Ok(chunks.concat().into())
    }
}

impl<W: AsyncWrite + Unpin> Shared<'_, W> {
    async fn say(&self, message: &Message) -> io::Result<()> {
        let mut to = self.to_agent.lock().await;
        to.write_all(&encode(message, None)).await?;
        to.flush().await
    }
}

/// The room of one direction: for what is read at once, and for a message until it has gone on.
struct Rooms {
    reading: Reserved,
    message: Reserved,
}

/// The next message; none at the end. `Ok(None)` where nothing came for so long.
async fn next(
    decoder: &mut Decoder,
    from: &mut (impl AsyncRead + Unpin),
    patience: Option<Duration>,
    rooms: &mut Rooms,
) -> io::Result<Option<Result<Option<Message>, WebSocketError>>> {
    loop {
        match decoder.next_message() {
            Ok(None) => {}
            found => return Ok(Some(found)),
        }
        // Until here the room was that of the last message, which has gone on by now.
        if rooms.message.set(decoder.held()).is_err() {
            return Ok(Some(Err(WebSocketError::NoRoom)));
        }
        let mut read = BytesMut::new();
        let reading = read_some(from, &mut read, &mut rooms.reading);
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

/// What is shared is whole after every step, so that a lock whose holder failed is as good as another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody may foresee it (RFC 6455, section 10.3).
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
        let mut rooms = Rooms { reading: budget.open(1 << 20), message: budget.open(1 << 20) };

        assert_eq!(next(&mut decoder, &mut far, patience, &mut rooms).await.unwrap(), Some(Ok(None)));
        near.write_all(b"\x81\x02hi").await.unwrap();
        let message = Message::Text(Bytes::from_static(b"hi"));
        assert_eq!(
            next(&mut decoder, &mut far, Some(HUNGRY), &mut rooms).await.unwrap(),
            Some(Ok(Some(message)))
        );
    }
}
