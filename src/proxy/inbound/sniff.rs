//! Finds the protocol of a connection in its first bytes, and consumes none of them.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::framed::FREE;
use crate::name::host::{Authority, DnsName, Host};
use crate::proxy::budget::Reserved;
use crate::wire::client_hello::{self, ClientHello, Hello};
use crate::wire::first_bytes::{First, classify};
use crate::wire::http1::{self, RequestHead, Violation};

/// The protocol that the first bytes show.
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

/// The host of the first HTTP/1 request.
#[derive(Debug)]
pub(crate) enum HostField {
    Name(DnsName),
    /// An address, or nothing: only HTTP/1.0 may leave `Host` out.
    Nobody,
    /// Something that servers may read differently: a Host that is no name, or a target with an authority of its own.
    Unclear,
}

/// Why the protocol was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SniffError {
    /// Nothing, or half of something, within the time.
    Timeout,
    /// The agent hung up.
    Closed,
    /// A malformed ClientHello.
    Garbage(&'static str),
    /// A ClientHello over its bound.
    TooLong,
    /// A malformed HTTP/1 head, or one over its bound: the agent reads an answer with this status.
    Http(Violation),
    /// No memory is left for the bytes. An HTTP/1 agent reads an answer.
    Exhausted { is_http: bool },
}

/// The bounds of sniffing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SniffBounds {
    pub(crate) hello_bytes: usize,
    pub(crate) head: http1::Limits,
    pub(crate) deadline: Instant,
}

/// Reads until the protocol is clear. `taken` holds the bytes that were read before. All bytes are returned beside the
/// answer, so that they can be read again.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(
    stream: &mut S,
    taken: Bytes,
    bounds: SniffBounds,
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
fn judge(bytes: &[u8], bounds: SniffBounds) -> Option<Result<Sniffed, SniffError>> {
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
        // An endless request line is over the bound of a head.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::proxy::budget::Budget;
    use crate::telemetry::Metrics;

    fn bounds() -> SniffBounds {
        let head = http1::Limits { header_bytes: 200, header_count: 4 };
        SniffBounds { hello_bytes: 600, head, deadline: Instant::now() + Duration::from_secs(5) }
    }

    /// The bytes that were read, and a word for the answer. Nothing follows these bytes, and the agent stays.
    async fn sniffed(said: &[u8], limit: usize) -> (usize, String) {
        let (mut near, mut far) = tokio::io::duplex(8 << 10);
        near.write_all(said).await.unwrap();
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let (bytes, answer) = sniff(&mut far, Bytes::new(), bounds(), &mut budget.open(limit)).await;
        assert_eq!(bytes, said[..bytes.len()], "what was read is read again");
        let word = match answer {
            Ok(Sniffed::Http1(HostField::Name(name))) => format!("http for {name}"),
            Ok(Sniffed::Http1(HostField::Nobody)) => "http for nobody".to_owned(),
            Ok(Sniffed::Http1(HostField::Unclear)) => "http for whom".to_owned(),
            Ok(Sniffed::Tls(hello)) => format!("tls for {:?}", hello.server_name),
            Ok(Sniffed::Http2) => "h2".to_owned(),
            Ok(Sniffed::Other) => "other".to_owned(),
            Ok(Sniffed::Unclear) => "unclear".to_owned(),
            Err(SniffError::Http(violation)) => violation.status().as_str().to_owned(),
            Err(error) => format!("{error:?}"),
        };
        (bytes.len(), word)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_say_what_a_connection_is_and_for_whom() {
        let long = format!("GET / HTTP/1.1\r\nHost: a.example\r\nx: {}\r\n\r\n", "x".repeat(200));
        let endless = [&b"\x16\x03\x01\x04\x00\x01\x00\x03\xfc\x03\x03"[..], &[0; 800]].concat();
        let cases: &[(&[u8], &str)] = &[
            (b"GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "http for a.example"),
            (b"GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "http for nobody"),
            (b"GET / HTTP/1.0\r\n\r\n", "http for nobody"),
            // The target goes before Host: where they differ, servers do.
            (b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "http for a.example"),
            (b"GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "http for whom"),
            (b"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "http for whom"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "h2"),
            (b"SSH-2.0-OpenSSH_9.9\r\n", "other"),
            (b"\x15\x03\x01\x00\x02\x02\x28", "unclear"),
            (long.as_bytes(), "431"),
            (&endless, "TooLong"),
            (b"", "Timeout"),
            (b"GET / HT", "Timeout"),
        ];
        for (said, expected) in cases {
            let (_, word) = sniffed(said, usize::MAX).await;
            assert_eq!(word, *expected, "{}", String::from_utf8_lossy(said));
        }
    }
}
