//! Bytes that nobody reads, both ways, counted; a tunnel that policy no longer allows is closed.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::flow::Flow;
use super::listener;
use super::rewind::Rewind;
use crate::decision::{Decision, Verdict};
use crate::event::{self, Direction, Event, Kind, Payload};
use crate::ledger::fresh_id;
use crate::policy::destination::Protocol;
use crate::proxy::budget::Reserved;
use crate::proxy::forward::forward_writes;
use crate::proxy::upstream::Dialled;
use crate::telemetry::label::Closed;

/// A buffer for each direction: below it copying costs more, above it memory does.
const BUFFER: usize = 32 << 10;
/// The buffer while memory is short.
const SMALL: usize = 4 << 10;

/// Copies until both sides are done.
pub(crate) async fn run(
    flow: &Flow,
    protocol: Protocol,
    destination: &Arc<event::Destination>,
    agent: Rewind<TcpStream>,
    Dialled { tcp: upstream, place: _place }: Dialled,
) -> Closed {
    let counts = Counts::new();
    let mut report = Report {
        flow,
        destination,
        counts: Arc::clone(&counts),
        reason: Some("the gateway cut it when it stopped"),
    };
    let peer = upstream.peer_addr().ok();
    let mut agent = Counted { stream: agent, counts: Arc::clone(&counts), sent: true };
    let mut upstream = Counted { stream: upstream, counts: Arc::clone(&counts), sent: false };
    let limits = &flow.snapshot.settings.limits;
    let rooms = [(); 2].map(|()| flow.gateway.budget.unread(limits));
    let copy = copy(&mut agent, &mut upstream, rooms);
    let idle = flow.snapshot.settings.timeouts.stream_idle;
    let is_allowed = || flow.may_stay(protocol, peer);
    let (closed, reason) = counts.until_over(copy, idle, flow.gateway.replaced(), is_allowed).await;
    if closed != Closed::Finished {
        listener::reset(upstream.stream);
        listener::reset(agent.stream.into_parts().1);
    }
    report.reason = reason;
    closed
}

/// Copies both ways until both sides have ended.
async fn copy<A, B>(a: A, b: B, [out, back]: [Reserved; 2]) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let ((from_a, to_a), (from_b, to_b)) = (tokio::io::split(a), tokio::io::split(b));
    tokio::try_join!(copy_one_way(from_a, to_b, out), copy_one_way(from_b, to_a, back)).map(|_| ())
}

/// Copies until the end, and passes the end on. While nothing comes, no buffer is held.
async fn copy_one_way<A>(mut from: A, mut to: impl AsyncWrite + Unpin, mut room: Reserved) -> io::Result<()>
where
    A: AsyncRead + Unpin,
{
    let mut buffer = BytesMut::new();
    loop {
        if read_some(&mut from, &mut buffer, &mut room).await? == 0 {
            return to.shutdown().await;
        }
        to.write_all_buf(&mut buffer).await?;
    }
}

/// Reads what is there into a buffer that is empty. While nothing comes, none is held.
pub(crate) async fn read_some(
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    room: &mut Reserved,
) -> io::Result<usize> {
    poll_fn(|cx| {
        buffer.reserve(if room.set(BUFFER).is_ok() { BUFFER } else { SMALL });
        let read = tokio_util::io::poll_read_buf(Pin::new(&mut *from), cx, buffer);
        if read.is_pending() {
            *buffer = BytesMut::new();
            // To need nothing is never too much.
            let _ = room.set(0);
        }
        read
    })
    .await
}

/// The bytes of each direction: the name and these are all that is known of a tunnel. Said when it is dropped, so
/// that one which is cut is recorded too.
struct Report<'a> {
    flow: &'a Flow,
    destination: &'a Arc<event::Destination>,
    counts: Arc<Counts>,
    reason: Option<&'static str>,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let destination = match self.reason {
            Some(reason) => {
                Arc::new(event::Destination { reason: Some(reason.into()), ..(**self.destination).clone() })
            }
            None => Arc::clone(self.destination),
        };
        let counts = [(Direction::Outbound, &self.counts.sent), (Direction::Inbound, &self.counts.received)];
        for (direction, bytes) in counts {
            let mut event = Event::new(fresh_id(), Kind::Response, Decision::of(Verdict::Allow));
            event.direction = direction;
            event.destination = Some(Arc::clone(&destination));
            event.connection = Some(self.flow.id);
            event.payload = Some(Payload { bytes: bytes.load(Ordering::Relaxed), ..Payload::default() });
            self.flow.gateway.emit(event);
        }
    }
}

/// What has flowed, each way.
#[derive(Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counts {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// How many bytes have come for the agent.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for the end of a copy, for silence in it, or for a policy that does not allow it. Answers why it is over,
    /// in words where it did not end by itself.
    pub(crate) async fn until_over(
        &self,
        copy: impl Future<Output = io::Result<()>>,
        idle: Duration,
        mut replaced: watch::Receiver<u64>,
        is_allowed: impl Fn() -> bool,
    ) -> (Closed, Option<&'static str>) {
        let mut copy = pin!(copy);
        // Policy may have changed since it let this begin.
        replaced.mark_changed();
        loop {
            tokio::select! {
                done = &mut copy => return match done {
                    Ok(()) => (Closed::Finished, None),
                    Err(_) => (Closed::AgentGone, Some("one side broke off")),
                },
                () = self.idle_for(idle) => return (Closed::StreamIdle, Some("nothing flowed for too long")),
                _ = replaced.changed() => if !is_allowed() {
                    return (Closed::PolicyChanged, Some("policy has changed: the destination is denied"));
                }
            }
        }
    }

    fn total(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) + self.received.load(Ordering::Relaxed)
    }

    /// Resolves when not a byte has flowed for this long, give or take one span.
    async fn idle_for(&self, limit: Duration) {
        let mut seen = self.total();
        let mut due = Instant::now() + limit;
        loop {
            tokio::time::sleep_until(due).await;
            let now = self.total();
            if now == seen {
                return;
            }
            seen = now;
            due = Instant::now() + limit;
        }
    }
}

/// A stream whose received bytes are counted.
pub(crate) struct Counted<S> {
    pub(crate) stream: S,
    pub(crate) counts: Arc<Counts>,
    /// Whether what is read here is on its way out.
    pub(crate) sent: bool,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let counter = if self.sent { &self.counts.sent } else { &self.counts.received };
        counter.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    forward_writes!(stream);
}
