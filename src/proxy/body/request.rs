//! The request's body: streams upstream as it comes, or goes on as it was taken in whole.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::silence::Silence;
use super::transit::{Chunk, Transit};
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure};
use crate::proxy::exchange::head::without_forbidden_trailers;
use crate::proxy::inbound::session::Activity;
use crate::proxy::window::Upload;

/// The agent's body on its way upstream.
pub(crate) struct RequestBody {
    incoming: Option<Incoming>,
    /// A body that was taken in whole, and the room that it has.
    whole: Option<Bytes>,
    reserved: Option<Reserved>,
    progress: Progress,
    silence: Silence,
    activity: Option<Arc<Activity>>,
    /// What has been read and not yet written upstream.
    transit: Option<Transit>,
    /// The room of what an h2 agent may send before it is read.
    upload: Option<Upload>,
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
            whole: None,
            reserved: None,
            progress: Progress::default(),
            silence: Silence::new(idle),
            activity: Some(Arc::clone(activity)),
            transit: None,
            upload: None,
        }
    }

    /// The same, counted on its way upstream.
    pub(crate) fn counted(mut self, transit: Transit, upload: Option<Upload>) -> Self {
        (self.transit, self.upload) = (Some(transit), upload);
        self
    }

    /// A body without a byte.
    pub(crate) fn empty() -> Self {
        Self::whole(Bytes::new(), None)
    }

    /// A body that was taken in whole, and the room that it has until it was sent.
    pub(crate) fn whole(bytes: Bytes, reserved: Option<Reserved>) -> Self {
        let progress = Progress::default();
        if bytes.is_empty() {
            progress.finish();
        }
        let whole = (!bytes.is_empty()).then_some(bytes);
        let silence = Silence::new(Duration::MAX);
        Self {
            incoming: None,
            whole,
            reserved,
            progress,
            silence,
            activity: None,
            transit: None,
            upload: None,
        }
    }

    /// The body, where it was taken in whole.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        self.whole.as_ref()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn take_whole(&mut self) -> Option<Chunk> {
        let whole = self.whole.take()?;
        Some(match self.reserved.take() {
            Some(reserved) => Chunk::reserved(whole, reserved),
            None => Chunk::free(whole),
        })
    }

    fn ended(&mut self) {
        self.progress.finish();
        self.upload = None;
    }

    /// Whether nobody has said how long the body is.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.size_hint().exact().is_none()
    }
}

impl http_body::Body for RequestBody {
    type Data = Chunk;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Failure>>> {
        if self.incoming.is_none() {
            self.progress.finish();
            return Poll::Ready(self.take_whole().map(|whole| Ok(Frame::data(whole))));
        }
        if let Some(transit) = &self.transit {
            ready!(transit.poll_room(cx));
        }
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                if let Some(activity) = &self.activity {
                    activity.moved();
                }
                if self.is_end_stream() {
                    self.ended();
                }
                let carry = |bytes| match &self.transit {
                    Some(transit) => transit.carry(bytes),
                    None => Chunk::free(bytes),
                };
                Poll::Ready(Some(Ok(without_forbidden_trailers(frame).map_data(carry))))
            }
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Some(Err(Failure::new(Class::Agent, "the request's body broke off"))))
            }
            Poll::Ready(None) => {
                self.ended();
                Poll::Ready(None)
            }
            Poll::Pending if self.silence.poll_too_long(cx) => {
                Poll::Ready(Some(Err(Failure::new(Class::Agent, "the request's body stalled"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_none() && self.incoming.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let whole = self.whole.as_ref().map_or(0, Bytes::len) as u64;
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(whole), http_body::Body::size_hint)
    }
}
