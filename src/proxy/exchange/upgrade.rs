//! Turns a connection into a WebSocket, after a 101 of the upstream that is verified.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::head;
use super::record::Record;
use crate::call::Terms;
use crate::decision::Decision;
use crate::filter::detect::SocketDetector;
use crate::filter::scrub::Scrubber;
use crate::filter::{Refused, Rewrite};
use crate::policy::destination::{Action, Flow, Protocol};
use crate::provider;
use crate::proxy::body::Body;
use crate::proxy::body::request::LONGEST_HELD;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure, Stop};
use crate::proxy::inbound::names::framing;
use crate::proxy::inbound::session::Session;
use crate::proxy::inbound::tunnel::{Counted, Counts, read_some};
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::Origin;
use crate::secret::SecretMatcher;
use crate::telemetry::label::Closed;

/// A WebSocket that was asked for and is allowed.
pub(crate) struct Upgrade {
    agent: OnUpgrade,
    /// The `Sec-WebSocket-Accept` that the upstream must answer.
    accept: String,
}

/// Writes the fields of an upgrade into a head that was stripped of them. If the messages are read, no extension is
/// offered: compressed messages could not be.
pub(crate) fn ask(head: &mut HeaderMap, is_read: bool) {
    if is_read {
        head.remove(header::SEC_WEBSOCKET_EXTENSIONS);
    }
    head.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    head.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

impl Upgrade {
    /// Takes the agent's side of the WebSocket out of a request.
    pub(crate) fn of(parts: &mut Parts) -> Result<Self, Stop> {
        let accept = accept_for(&parts.headers)?;
        match parts.extensions.remove::<OnUpgrade>() {
            Some(agent) => Ok(Self { agent, accept }),
            None => Err(Decision::builtin("upgrade", "this connection cannot be upgraded").into()),
        }
    }

    /// Verifies the upstream's 101. Returns it with the socket, to be started once hyper is done with the connection.
    pub(crate) fn join(
        self,
        session: &Arc<Session>,
        origin: Origin,
        mut response: Response<Incoming>,
        traffic: SocketTraffic,
    ) -> Result<(Response<Body>, Socket), Failure> {
        verify(response.headers(), &self.accept)?;
        let upstream = hyper::upgrade::on(&mut response);
        let mut head = std::mem::take(response.headers_mut());
        head::strip(&mut head);
        if let Some(secrets) = traffic.secrets() {
            secrets.scrub_head(&mut head);
        }
        ask(&mut head, false);
        session.activity.upgraded.store(true, Ordering::Relaxed);
        let mut answer = Response::new(Body::own(""));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = head;
        Ok((answer, Socket { session: Arc::clone(session), origin, agent: self.agent, upstream, traffic }))
    }
}

/// Two connections that become one WebSocket.
pub(crate) struct Socket {
    session: Arc<Session>,
    origin: Origin,
    agent: OnUpgrade,
    upstream: OnUpgrade,
    traffic: SocketTraffic,
}

/// How the traffic of a WebSocket is treated.
pub(crate) enum SocketTraffic {
    /// Opaque but for a search of what the agent sends; real keys are masked on the way back.
    Bytes { secrets: Option<Arc<SecretMatcher>>, detector: Option<Box<SocketDetector>> },
    /// Read message by message.
    Conversation(Box<Conversation>),
}

impl SocketTraffic {
    fn secrets(&self) -> Option<&Arc<SecretMatcher>> {
        match self {
            Self::Bytes { secrets, .. } => secrets.as_ref(),
            Self::Conversation(conversation) => conversation.secrets.as_ref(),
        }
    }
}

impl Socket {
    /// Makes the socket the continuation of its session.
    pub(crate) fn start(self, record: Box<Record>) {
        let session = Arc::clone(&self.session);
        session.continue_with(Box::pin(self.run(record)));
    }

    /// Carries bytes or messages both ways, until either side breaks off, both have ended, or policy no longer allows it.
    async fn run(self, mut record: Box<Record>) -> Closed {
        let Self { session, origin, agent, upstream, mut traffic } = self;
        let (Ok(agent), Ok(upstream)) = (agent.await, upstream.await) else { return Closed::AgentGone };
        let gateway = &session.gateway;
        let counts = Counts::new();
        let agent = Counted { stream: TokioIo::new(agent), counts: Arc::clone(&counts), sent: true };
        let upstream = Counted { stream: TokioIo::new(upstream), counts: Arc::clone(&counts), sent: false };
        let limits = &gateway.snapshot().settings.limits;
        let rooms = [(); 2].map(|()| gateway.budget.unread(limits));
        let begun = match &traffic {
            SocketTraffic::Bytes { detector, .. } => Begun::Bytes { is_searched: detector.is_some() },
            SocketTraffic::Conversation(conversation) => {
                Begun::Conversation(Arc::clone(&conversation.snapshot))
            }
        };
        let both = async {
            match &mut traffic {
                SocketTraffic::Bytes { secrets, detector } => {
                    let rewrites = [
                        detector.take().map(|detector| detector as Box<dyn Rewrite>),
                        secrets.clone().map(|secrets| Box::new(Scrubber::new(secrets)) as Box<dyn Rewrite>),
                    ];
                    let copied = copy_both(agent, upstream, rewrites, rooms).await;
                    if let Some(decision) = copied.as_ref().err().and_then(denied) {
                        record.socket_denied(decision);
                    }
                    copied
                }
                SocketTraffic::Conversation(conversation) => {
                    conversation.run(agent, upstream, &mut record).await
                }
            }
        };
        let idle = gateway.snapshot().settings.timeouts.stream_idle;
        let is_allowed = || is_still_allowed(&gateway.snapshot(), &origin, &begun);
        let (closed, reason) = counts.until_over(both, idle, gateway.replaced(), is_allowed).await;
        record.socket_ended(counts.received(), reason);
        closed
    }
}

/// Returns the `Sec-WebSocket-Accept` for the request's key (RFC 6455, section 4.2.2).
fn accept_for(head: &HeaderMap) -> Result<String, Stop> {
    let key = head.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_key = BASE64_STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16);
    if !is_key || head.get_all(header::SEC_WEBSOCKET_KEY).iter().count() != 1 {
        return Err(framing("the WebSocket key is not one").into());
    }
    let mut salted = key.to_vec();
    salted.extend_from_slice(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, &salted);
    Ok(BASE64_STANDARD.encode(digest))
}

fn verify(head: &HeaderMap, expected: &str) -> Result<(), Failure> {
    let says = |name, value: &[u8]| {
        head.get(name).is_some_and(|given: &HeaderValue| given.as_bytes().eq_ignore_ascii_case(value))
    };
    let accepted =
        head.get(header::SEC_WEBSOCKET_ACCEPT).is_some_and(|given| given.as_bytes() == expected.as_bytes());
    if accepted && says(header::UPGRADE, b"websocket") && says(header::CONNECTION, b"upgrade") {
        return Ok(());
    }
    Err(Failure::new(Class::Framing, "the upstream switched protocols without having understood the request"))
}

/// Copies both ways, until either breaks off or both have ended.
async fn copy_both<A, U>(
    agent: A,
    upstream: U,
    [searched, scrubbed]: [Option<Box<dyn Rewrite>>; 2],
    [outward, backward]: [Reserved; 2],
) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite,
    U: AsyncRead + AsyncWrite,
{
    let (mut from_agent, mut to_agent) = tokio::io::split(agent);
    let (mut from_upstream, mut to_upstream) = tokio::io::split(upstream);
    let out = copy(&mut from_agent, &mut to_upstream, searched, outward);
    let back = copy(&mut from_upstream, &mut to_agent, scrubbed, backward);
    tokio::try_join!(out, back).map(|_| ())
}

/// The decision of policy that ended a copy.
fn denied(error: &io::Error) -> Option<&Decision> {
    match error.get_ref()?.downcast_ref()? {
        Refused::Denied(denial) => Some(&denial.decision),
        Refused::Unreadable(_) => None,
    }
}

/// Copies one direction to its end through a rewrite that keeps its length.
async fn copy<R, W>(
    from: &mut R,
    to: &mut W,
    mut rewrite: Option<Box<dyn Rewrite>>,
    mut room: Reserved,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut chunks, mut holding) = (Vec::new(), None);
    loop {
        let mut read = bytes::BytesMut::new();
        let reading = read_some(from, &mut read, &mut room);
        let is_holding = rewrite.as_ref().is_some_and(|rewrite| rewrite.is_holding());
        // More that comes does not make it longer.
        holding = is_holding.then(|| holding.unwrap_or_else(|| Instant::now() + LONGEST_HELD));
        let count = match holding {
            // A read that is given up has read nothing.
            Some(until) => tokio::time::timeout_at(until, reading).await.ok().transpose()?,
            None => Some(reading.await?),
        };
        if count.is_none() {
            holding = None;
        }
        let ended = count == Some(0);
        match (&mut rewrite, count) {
            (None, _) => chunks.push(read.freeze()),
            (Some(rewrite), None) => rewrite.let_go(&mut chunks).map_err(io::Error::other)?,
            (Some(rewrite), Some(0)) => rewrite.finish(&mut chunks).map_err(io::Error::other)?,
            (Some(rewrite), Some(_)) => {
                rewrite.write(read.freeze(), &mut chunks).map_err(io::Error::other)?;
            }
        }
        for chunk in chunks.drain(..) {
            to.write_all(&chunk).await?;
        }
        to.flush().await?;
        if ended {
            return to.shutdown().await;
        }
    }
}

/// How a WebSocket began.
enum Begun {
    Bytes { is_searched: bool },
    Conversation(Arc<Snapshot>),
}

/// Whether the policy in force still allows a WebSocket.
fn is_still_allowed(snapshot: &Snapshot, origin: &Origin, begun: &Begun) -> bool {
    let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
    let (name, address) = (origin.host.name(), origin.host.ip());
    let flow = Flow { name, address, port: origin.port, protocol };
    match snapshot.destination(&flow).action {
        Action::Inspect(inspection) => match begun {
            // The policy in force decides about each message, but its guard was made under the first one.
            Begun::Conversation(begun) => {
                !snapshot.policy().provider_state().denies() && snapshot.guards_like(begun)
            }
            Begun::Bytes { is_searched } => {
                let at_provider = provider::spoken_at(name, inspection.provider()).is_some();
                // Its messages may be compressed where nothing was searched for, so that nothing can be found from now on.
                let may_be_searched = *is_searched || snapshot.search().is_none();
                may_be_searched && !inspection.upgrade(at_provider).denies()
            }
        },
        Action::Tunnel { .. } => snapshot.policy().audit_only(),
        Action::Deny { .. } => false,
    }
}
