//! A socket to an upstream: if writes fail, the answer that came before is still read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::dial::Dialled;
use super::places::Place;

/// An upstream may answer before it has read the whole request (413, 401), and close. The failed writes are ignored, so
/// that the answer is read; without an answer, the read side reports the closed connection.
pub(crate) struct Socket {
    tcp: TcpStream,
    deaf: bool,
    _place: Place,
}

impl Socket {
    pub(crate) fn new(Dialled { tcp, place }: Dialled) -> Self {
        Self { tcp, deaf: false, _place: place }
    }

    fn swallow(&mut self, written: io::Result<usize>, offered: usize) -> io::Result<usize> {
        match written {
            Err(error) if is_gone(&error) => {
                self.deaf = true;
                Ok(offered)
            }
            written => written,
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        written.map(|written| self.swallow(written, buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = bufs.iter().map(|buf| buf.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(offered));
        }
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        written.map(|written| self.swallow(written, offered))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
