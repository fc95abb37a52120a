//! Bytes that nobody reads, both ways, counted; a tunnel that policy no longer allows is closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::flow::Flow;
use super::listener;
use super::rewind::Rewind;
use crate::event::{self, Decision, Direction, Event, Kind, Payload, Verdict};
use crate::ledger::fresh_id;
use crate::policy::destination::{Action, Protocol};
use crate::telemetry::label::Closed;

/// A buffer for each direction: below it copying costs more, above it memory does.
const BUFFER: usize = 32 << 10;

/// Copies until both sides are done.
pub(crate) async fn run(
    flow: &Flow,
    protocol: Protocol,
    destination: &Arc<event::Destination>,
    agent: Rewind<TcpStream>,
    upstream: TcpStream,
) -> Closed {
    let counts = Arc::new(Counts::new());
    let mut report = Report {
        flow,
        destination,
        counts: Arc::clone(&counts),
        reason: Some("the gateway cut it when it stopped"),
    };
    let mut agent = Counted { stream: agent, counts: Arc::clone(&counts), sent: true };
    let mut upstream = Counted { stream: upstream, counts: Arc::clone(&counts), sent: false };
    let mut replaced = flow.gateway.replaced();
    let idle = flow.snapshot.settings.timeouts.stream_idle;
    let (closed, reason) = {
        let copy = tokio::io::copy_bidirectional_with_sizes(&mut agent, &mut upstream, BUFFER, BUFFER);
        tokio::pin!(copy);
        loop {
            tokio::select! {
                done = &mut copy => break match done {
                    Ok(_) => (Closed::Finished, None),
                    Err(_) => (Closed::AgentGone, Some("one side broke off")),
                },
                () = counts.idle_for(idle) => break (Closed::StreamIdle, Some("nothing flowed for too long")),
                _ = replaced.changed() => {
                    let decided = flow.decide(&flow.gateway.snapshot(), protocol);
                    if matches!(decided.action, Action::Deny { .. }) {
                        break (Closed::PolicyChanged, Some("policy has changed: the destination is denied"));
                    }
                }
            }
        }
    };
    if closed != Closed::Finished {
        listener::reset(upstream.stream);
        listener::reset(agent.stream.into_parts().1);
    }
    report.reason = reason;
    closed
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
            self.flow.gateway.ledger.emit(event);
        }
    }
}

struct Counts {
    begun: Instant,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counts {
    fn new() -> Self {
        Self { begun: Instant::now(), sent: AtomicU64::new(0), received: AtomicU64::new(0) }
    }

    fn total(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) + self.received.load(Ordering::Relaxed)
    }

    /// Resolves when not a byte has flowed for this long, give or take one span.
    async fn idle_for(&self, limit: Duration) {
        let mut seen = self.total();
        let mut due = self.begun.max(Instant::now()) + limit;
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
struct Counted<S> {
    stream: S,
    counts: Arc<Counts>,
    /// Whether what is read here is on its way out.
    sent: bool,
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
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
