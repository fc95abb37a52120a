//! A stream whose first bytes were read ahead, and are read again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::forward::forward_writes;

/// A stream with the bytes that were read of it before.
pub(crate) struct Rewind<S> {
    before: Bytes,
    stream: S,
}

impl<S> Rewind<S> {
    pub(crate) fn new(before: Bytes, stream: S) -> Self {
        Self { before, stream }
    }

    /// The bytes that have not been read again, and the stream.
    pub(crate) fn into_parts(self) -> (Bytes, S) {
        (self.before, self.stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewind<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let n = self.before.len().min(buf.remaining());
        buf.put_slice(&self.before[..n]);
        self.before.advance(n);
        if self.before.is_empty() {
            // Even an empty slice keeps its buffer alive.
            self.before = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewind<S> {
    forward_writes!(stream);
}
