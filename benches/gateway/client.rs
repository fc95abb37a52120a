//! An agent: direct or by CONNECT through the gateway, over HTTP/1.1 or h2.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::body::Body;
use super::gateway::{API, GUARDED, PLACEHOLDER};
use super::pki::Pki;

/// Bytes of a small request's body.
const QUESTION: usize = 2_000;

/// What agents send where there is no credential.
const KEY: &str = "sk-bench-of-the-agents-own-0123456789";

/// Of the range for documentation (RFC 5737): nobody is there.
const SOMEBODY: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 443);
const RESOLVER: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 53), 53);

/// How the upstream is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// By CONNECT.
    Gateway,
    /// To the address of somebody else, which the kernel redirects to the gateway.
    Redirected,
    /// The same, to the address that the resolver gives for the name, which is asked for each time.
    Resolved,
}

#[derive(Clone)]
pub(crate) struct Client {
    upstream: SocketAddr,
    proxy: SocketAddr,
    http1: TlsConnector,
    http2: TlsConnector,
    question: Bytes,
}

/// One connection on which requests are sent.
pub(crate) enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Client {
    pub(crate) fn new(upstream: SocketAddr, proxy: SocketAddr, pki: &Pki) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            proxy,
            http1: TlsConnector::from(pki.client("http/1.1")),
            http2: TlsConnector::from(pki.client("h2")),
            question: question(),
        })
    }

    /// A connection for `name`, its TLS verified.
    pub(crate) async fn open(&self, way: Way, name: &str, h2: bool) -> Sender {
        let connector = if h2 { &self.http2 } else { &self.http1 };
        let stream = TokioIo::new(self.tls(way, name, connector).await);
        if h2 {
            let (sender, driver) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            Handle::current().spawn(driver);
            Sender::Http2(sender)
        } else {
            let (sender, driver) = http1::handshake(stream).await.unwrap();
            Handle::current().spawn(driver);
            Sender::Http1(sender)
        }
    }

    async fn tls(&self, way: Way, name: &str, connector: &TlsConnector) -> TlsStream<TcpStream> {
        let stream = match way {
            Way::Direct => TcpStream::connect(self.upstream).await.unwrap(),
            Way::Gateway => self.tunnel(name).await,
            Way::Redirected => TcpStream::connect(SOMEBODY).await.unwrap(),
            Way::Resolved => TcpStream::connect((resolve(name).await, 443)).await.unwrap(),
        };
        stream.set_nodelay(true).unwrap();
        connector.connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await.unwrap()
    }

    async fn tunnel(&self, name: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        let head = format!("CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the gateway hung up on {name}");
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        stream
    }

    /// A small request.
    pub(crate) fn question(&self) -> Body {
        Body::text(self.question.clone())
    }
}

/// A small request of prose, as JSON.
pub(crate) fn question() -> Bytes {
    const WORDS: &str = "Look at the failing test again, and say which of the three calls comes too early. ";
    let (before, behind) = (r#"{"model":"bench","messages":[{"role":"user","content":""#, r#""}]}"#);
    let words: String = WORDS.chars().cycle().take(QUESTION - before.len() - behind.len()).collect();
    format!("{before}{words}{behind}").into()
}

/// Asks for the IPv4 address of a name (RFC 1035, section 4): the answer's last four bytes.
async fn resolve(name: &str) -> Ipv4Addr {
    let mut question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.bytes());
    }
    question.extend(b"\0\0\x01\0\x01");
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    socket.connect(RESOLVER).await.unwrap();
    socket.send(&question).await.unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).await.unwrap();
    assert_eq!(answer[6..8], [0, 1], "no answer for {name}");
    Ipv4Addr::from(<[u8; 4]>::try_from(&answer[length - 4..length]).unwrap())
}

impl Sender {
    /// Sends a request as a coding agent would, and answers with its answer's head.
    pub(crate) async fn send(&mut self, name: &str, path: &str, body: Body) -> Response<Incoming> {
        let request = Request::post(match self {
            Self::Http1(_) => path.to_owned(),
            Self::Http2(_) => format!("https://{name}{path}"),
        });
        let request = request
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "claude-cli/2.0.14 (external, cli)")
            .header("x-api-key", if matches!(name, API | GUARDED) { PLACEHOLDER } else { KEY })
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14")
            .header("x-stainless-lang", "js")
            .header("x-stainless-runtime", "node")
            .header("x-app", "cli");
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request.header(header::HOST, name).body(body).unwrap()).await
            }
            Self::Http2(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request.body(body).unwrap()).await
            }
        };
        let response = response.unwrap();
        assert!(response.status().is_success(), "{name}{path}: {}", response.status());
        response
    }
}

impl Clone for Sender {
    /// Only h2 has several exchanges on one connection.
    fn clone(&self) -> Self {
        match self {
            Self::Http1(_) => panic!("an HTTP/1.1 connection has one exchange at a time"),
            Self::Http2(sender) => Self::Http2(sender.clone()),
        }
    }
}
