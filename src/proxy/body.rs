//! The one place that meets `http_body`: bodies stream through here, counted, bounded in silence, rewritten if need be.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::error::{Class, Failure};
use super::head;
use super::record::Record;
use super::scrubbing::Scrubbing;
use super::session::Activity;
use super::upstream::H1Body;
use crate::wire::http1::fit_for_trailers;

/// The agent's body on its way upstream.
pub(crate) struct RequestBody {
    incoming: Option<Incoming>,
    progress: Progress,
    silence: Silence,
    activity: Option<Arc<Activity>>,
}

/// When the whole of a request's body had gone on, if it has; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<OnceLock<Instant>>);

impl Progress {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.get().is_some()
    }

    /// Resolves this long after the last byte.
    pub(crate) async fn finished_for(&self, limit: Duration) {
        loop {
            match self.0.get() {
                Some(finished) => return tokio::time::sleep_until(*finished + limit).await,
                None => tokio::time::sleep(limit).await,
            }
        }
    }

    fn finish(&self) {
        self.0.get_or_init(Instant::now);
    }
}

impl RequestBody {
    /// `idle` is how long the agent may say nothing; `activity` hears of what it says.
    pub(crate) fn new(incoming: Incoming, idle: Duration, activity: &Arc<Activity>) -> Self {
        Self {
            incoming: Some(incoming),
            progress: Progress::default(),
            silence: Silence::new(idle),
            activity: Some(Arc::clone(activity)),
        }
    }

    /// A body without a byte.
    pub(crate) fn empty() -> Self {
        let progress = Progress::default();
        progress.finish();
        Self { incoming: None, progress, silence: Silence::new(Duration::MAX), activity: None }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Whether nobody has said how long the body is.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.size_hint().exact().is_none()
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                if let Some(activity) = &self.activity {
                    activity.moved();
                }
                if self.is_end_stream() {
                    self.progress.finish();
                }
                Poll::Ready(Some(Ok(without_forbidden_trailers(frame))))
            }
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Some(Err(Failure::new(Class::Agent, "the request's body broke off"))))
            }
            Poll::Ready(None) => {
                self.progress.finish();
                Poll::Ready(None)
            }
            Poll::Pending if self.silence.poll_too_long(cx) => {
                Poll::Ready(Some(Err(Failure::new(Class::Agent, "the request's body stalled"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}

/// What the agent is given back.
pub(crate) struct Body {
    source: Source,
    scrubbing: Option<Box<Scrubbing>>,
    /// Frames that a rewrite made of one chunk and that are still to go.
    ready: VecDeque<Frame<Bytes>>,
    record: Option<Box<Record>>,
    silence: Silence,
}

enum Source {
    /// A text of our own, or nothing.
    Own(Option<Bytes>),
    H1(H1Body),
    H2(Incoming),
    /// The source has ended; only what is ready remains.
    Ended,
}

impl Body {
    /// A text of our own.
    pub(crate) fn own(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self::over(Source::Own((!text.is_empty()).then_some(text)), Duration::MAX)
    }

    /// A body that comes over HTTP/1.1.
    pub(crate) fn h1(body: H1Body, idle: Duration) -> Self {
        Self::over(Source::H1(body), idle)
    }

    /// A body that comes over HTTP/2.
    pub(crate) fn h2(body: Incoming, idle: Duration) -> Self {
        Self::over(Source::H2(body), idle)
    }

    fn over(source: Source, idle: Duration) -> Self {
        let silence = Silence::new(idle);
        Self { source, scrubbing: None, ready: VecDeque::new(), record: None, silence }
    }

    /// Runs the body through a rewrite; its length is unknown from now on.
    pub(crate) fn scrubbed(mut self, scrubbing: Scrubbing) -> Self {
        self.scrubbing = Some(Box::new(scrubbing));
        self
    }

    /// Tells the record how the body ends.
    pub(crate) fn recorded(mut self, record: Box<Record>) -> Self {
        self.record = Some(record);
        if self.is_end_stream() {
            self.end(None);
        }
        self
    }

    fn end(&mut self, failure: Option<&Failure>) {
        if let Some(record) = self.record.take() {
            record.body_ended(failure);
        }
    }

    fn fail(&mut self, failure: Failure) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        self.source = Source::Ended;
        self.ready.clear();
        self.end(Some(&failure));
        Poll::Ready(Some(Err(failure)))
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.source {
            Source::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Source::H1(body) => Pin::new(body).poll_frame(cx),
            Source::H2(body) => Pin::new(body).poll_frame(cx),
            Source::Ended => Poll::Ready(None),
        }
    }

    fn source_has_ended(&self) -> bool {
        match &self.source {
            Source::Own(text) => text.is_none(),
            Source::H1(body) => body.is_end_stream(),
            Source::H2(body) => body.is_end_stream(),
            Source::Ended => true,
        }
    }

    /// What becomes of one frame of the source: it passes, or goes through the rewrite into `ready`.
    fn take_in(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, Failure> {
        self.silence.broken();
        let frame = without_forbidden_trailers(frame);
        let Some(scrubbing) = &mut self.scrubbing else { return Ok(Some(frame)) };
        scrubbing.frame(frame, &mut self.ready)?;
        Ok(None)
    }

    /// The source has ended: what the rewrite held back follows.
    fn finish(&mut self) -> Result<(), Failure> {
        self.source = Source::Ended;
        match self.scrubbing.take() {
            Some(mut scrubbing) => scrubbing.finish(&mut self.ready),
            None => Ok(()),
        }
    }

    fn hand_out(&mut self, frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if let (Some(record), Some(data)) = (&mut self.record, frame.data_ref()) {
            record.count_received(data.len());
        }
        if self.is_end_stream() {
            self.end(None);
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = self.get_mut();
        loop {
            if let Some(frame) = this.ready.pop_front() {
                return this.hand_out(frame);
            }
            if let Some(scrubbing) = this.scrubbing.as_mut().filter(|scrubbing| scrubbing.has_more()) {
                match scrubbing.go_on(&mut this.ready) {
                    Ok(()) => continue,
                    Err(failure) => return this.fail(failure),
                }
            }
            if matches!(this.source, Source::Ended) && this.scrubbing.is_none() {
                this.end(None);
                return Poll::Ready(None);
            }
            let step = match this.poll_source(cx) {
                Poll::Ready(Some(Ok(frame))) => this.take_in(frame),
                Poll::Ready(Some(Err(_))) => {
                    Err(Failure::new(Class::Exchange, "the upstream broke off its answer"))
                }
                Poll::Ready(None) => this.finish().map(|()| None),
                Poll::Pending if this.silence.poll_too_long(cx) => {
                    Err(Failure::new(Class::Idle, "the upstream said nothing for too long"))
                }
                Poll::Pending => return Poll::Pending,
            };
            match step {
                Ok(Some(frame)) => return this.hand_out(frame),
                Ok(None) => {}
                Err(failure) => return this.fail(failure),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.scrubbing.is_none() && self.source_has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            _ if self.scrubbing.as_ref().is_some_and(|scrubbing| !scrubbing.keeps_length()) => {
                SizeHint::default()
            }
            Source::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Source::H1(body) => body.size_hint(),
            Source::H2(body) => body.size_hint(),
            Source::Ended => SizeHint::with_exact(
                self.ready.iter().filter_map(Frame::data_ref).map(|d| d.len() as u64).sum(),
            ),
        }
    }
}

/// Trailers are fields that nobody decided on: those that frame, route or authenticate are dropped
/// (RFC 9110, section 6.5.1).
fn without_forbidden_trailers(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        let unfit =
            |name: &HeaderName| !fit_for_trailers(name.as_str().as_bytes()) || head::is_left_behind(name);
        let forbidden: Vec<_> = trailers.keys().filter(|name| unfit(name)).cloned().collect();
        for name in forbidden {
            trailers.remove(name);
        }
    }
    frame
}

/// How long a stream may say nothing. Costs a clock reading a chunk, and a timer only while something is waited for.
struct Silence {
    limit: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self { limit, since: Instant::now(), timer: None }
    }

    fn broken(&mut self) {
        self.since = Instant::now();
    }

    fn poll_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        if self.limit == Duration::MAX {
            return false;
        }
        let due = self.since + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return true;
            }
            timer.as_mut().reset(due);
        }
        false
    }
}
