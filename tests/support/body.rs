//! A body that is written while it is being sent, for upstreams that stream and agents that upload slowly.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

/// The writing end; dropping it ends the body.
pub(crate) type Writer = mpsc::Sender<Result<Frame<Bytes>, Aborted>>;

/// The body was given up: HTTP/1 closes the connection in the middle of it, h2 resets the stream.
#[derive(Debug, thiserror::Error)]
#[error("the body was aborted on purpose")]
pub(crate) struct Aborted;

/// The sending end, a body of unknown length unless `length` says it.
pub(crate) struct Streamed {
    frames: mpsc::Receiver<Result<Frame<Bytes>, Aborted>>,
    length: Option<u64>,
}

/// A body and the end that writes it. The channel holds one frame: a writer waits for the network.
pub(crate) fn streamed(length: Option<u64>) -> (Writer, Streamed) {
    let (writer, frames) = mpsc::channel(1);
    (writer, Streamed { frames, length })
}

/// A body that is there already, with trailers where there are any.
pub(crate) fn whole(bytes: Bytes, trailers: Option<HeaderMap>) -> Streamed {
    let length = trailers.is_none().then_some(bytes.len() as u64);
    let (writer, frames) = mpsc::channel(2);
    if !bytes.is_empty() {
        writer.try_send(Ok(Frame::data(bytes))).unwrap();
    }
    if let Some(trailers) = trailers {
        writer.try_send(Ok(Frame::trailers(trailers))).unwrap();
    }
    Streamed { frames, length }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.frames.poll_recv(context)
    }

    fn is_end_stream(&self) -> bool {
        self.length == Some(0)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.length.map_or_else(http_body::SizeHint::default, http_body::SizeHint::with_exact)
    }
}
