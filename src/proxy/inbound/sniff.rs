//! Looks at the first bytes of a connection, and takes none of them away.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::framed::FREE;
use crate::name::host::{Authority, DnsName, Host};
use crate::proxy::budget::Reserved;
use crate::wire::client_hello::{self, ClientHello, Hello};
use crate::wire::first_bytes::{First, classify};
use crate::wire::http1::{self, RequestHead, Violation};

/// What a connection says first.
#[derive(Debug)]
pub(crate) enum Sniffed {
    Tls(ClientHello),
    Http1(HostField),
    /// HTTP/2 without TLS, begun by prior knowledge.
    Http2,
    /// Plainly another protocol.
    Other,
    /// Bytes that a lenient server could take for TLS or HTTP.
    Unclear,
}

/// What the first request of HTTP/1 says of its host.
#[derive(Debug)]
pub(crate) enum HostField {
    Name(DnsName),
    /// An address, or nothing: only HTTP/1.0 may leave `Host` out.
    Nobody,
    /// Something that servers may read differently: a Host that is no name, or a target with an authority of its own.
    Unclear,
}

/// Why a connection was closed before it had said what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SniffError {
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
) -> (Bytes, Result<Sniffed, SniffError>) {
    let mut bytes = BytesMut::from(taken);
    loop {
        if let Some(answer) = judge(&bytes, bounds) {
            return (bytes.freeze(), answer);
        }
        let counted = if bytes.len() > FREE { bytes.capacity() } else { 0 };
        if reserved.set(counted).is_err() {
            let is_http = matches!(classify(&bytes), First::Http1);
            return (bytes.freeze(), Err(SniffError::Exhausted { is_http }));
        }
        bytes.reserve(bytes.len().clamp(1 << 10, 4 << 10));
        match timeout_at(bounds.deadline, stream.read_buf(&mut bytes)).await {
            Ok(Ok(0) | Err(_)) => return (bytes.freeze(), Err(SniffError::Closed)),
            Ok(Ok(_)) => {}
            Err(_) => return (bytes.freeze(), Err(SniffError::Timeout)),
        }
    }
}

/// `None`: more bytes are needed.
fn judge(bytes: &[u8], bounds: Bounds) -> Option<Result<Sniffed, SniffError>> {
    match classify(bytes) {
        First::NeedMore if bytes.len() < bounds.head.header_bytes => None,
        First::Other => Some(Ok(Sniffed::Other)),
        First::Unclear => Some(Ok(Sniffed::Unclear)),
        First::Http2Preface => Some(Ok(Sniffed::Http2)),
        First::Tls => match client_hello::read(bytes) {
            Hello::Complete(hello) => Some(Ok(Sniffed::Tls(hello))),
            Hello::Incomplete if bytes.len() >= bounds.hello_bytes => Some(Err(SniffError::TooLong)),
            Hello::Incomplete => None,
            Hello::Bad(why) => Some(Err(SniffError::Garbage(why))),
            Hello::NotTls => Some(Ok(Sniffed::Unclear)),
        },
        // A request line without end is over the bound of a head.
        First::Http1 | First::NeedMore => match http1::first_request(bytes, &bounds.head) {
            Ok(Some(head)) => Some(Ok(Sniffed::Http1(named(&head)))),
            Ok(None) => None,
            Err(violation) => Some(Err(SniffError::Http(violation))),
        },
    }
}

fn named(head: &RequestHead<'_>) -> HostField {
    let host = head.host.map(|text| Authority::parse(text).map(|authority| authority.host));
    if let Some(authority) = absolute(head.target) {
        // The target goes before Host (RFC 9112, section 3.2.2), and not every server knows.
        let named = Authority::parse(authority).map(|authority| authority.host);
        if host.as_ref() != Some(&named) {
            return HostField::Unclear;
        }
    }
    match host {
        None | Some(Ok(Host::Ip(_))) => HostField::Nobody,
        Some(Ok(Host::Name(name))) => HostField::Name(name),
        Some(Err(_)) => HostField::Unclear,
    }
}

/// The authority of a target that has one: in absolute form, or CONNECT's.
fn absolute(target: &str) -> Option<&str> {
    if target.starts_with(['/', '*']) {
        return None;
    }
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    rest.split(['/', '?']).next()
}
