//! A connection that becomes a WebSocket: only where a rule says so, and opaque only after a verified 101.

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

use super::conversation::Conversation;
use super::head;
use super::record::Record;
use crate::call::Terms;
use crate::decision::Decision;
use crate::filter::Rewrite;
use crate::filter::scrub::{Scrubber, SecretMatcher};
use crate::policy::destination::{Action, Flow, Protocol};
use crate::provider;
use crate::proxy::body::Body;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure, Refusal, Stop};
use crate::proxy::inbound::names::framing;
use crate::proxy::inbound::session::Session;
use crate::proxy::inbound::tunnel::{Counted, Counts, read_some};
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::Origin;
use crate::telemetry::label::Closed;

/// A WebSocket that was asked for and may be had.
pub(crate) struct Upgrade {
    agent: OnUpgrade,
    /// What the answer's `Sec-WebSocket-Accept` has to be.
    accept: String,
}

/// Whether the request asks for a WebSocket.
///
/// `Upgrade: h2c` is passed over, as RFC 9110 (section 7.8) lets a server do: the request goes on over HTTP/1.1.
/// `CONNECT` inside a connection, and any other protocol, is refused.
pub(crate) fn is_asked(parts: &Parts) -> Result<bool, Stop> {
    if parts.method == http::Method::CONNECT {
        return Err(refused("a connection inside a connection is not to be had"));
    }
    let Some(protocol) = parts.headers.get(header::UPGRADE) else { return Ok(false) };
    if protocol.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return Ok(false);
    }
    if !protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
        return Err(refused("of all protocols, only WebSocket can be upgraded to"));
    }
    Ok(true)
}

/// Whether the request would become a WebSocket, were it served.
pub(crate) fn is_websocket(parts: &Parts) -> bool {
    matches!(is_asked(parts), Ok(true))
}

fn refused(why: &'static str) -> Stop {
    Decision::builtin("upgrade", why).into()
}

/// A WebSocket that no rule allows: 426, at which clients fall back to plain requests at once (design 6.5).
pub(crate) fn not_served(stop: Stop) -> Stop {
    match stop {
        Stop::Denied(refusal) => Stop::Denied(Refusal { status: StatusCode::UPGRADE_REQUIRED, ..refusal }),
        Stop::Failed(failure) => Stop::Failed(failure),
    }
}

/// Writes the wish into a head that was stripped of it. What is to be looked into is asked for without extensions.
pub(crate) fn ask(head: &mut HeaderMap, is_read: bool) {
    if is_read {
        head.remove(header::SEC_WEBSOCKET_EXTENSIONS);
    }
    head.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    head.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

impl Upgrade {
    /// The WebSocket that a request asks for.
    pub(crate) fn of(parts: &mut Parts) -> Result<Self, Stop> {
        let accept = accept_for(&parts.headers)?;
        match parts.extensions.remove::<OnUpgrade>() {
            Some(agent) => Ok(Self { agent, accept }),
            None => Err(refused("this connection cannot be upgraded")),
        }
    }

    /// Verifies the upstream's 101 and answers with it; the socket goes on once hyper is done with the connection.
    pub(crate) fn join(
        self,
        session: &Arc<Session>,
        origin: Origin,
        mut response: Response<Incoming>,
        carries: Carries,
    ) -> Result<(Response<Body>, Socket), Failure> {
        verify(response.headers(), &self.accept)?;
        let upstream = hyper::upgrade::on(&mut response);
        let mut head = std::mem::take(response.headers_mut());
        head::strip(&mut head);
        if let Some(needles) = carries.needles() {
            needles.scrub_head(&mut head);
        }
        ask(&mut head, false);
        session.activity.upgraded.store(true, Ordering::Relaxed);
        let mut answer = Response::new(Body::own(""));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = head;
        Ok((answer, Socket { session: Arc::clone(session), origin, agent: self.agent, upstream, carries }))
    }
}

/// Two connections that become one WebSocket.
pub(crate) struct Socket {
    session: Arc<Session>,
    origin: Origin,
    agent: OnUpgrade,
    upstream: OnUpgrade,
    carries: Carries,
}

/// What is done with what a WebSocket carries.
pub(crate) enum Carries {
    /// It is opaque; real keys are masked in what comes back.
    Bytes(Option<Arc<SecretMatcher>>),
    /// It is looked into, message by message.
    Conversation(Box<Conversation>),
}

impl Carries {
    fn needles(&self) -> Option<&Arc<SecretMatcher>> {
        match self {
            Self::Bytes(needles) => needles.as_ref(),
            Self::Conversation(conversation) => conversation.needles.as_ref(),
        }
    }
}

impl Socket {
    /// Makes this what the session goes on with.
    pub(crate) fn go_on(self, record: Box<Record>) {
        let session = Arc::clone(&self.session);
        session.continue_with(Box::pin(self.run(record)));
    }

    /// Carries bytes or messages between the two, until either breaks off, both have ended, or policy no longer allows
    /// it.
    async fn run(self, mut record: Box<Record>) -> Closed {
        let Self { session, origin, agent, upstream, carries } = self;
        let (Ok(agent), Ok(upstream)) = (agent.await, upstream.await) else { return Closed::AgentGone };
        let gateway = &session.gateway;
        let counts = Counts::new();
        let agent = Counted { stream: TokioIo::new(agent), counts: Arc::clone(&counts), sent: true };
        let upstream = Counted { stream: TokioIo::new(upstream), counts: Arc::clone(&counts), sent: false };
        let limits = &gateway.snapshot().settings.limits;
        let rooms = [(); 2].map(|()| gateway.budget.unread(limits));
        let begun = match &carries {
            Carries::Bytes(_) => None,
            Carries::Conversation(conversation) => Some(Arc::clone(&conversation.snapshot)),
        };
        let both = async {
            match &carries {
                Carries::Bytes(needles) => copy_both(agent, upstream, needles.clone(), rooms).await,
                Carries::Conversation(conversation) => conversation.run(agent, upstream, &mut record).await,
            }
        };
        let idle = gateway.snapshot().settings.timeouts.stream_idle;
        let is_allowed = || is_still_allowed(&gateway.snapshot(), &origin, begun.as_deref());
        let (closed, reason) = counts.until_over(both, idle, gateway.replaced(), is_allowed).await;
        record.socket_ended(counts.received(), reason);
        closed
    }
}

/// What the answer's `Sec-WebSocket-Accept` has to be (RFC 6455, section 4.2.2).
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
        head.get(name).is_some_and(|found: &HeaderValue| found.as_bytes().eq_ignore_ascii_case(value))
    };
    let accepted =
        head.get(header::SEC_WEBSOCKET_ACCEPT).is_some_and(|found| found.as_bytes() == expected.as_bytes());
    if accepted && says(header::UPGRADE, b"websocket") && says(header::CONNECTION, b"upgrade") {
        return Ok(());
    }
    Err(Failure::new(Class::Framing, "the upstream switched protocols without having understood the request"))
}

/// Copies both ways, until either breaks off or both have ended.
async fn copy_both<A, U>(
    agent: A,
    upstream: U,
    needles: Option<Arc<SecretMatcher>>,
    [outward, backward]: [Reserved; 2],
) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite,
    U: AsyncRead + AsyncWrite,
{
    let (mut from_agent, mut to_agent) = tokio::io::split(agent);
    let (mut from_upstream, mut to_upstream) = tokio::io::split(upstream);
    let out = copy(&mut from_agent, &mut to_upstream, None, outward);
    let back = copy(&mut from_upstream, &mut to_agent, needles.map(Scrubber::new), backward);
    tokio::try_join!(out, back).map(|_| ())
}

/// Copies one direction to its end; what comes from the upstream is scrubbed of real keys, length for length.
async fn copy<R, W>(
    from: &mut R,
    to: &mut W,
    mut scrubber: Option<Scrubber>,
    mut room: Reserved,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut chunks = Vec::new();
    loop {
        let mut read = bytes::BytesMut::new();
        let ended = read_some(from, &mut read, &mut room).await? == 0;
        match &mut scrubber {
            None => chunks.push(read.freeze()),
            Some(scrubber) if ended => scrubber.finish(&mut chunks).map_err(io::Error::other)?,
            Some(scrubber) => scrubber.write(read.freeze(), &mut chunks).map_err(io::Error::other)?,
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

/// `begun` is what was in force when a conversation began.
fn is_still_allowed(snapshot: &Snapshot, origin: &Origin, begun: Option<&Snapshot>) -> bool {
    let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
    let (name, address) = (origin.host.name(), origin.host.ip());
    let flow = Flow { name, address, port: origin.port, protocol };
    match snapshot.destination(&flow).action {
        Action::Inspect(inspection) => match begun {
            // Each message meets the policy in force, but how it is looked at stays as it was.
            Some(begun) => !snapshot.policy().provider_state().denies() && snapshot.guards_like(begun),
            None => {
                let at_provider = provider::spoken_at(name, inspection.provider()).is_some();
                !inspection.upgrade(at_provider).denies()
            }
        },
        Action::Tunnel { .. } => snapshot.policy().audit_only(),
        Action::Deny { .. } => false,
    }
}
