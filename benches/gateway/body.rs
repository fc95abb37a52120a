//! The one body of both sides: a text, a bulk of zeros or of text, or events that go out one by one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A chunk of a bulk, as large as a write of a busy sender.
const CHUNK: usize = 64 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Source code, as an agent would send it.
static SOURCE: LazyLock<Bytes> =
    LazyLock::new(|| include_str!("load.rs").bytes().cycle().take(CHUNK).collect::<Vec<u8>>().into());

/// Bytes of a bulk.
const BULK: u64 = 1 << 30;

/// An event as LLM providers stream them.
const EVENT: &[u8] = b"event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words \"}}\n\n";

pub(crate) enum Body {
    Text(Option<Bytes>),
    /// So many bytes are left; those that went are counted.
    Bulk {
        left: u64,
        gone: Arc<AtomicU64>,
        is_text: bool,
    },
    /// So many events are left; each is written before the next is there.
    Events {
        left: u32,
        paused: bool,
    },
}

impl Body {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self::Text((!text.is_empty()).then_some(text))
    }

    pub(crate) fn bulk(gone: &Arc<AtomicU64>) -> Self {
        Self::Bulk { left: BULK, gone: Arc::clone(gone), is_text: false }
    }

    pub(crate) fn source(gone: &Arc<AtomicU64>) -> Self {
        Self::Bulk { left: BULK, gone: Arc::clone(gone), is_text: true }
    }

    pub(crate) fn events(left: u32) -> Self {
        Self::Events { left, paused: false }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Text(text) => text.take(),
            Self::Bulk { left: 0, .. } | Self::Events { left: 0, .. } => None,
            Self::Bulk { left, gone, is_text } => {
                let size = usize::try_from(*left).unwrap_or(CHUNK).min(CHUNK);
                *left -= size as u64;
                gone.fetch_add(size as u64, Ordering::Relaxed);
                Some(if *is_text { SOURCE.slice(..size) } else { Bytes::from_static(&ZEROS[..size]) })
            }
            Self::Events { paused: paused @ false, .. } => {
                // A sender that has nothing more flushes what it has: each event becomes a record of its own.
                *paused = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Self::Events { left, paused } => {
                *left -= 1;
                *paused = false;
                Some(Bytes::from_static(EVENT))
            }
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(None) | Self::Bulk { left: 0, .. } | Self::Events { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Bulk { left, .. } => SizeHint::with_exact(*left),
            Self::Events { .. } => SizeHint::default(),
        }
    }
}

/// How many events a chunk of a stream ends.
pub(crate) fn count_events(chunk: &[u8]) -> u64 {
    memchr::memmem::find_iter(chunk, b"\n\n").count() as u64
}
