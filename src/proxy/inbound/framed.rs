//! Checks an agent's HTTP/1 bytes before hyper reads them: only heads and bodies that have one reading pass.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use http::StatusCode;

use super::names::framing;
use super::session::Activity;
use crate::config::Settings;
use crate::event::Id;
use crate::ledger::fresh_id;
use crate::proxy::budget::{Budget, Exhausted, Reserved};
use crate::proxy::exchange::reply;
use crate::proxy::forward::forward_writes;
use crate::wire::http1::{Framer, Limits, State, Violation};

/// How many bytes are read at once while a head is awaited, at most and at least.
const CHUNK: usize = 8 << 10;
const LEAST_CHUNK: usize = 1 << 10;
/// Bytes of a head beyond these count against `limits.bufferedBytes`; fewer are part of the cost of a connection.
pub(crate) const FREE: usize = 8 << 10;

/// A stream whose bytes are judged before hyper sees them.
pub(crate) struct Framed<S> {
    stream: S,
    framer: Framer,
    /// Bytes that have been read; the first `cleared` of them may pass.
    held: BytesMut,
    cleared: usize,
    reserved: Reserved,
    activity: Arc<Activity>,
    found: FramingEndCell,
    /// What is written before the stream is closed.
    farewell: Vec<u8>,
    lingering: Option<Lingering>,
    head_timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

/// How the framer ended the connection, if it did: read once hyper is done.
#[derive(Clone, Default)]
pub(crate) struct FramingEndCell(Arc<OnceLock<FramingEnd>>);

/// How the framer ended a connection.
pub(crate) enum FramingEnd {
    /// With the id of the event that will report it.
    Violation(Violation, Id),
    /// The same, for want of memory for a head.
    Exhausted(Id),
    HeadTimeout,
}

impl FramingEndCell {
    pub(crate) fn get(&self) -> Option<&FramingEnd> {
        self.0.get()
    }

    /// Notes the first end; `false` where there was one.
    fn set(&self, end: FramingEnd) -> bool {
        self.0.set(end).is_ok()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Framed<S> {
    pub(crate) fn new(
        stream: S,
        activity: &Arc<Activity>,
        settings: &Settings,
        budget: &Arc<Budget>,
    ) -> (Self, FramingEndCell) {
        let found = FramingEndCell::default();
        let limits =
            Limits { header_bytes: settings.limits.header_bytes, header_count: settings.limits.header_count };
        let framed = Self {
            stream,
            framer: Framer::new(limits),
            held: BytesMut::new(),
            cleared: 0,
            reserved: budget.unread(&settings.limits),
            activity: Arc::clone(activity),
            found: found.clone(),
            farewell: Vec::new(),
            lingering: None,
            head_timeout: settings.timeouts.agent_head,
            timer: None,
        };
        (framed, found)
    }

    /// Gives cleared bytes to hyper.
    fn hand_over(&mut self, buf: &mut ReadBuf<'_>) {
        let n = self.cleared.min(buf.remaining());
        buf.put_slice(&self.held[..n]);
        self.held.advance(n);
        self.cleared -= n;
        if self.held.is_empty() {
            self.held = BytesMut::new();
            // To shrink never fails.
            let _ = self.reserved.set(0);
        }
    }

    /// Counts the held bytes of a head. `false`: no memory is left, and the connection ends here.
    fn reserve(&mut self) -> bool {
        let counted = if self.held.len() > FREE { self.held.capacity() } else { 0 };
        let fits = self.reserved.set(counted).is_ok();
        if !fits {
            let id = fresh_id();
            self.found.set(FramingEnd::Exhausted(id));
            if !self.activity.is_busy() {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                self.farewell = reply::denied_raw(status, &Exhausted::ruling(), "-", (id, None));
            }
        }
        fits
    }

    /// Checks the held bytes. `false`: the connection ends here.
    fn judge(&mut self) -> bool {
        let is_body = self.framer.state() == State::Body;
        match self.framer.push(&self.held) {
            Ok(progress) => {
                self.cleared = progress.pass;
                true
            }
            Err(violation) => {
                let id = fresh_id();
                // In the middle of an exchange hyper sees a broken body, and the exchange answers.
                let is_first = self.found.set(FramingEnd::Violation(violation, id));
                if is_first && !is_body && !self.activity.is_busy() {
                    let decision = framing(violation.reason()).decision;
                    self.farewell = reply::denied_raw(violation.status(), &decision, "-", (id, None));
                }
                false
            }
        }
    }

    /// Reads straight into hyper's buffer, and takes back only the bytes that may not pass yet.
    fn poll_direct(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let in_body = matches!(self.framer.state(), State::Body | State::Opaque);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let fresh = &buf.filled()[before..];
        if fresh.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.framer.push(fresh) {
            Ok(progress) => {
                self.held.extend_from_slice(&fresh[progress.pass..]);
                buf.set_filled(before + progress.pass);
                Poll::Ready(Ok(()))
            }
            // The head is checked once more with the held bytes, which writes the refusal.
            Err(_) if !in_body => {
                self.held.extend_from_slice(fresh);
                buf.set_filled(before);
                Poll::Ready(Ok(()))
            }
            Err(violation) => {
                buf.set_filled(before);
                self.found.set(FramingEnd::Violation(violation, fresh_id()));
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Whether a head that was begun is not whole in time.
    fn poll_head_timeout(&mut self, cx: &mut Context<'_>) -> bool {
        if self.framer.state() != State::Head {
            self.timer = None;
            return false;
        }
        let limit = self.head_timeout;
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        timer.as_mut().poll(cx).is_ready()
    }
}

/// Reads the rest of a refused request, within bounds, so that a client which writes first reads the answer.
struct Lingering {
    left: usize,
    timer: Pin<Box<Sleep>>,
}

/// How many bytes are read so, and for how long (design 6.6).
const LINGER_BYTES: usize = 64 << 20;
const LINGER: Duration = Duration::from_secs(10);

impl Lingering {
    fn new() -> Self {
        Self { left: LINGER_BYTES, timer: Box::pin(tokio::time::sleep(LINGER)) }
    }

    fn poll<S: AsyncRead + Unpin>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [0; CHUNK];
        while self.left > 0 {
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut *stream).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => self.left = self.left.saturating_sub(read.filled().len()),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return self.timer.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Framed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.cleared > 0 {
                this.hand_over(buf);
                return Poll::Ready(Ok(()));
            }
            if this.activity.upgraded.load(Ordering::Relaxed) && this.framer.state() != State::Opaque {
                this.framer.upgraded();
            }
            if !this.held.is_empty() {
                if !this.judge() {
                    return Poll::Ready(Ok(()));
                }
                if this.cleared > 0 {
                    continue;
                }
            } else if this.framer.state() != State::Head {
                // Between heads no timer runs, and no memory is held.
                this.timer = None;
                let before = buf.filled().len();
                ready!(this.poll_direct(cx, buf))?;
                if buf.filled().len() > before || this.held.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            if this.poll_head_timeout(cx) {
                this.found.set(FramingEnd::HeadTimeout);
                return Poll::Ready(Ok(()));
            }
            this.held.reserve(this.held.len().clamp(LEAST_CHUNK, CHUNK));
            let read = ready!(tokio_util::io::poll_read_buf(Pin::new(&mut this.stream), cx, &mut this.held))?;
            if read == 0 || !this.reserve() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    forward_writes!(stream, but not poll_shutdown);

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.farewell.is_empty() {
            let n = ready!(Pin::new(&mut this.stream).poll_write(cx, &this.farewell))?;
            this.farewell.drain(..n.max(1));
        }
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        // The kernel answers unread bytes by a reset, which could overtake the last answer.
        let unread = this.framer.state() == State::Body || !this.held.is_empty();
        if unread && this.lingering.get_or_insert_with(Lingering::new).poll(&mut this.stream, cx).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}
