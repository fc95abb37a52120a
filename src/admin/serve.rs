//! A small HTTP/1.1 server, bounded in everything, over any kind of listener.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::places::{Place, Places};
use super::{Answer, respond};
use crate::drain::Drain;

/// What one server holds at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// One over it takes the place of another.
    pub(super) connections: usize,
    /// How long a connection may last, from accept to the end of its one answer.
    pub(super) patience: Duration,
}

pub(super) const BOUNDS: Bounds = Bounds { connections: 64, patience: Duration::from_secs(5) };

/// The most bytes and fields of a request's head.
const HEADER_BYTES: usize = 16 * 1024;
const HEADER_COUNT: usize = 64;

/// How long accepting rests after the system refused it, descriptors having run out.
const REST: Duration = Duration::from_millis(100);

/// What connections come out of.
pub(super) trait Listen: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next one, and who has made it where that has an address.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<IpAddr>)> {
        self.accept().await.map(|(stream, peer)| (stream, Some(peer.ip())))
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<IpAddr>)> {
        self.accept().await.map(|(stream, _)| (stream, None))
    }
}

/// Answers paths by a function, one request a connection.
pub(super) struct Server<A> {
    answer: A,
    bounds: Bounds,
    places: Places,
    drain: Drain,
}

impl<A> Server<A>
where
    A: Fn(&str) -> Option<Answer> + Send + Sync + 'static,
{
    pub(super) fn new(answer: A, bounds: Bounds, drain: Drain) -> Self {
        Self { answer, bounds, places: Places::new(bounds.connections), drain }
    }

    /// Accepts until the drain begins.
    pub(super) async fn run<L: Listen>(self: Arc<Self>, listener: &L) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.next() => accepted,
                () = self.drain.stopping() => return,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let (server, place) = (Arc::clone(&self), self.places.take(peer));
            self.drain.spawn(async move { server.converse(stream, place).await });
        }
    }

    /// Answers one request. How a conversation fails is the client's affair and said nowhere.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S, mut place: Place) {
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let answer = respond(request.method(), (self.answer)(request.uri().path()));
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.bounds.patience);
        http.keep_alive(false).max_buf_size(HEADER_BYTES).max_headers(HEADER_COUNT);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let conversation = async {
            tokio::select! {
                _ = connection.as_mut() => return,
                () = self.drain.stopping() => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        };
        tokio::select! {
            _ = tokio::time::timeout(self.bounds.patience, conversation) => {}
            _ = &mut place.taken => {}
        }
        self.places.leave(&place);
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::text;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn started(bounds: Bounds) -> (std::net::SocketAddr, Drain) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let drain = Drain::default();
        let server = Arc::new(Server::new(|_: &str| Some(text(StatusCode::OK, "ok")), bounds, drain.clone()));
        drain.spawn(async move { server.run(&listener).await });
        (address, drain)
    }

    /// All that the server answers until it closes; a reset is an end too.
    async fn read(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        let _ =
            tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("closed in time");
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_or_half_a_request_is_closed() {
        let bounds = Bounds { patience: Duration::from_millis(50), ..BOUNDS };
        let (address, _drain) = started(bounds).await;
        for said in ["", "GET /x HTT", "GET /x HTTP/1.1\r\nhost: a\r\n"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            assert!(!read(&mut stream).await.contains("200"), "{said:?}");
        }
    }

    #[tokio::test]
    async fn who_comes_is_answered_however_many_wait_and_say_nothing() {
        let (address, _drain) = started(Bounds { connections: 2, patience: 2 * PATIENCE }).await;
        let mut silent = Vec::new();
        for _ in 0..3 {
            let mut one = TcpStream::connect(address).await.unwrap();
            one.write_all(b"GET").await.unwrap();
            silent.push(one);
        }
        let mut asking = TcpStream::connect(address).await.unwrap();
        asking.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        assert!(read(&mut asking).await.starts_with("HTTP/1.1 200"));
        assert_eq!(read(&mut silent[0]).await, "", "the oldest gave its place");
    }

    #[tokio::test]
    async fn a_head_over_the_bound_is_refused() {
        let (address, _drain) = started(BOUNDS).await;
        let many = "a: b\r\n".repeat(HEADER_COUNT + 1);
        let long = format!("a: {}\r\n", "b".repeat(HEADER_BYTES));
        for fields in [many, long] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()).await.unwrap();
            assert!(!read(&mut stream).await.contains(" 200 "));
        }
    }

    #[tokio::test]
    async fn a_connection_carries_one_request() {
        let (address, _drain) = started(BOUNDS).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(read(&mut stream).await.matches("HTTP/1.1").count(), 1);
    }
}
