//! Looks at the first bytes of a connection, and takes none of them away.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::budget::Reserved;
use super::framed::FREE;
use crate::wire::client_hello::{self, ClientHello, Hello};
use crate::wire::first_bytes::{First, classify};
use crate::wire::http1::{self, Violation};

/// What a connection says first.
#[derive(Debug)]
pub(crate) enum Sniffed {
    Tls(ClientHello),
    /// With the value of its Host field.
    Http1 {
        host: Option<String>,
    },
    /// HTTP/2 without TLS, begun by prior knowledge.
    Http2,
    Opaque,
}

/// Why a connection was closed before it had said what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// Nothing, or half of something, within the time.
    Timeout,
    /// The agent hung up.
    Closed,
    /// A ClientHello that is none.
    Garbage(&'static str),
    /// A ClientHello over its bound.
    TooLong,
    /// The same, of an HTTP/1 head: an answer with this status is due.
    Http(Violation),
    /// There is no room for what has come. An HTTP/1 agent is told so.
    Exhausted { is_http: bool },
}

/// What bounds the look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) hello_bytes: usize,
    pub(crate) head: http1::Limits,
    pub(crate) deadline: Instant,
}

/// Reads until it is clear what the connection is. `taken` holds what was read before; all that has been read comes
/// back beside the answer, to be read again by whoever serves it.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(
    stream: &mut S,
    taken: Bytes,
    bounds: Bounds,
    reserved: &mut Reserved,
) -> (Bytes, Result<Sniffed, Unclear>) {
    let mut bytes = BytesMut::from(taken);
    loop {
        if let Some(answer) = judge(&bytes, bounds) {
            return (bytes.freeze(), answer);
        }
        let counted = if bytes.len() > FREE { bytes.capacity() } else { 0 };
        if reserved.set(counted).is_err() {
            let is_http = matches!(classify(&bytes), First::Http1);
            return (bytes.freeze(), Err(Unclear::Exhausted { is_http }));
        }
        bytes.reserve(bytes.len().clamp(1 << 10, 4 << 10));
        match timeout_at(bounds.deadline, stream.read_buf(&mut bytes)).await {
            Ok(Ok(0) | Err(_)) => return (bytes.freeze(), Err(Unclear::Closed)),
            Ok(Ok(_)) => {}
            Err(_) => return (bytes.freeze(), Err(Unclear::Timeout)),
        }
    }
}

/// `None`: more bytes are needed.
fn judge(bytes: &[u8], bounds: Bounds) -> Option<Result<Sniffed, Unclear>> {
    match classify(bytes) {
        First::NeedMore => None,
        First::Opaque => Some(Ok(Sniffed::Opaque)),
        First::Http2Preface => Some(Ok(Sniffed::Http2)),
        First::Tls => match client_hello::read(bytes) {
            Hello::Complete(hello) => Some(Ok(Sniffed::Tls(hello))),
            Hello::Incomplete if bytes.len() >= bounds.hello_bytes => Some(Err(Unclear::TooLong)),
            Hello::Incomplete => None,
            Hello::Bad(why) => Some(Err(Unclear::Garbage(why))),
            Hello::NotTls => Some(Ok(Sniffed::Opaque)),
        },
        First::Http1 => match http1::first_request(bytes, &bounds.head) {
            Ok(Some(head)) => Some(Ok(Sniffed::Http1 { host: head.host.map(str::to_owned) })),
            Ok(None) => None,
            Err(violation) => Some(Err(Unclear::Http(violation))),
        },
    }
}
