//! Reads ahead below TLS, which asks for 4 KiB at a time: while bytes come in bulk, one system call reads 64 KiB.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::forward::forward_writes;

/// How many bytes are read ahead at once: four full TLS records.
const AHEAD: usize = 64 << 10;

/// A stream that reads ahead after a read has filled its buffer, and frees its own buffer when nothing is left to read.
/// Small messages are read straight into the caller's buffer.
pub(crate) struct ReadAhead<S> {
    stream: S,
    ahead: BytesMut,
    /// The last read was filled: there may be more.
    filled: bool,
}

impl<S> ReadAhead<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, ahead: BytesMut::new(), filled: false }
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ahead.reserve(AHEAD);
        let read = tokio_util::io::poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.ahead);
        if !matches!(read, Poll::Ready(Ok(1..))) {
            self.ahead = BytesMut::new();
            self.filled = false;
        }
        read.map_ok(drop)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() && !this.filled {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            this.filled = buf.remaining() == 0;
            return Poll::Ready(Ok(()));
        }
        if this.ahead.is_empty() {
            ready!(this.poll_ahead(cx))?;
        }
        let n = this.ahead.len().min(buf.remaining());
        buf.put_slice(&this.ahead[..n]);
        this.ahead.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    forward_writes!(stream);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const BITE: usize = 4 << 10;

    #[tokio::test]
    async fn every_byte_comes_in_order_however_it_is_read() {
        let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let (mut writer, reader) = tokio::io::duplex(30_000);
        let mut reader = ReadAhead::new(reader);
        let mut received = Vec::new();
        let writing = async {
            writer.write_all(&sent).await.unwrap();
            drop(writer);
        };
        let reading = async {
            let mut bite = [0; BITE];
            loop {
                let n = reader.read(&mut bite).await.unwrap();
                if n == 0 {
                    return;
                }
                received.extend_from_slice(&bite[..n]);
            }
        };
        tokio::join!(writing, reading);
        assert_eq!(received, sent);
    }

    #[tokio::test]
    async fn what_is_small_is_not_held_and_what_was_large_is_let_go() {
        let (mut writer, reader) = tokio::io::duplex(AHEAD);
        let mut reader = ReadAhead::new(reader);
        let mut bite = [0; BITE];
        writer.write_all(&[1; BITE - 1]).await.unwrap();
        assert_eq!(reader.read(&mut bite).await.unwrap(), BITE - 1);
        assert_eq!(reader.ahead.capacity(), 0);

        writer.write_all(&[2; 3 * BITE]).await.unwrap();
        for _ in 0..3 {
            assert_eq!(reader.read(&mut bite).await.unwrap(), BITE);
        }
        assert!(reader.ahead.capacity() > 0);
        let waiting = std::future::poll_fn(|cx| {
            Poll::Ready(Pin::new(&mut reader).poll_read(cx, &mut ReadBuf::new(&mut bite)).is_pending())
        });
        assert!(waiting.await);
        assert_eq!(reader.ahead.capacity(), 0);
    }

    #[tokio::test]
    async fn an_end_after_a_bulk_is_an_end() {
        let (mut writer, reader) = tokio::io::duplex(AHEAD);
        let mut reader = ReadAhead::new(reader);
        writer.write_all(&[3; BITE]).await.unwrap();
        drop(writer);
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), BITE);
    }
}
