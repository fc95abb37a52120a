//! An agent's HTTP/2 connection through the explicit listener.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

use super::body::{Streamed, Writer, streamed, whole};
use super::upstream::pairs;
use super::{Answer, PATIENCE};

/// One connection; it runs on a thread of its own, so that several requests are open at once.
pub(crate) struct H2 {
    runtime: Runtime,
    sender: SendRequest<Streamed>,
}

/// A request whose answer is awaited.
pub(crate) struct Pending<'a> {
    connection: &'a H2,
    answer: tokio::task::JoinHandle<hyper::Result<Response<Incoming>>>,
}

/// An answer whose body is still coming.
pub(crate) struct Open<'a> {
    connection: &'a H2,
    response: Response<Incoming>,
}

impl H2 {
    #[track_caller]
    pub(super) fn open(
        proxy: SocketAddr,
        authority: &str,
        server_name: &str,
        config: Arc<ClientConfig>,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let name = ServerName::try_from(server_name.to_owned()).unwrap();
        let sender = runtime.block_on(async {
            let mut socket = TcpStream::connect(proxy).await.unwrap();
            socket.set_nodelay(true).unwrap();
            let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
            socket.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(socket.read_u8().await.unwrap());
            }
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
            let stream = TlsConnector::from(config).connect(name, socket).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let executor = TokioExecutor::new();
            let (sender, connection) = http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
            runtime.handle().spawn(async {
                // The requests on it tell how it ended.
                let _ = connection.await;
            });
            sender
        });
        Self { runtime, sender }
    }

    /// GET, whole.
    #[track_caller]
    pub(crate) fn get(&self, url: &str) -> Answer {
        self.request("GET", url, &[], b"").unwrap()
    }

    /// One request, whole. Err: the stream was reset or the connection ended.
    pub(crate) fn request(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> hyper::Result<Answer> {
        self.send(request(method, url, headers, whole(Bytes::copy_from_slice(body), None))).answer()
    }

    /// Begins a request whose body the test writes; dropping the writer ends it.
    pub(crate) fn upload(&self, url: &str) -> (Writer, Pending<'_>) {
        let (writer, body) = streamed(None);
        (writer, self.send(request("POST", url, &[], body)))
    }

    /// Begins a request as it is.
    pub(crate) fn send(&self, request: Request<Streamed>) -> Pending<'_> {
        let mut sender = self.sender.clone();
        let answer = self.runtime.spawn(async move {
            sender.ready().await?;
            sender.send_request(request).await
        });
        Pending { connection: self, answer }
    }
}

/// A request with an absolute URL, as h2 wants it.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: Streamed,
) -> Request<Streamed> {
    let mut builder = Request::builder().method(method).uri(url).version(http::Version::HTTP_2);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body).unwrap()
}

impl<'a> Pending<'a> {
    /// The answer's head; its body is read as it comes.
    pub(crate) fn head(self) -> hyper::Result<Open<'a>> {
        let response = self.connection.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, self.answer).await.expect("no answer came").unwrap()
        })?;
        Ok(Open { connection: self.connection, response })
    }

    /// The whole answer.
    pub(crate) fn answer(self) -> hyper::Result<Answer> {
        self.head().map(Open::rest)
    }
}

impl Open<'_> {
    /// The next piece of the body that is not empty; None at its end or where it breaks off.
    pub(crate) fn chunk(&mut self) -> Option<Bytes> {
        let body = self.response.body_mut();
        self.connection.runtime.block_on(async {
            loop {
                let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("nothing came");
                match frame?.ok()?.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(data),
                    Err(_) => return None,
                }
            }
        })
    }

    /// The answer with what is left of its body.
    pub(crate) fn rest(self) -> Answer {
        let (head, mut body) = self.response.into_parts();
        let mut answer = Answer {
            status: head.status.as_u16(),
            version: "HTTP/2",
            headers: pairs(&head.headers),
            complete: true,
            ..Answer::default()
        };
        self.connection.runtime.block_on(async {
            while let Some(frame) = tokio::time::timeout(PATIENCE, body.frame()).await.expect("no end came") {
                let Ok(frame) = frame else {
                    answer.complete = false;
                    return;
                };
                match frame.into_data() {
                    Ok(data) => answer.body.extend_from_slice(&data),
                    Err(frame) => answer.trailers = pairs(&frame.into_trailers().unwrap()),
                }
            }
        });
        answer
    }
}
