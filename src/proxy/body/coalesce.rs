//! The source of an answer's body, which joins small pieces that have arrived together.
//!
//! A streaming provider sends each event in a chunk of its own, and each piece costs one inspection, one frame and one
//! write. The source never waits: a piece with nothing behind it yet goes out alone.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::begun::BegunBody;
use crate::proxy::upstream::H1Body;

/// Pieces below this size are joined: to copy a larger one costs more than to send it alone.
const SMALL: usize = 4 << 10;

/// The size at which a joined piece goes out: one full TLS record.
const JOINED: usize = 16 << 10;

/// The origin of a body, and a frame that was read ahead of its turn.
pub(crate) struct Source {
    origin: Origin,
    /// The last poll returned a piece, and none was pending since.
    flows: bool,
    /// What followed the joined pieces and is not joined: a large piece, trailers, an error, the end.
    behind: Option<Came>,
    pieces: Vec<Bytes>,
}

/// One frame, an error, or the end.
type Came = Option<Result<Frame<Bytes>, BrokenOff>>;

/// The other side went away in the middle of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenOff;

enum Origin {
    /// A text of the gateway, or nothing.
    Own(Option<Bytes>),
    H1(H1Body),
    H2(Incoming),
    /// An answer that began before the agent was told of it.
    Begun(Box<BegunBody>),
    Ended,
}

impl Source {
    /// A text of the gateway, or nothing.
    pub(crate) fn own(text: Option<Bytes>) -> Self {
        Self::of(Origin::Own(text))
    }

    /// A body that comes over HTTP/1.1.
    pub(crate) fn h1(body: H1Body) -> Self {
        Self::of(Origin::H1(body))
    }

    /// A body that comes over HTTP/2.
    pub(crate) fn h2(body: Incoming) -> Self {
        Self::of(Origin::H2(body))
    }

    /// An answer that began before the agent was told of it.
    pub(crate) fn begun(body: BegunBody) -> Self {
        Self::of(Origin::Begun(Box::new(body)))
    }

    fn of(origin: Origin) -> Self {
        Self { origin, flows: false, behind: None, pieces: Vec::new() }
    }

    /// Stops reading.
    pub(crate) fn end(&mut self) {
        *self = Self::of(Origin::Ended);
    }

    /// Whether reading was stopped.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.origin, Origin::Ended)
    }

    /// Returns the next frame, an error, or the end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Came> {
        if let Some(behind) = self.behind.take() {
            return Poll::Ready(behind);
        }
        let flowed = std::mem::take(&mut self.flows);
        let came = ready!(self.origin.poll(cx));
        let Some(Ok(frame)) = came else { return Poll::Ready(came) };
        // The first piece after a pause is most often alone: looking for another would cost as much as one.
        self.flows = true;
        match small(frame) {
            Ok(first) if flowed => Poll::Ready(Some(Ok(Frame::data(self.join(first, cx))))),
            Ok(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            Err(other) => Poll::Ready(Some(Ok(other))),
        }
    }

    /// Joins a small piece with those that have arrived already.
    fn join(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut length = first.len();
        while length < JOINED {
            let Poll::Ready(came) = self.origin.poll(cx) else {
                self.flows = false;
                break;
            };
            let frame = match came {
                Some(Ok(frame)) => small(frame),
                other => {
                    self.behind = Some(other);
                    break;
                }
            };
            match frame {
                Ok(piece) => {
                    length += piece.len();
                    self.pieces.push(piece);
                }
                Err(frame) => {
                    self.behind = Some(Some(Ok(frame)));
                    break;
                }
            }
        }
        if self.pieces.is_empty() {
            return first;
        }
        let mut joined = Vec::with_capacity(length);
        joined.extend_from_slice(&first);
        self.pieces.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
        joined.into()
    }

    /// Whether the whole body has been returned.
    pub(crate) fn has_ended(&self) -> bool {
        match (&self.behind, &self.origin) {
            (Some(behind), _) => behind.is_none(),
            (None, Origin::Own(text)) => text.is_none(),
            (None, Origin::H1(body)) => body.is_end_stream(),
            (None, Origin::H2(body)) => body.is_end_stream(),
            (None, Origin::Begun(body)) => body.has_ended(),
            (None, Origin::Ended) => true,
        }
    }

    /// Whether all announced bytes have been returned. Over h2 the end may be a frame of its own, for which a reader that
    /// knows the length does not wait.
    pub(crate) fn is_used_up(&self) -> bool {
        let is_awaited = matches!(self.origin, Origin::H1(_) | Origin::H2(_)) && self.behind.is_none();
        self.has_ended() || is_awaited && self.size_hint().exact() == Some(0)
    }

    /// How many bytes are left.
    pub(crate) fn size_hint(&self) -> SizeHint {
        let left = match &self.origin {
            Origin::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Origin::H1(body) => body.size_hint(),
            Origin::H2(body) => body.size_hint(),
            Origin::Begun(_) => SizeHint::default(),
            Origin::Ended => SizeHint::with_exact(0),
        };
        let Some(Some(Ok(behind))) = &self.behind else { return left };
        let behind = behind.data_ref().map_or(0, |data| data.len() as u64);
        left.exact().map_or(left, |exact| SizeHint::with_exact(exact + behind))
    }
}

impl Origin {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Came> {
        match self {
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::H1(body) => Pin::new(body).poll_frame(cx).map_err(|_| BrokenOff),
            Self::H2(body) => Pin::new(body).poll_frame(cx).map_err(|_| BrokenOff),
            Self::Begun(body) => body.poll(cx).map_ok(Frame::data),
            Self::Ended => Poll::Ready(None),
        }
    }
}

/// Returns a small piece; else the frame unchanged.
fn small(frame: Frame<Bytes>) -> Result<Bytes, Frame<Bytes>> {
    match frame.into_data() {
        Ok(data) if data.len() < SMALL => Ok(data),
        Ok(data) => Err(Frame::data(data)),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http::Request;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// What comes out of a body of these chunks, which came all at once and have trailers behind them: data by its
    /// length, anything else as 0.
    async fn lengths(chunks: &[usize]) -> Vec<usize> {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let mut stream =
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: t\r\n\r\n".to_vec();
        for &length in chunks {
            stream.extend_from_slice(format!("{length:x}\r\n{}\r\n", "x".repeat(length)).as_bytes());
        }
        stream.extend_from_slice(b"0\r\nt: 1\r\n\r\n");
        near.write_all(&stream).await.unwrap();
        let (sender, mut lengths) = tokio::sync::mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            let sender = sender.clone();
            async move {
                let mut source = Source::h2(request.into_body());
                while let Some(frame) = poll_fn(|cx| source.poll(cx)).await {
                    sender.send(frame.unwrap().data_ref().map_or(0, Bytes::len)).unwrap();
                }
                Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
        let reading = async {
            let mut found = Vec::new();
            while found.last() != Some(&0) {
                found.push(lengths.recv().await.unwrap());
            }
            found
        };
        tokio::select! {
            _ = connection => panic!("the connection ended"),
            found = reading => found,
        }
    }

    #[tokio::test]
    async fn no_byte_is_lost_and_what_is_behind_comes_after() {
        for chunks in [&[5, 7][..], &[5, SMALL, 7, 9], &[100; 500], &[SMALL - 1; 9], &[SMALL, SMALL], &[]] {
            let found = lengths(chunks).await;
            assert_eq!(found.iter().sum::<usize>(), chunks.iter().sum::<usize>(), "{found:?}");
            assert!(found.iter().all(|length| *length < JOINED + SMALL), "{found:?}");
        }
    }

    #[test]
    fn a_text_of_our_own_is_one_piece() {
        let mut source = Source::own(Some(Bytes::from_static(b"text")));
        assert!(!source.has_ended() && !source.is_used_up());
        assert_eq!(source.size_hint().exact(), Some(4));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = source.poll(&mut cx) else { panic!("no text") };
        assert_eq!(frame.into_data().unwrap(), "text");
        assert!(source.has_ended() && source.is_used_up());
        assert!(matches!(source.poll(&mut cx), Poll::Ready(None)));
    }
}
