//! A small HTTP/1.1 server, bounded in everything, over any kind of listener.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::answer::{AdminAnswer, respond};
use crate::capacity::{Capacity, ConnectionBounds, ConnectionPlace, Peer};
use crate::drain::Drain;

/// The bounds of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerBounds {
    pub(super) connections: ConnectionBounds,
    /// How long a connection may last, from accept to the end of its one answer.
    pub(super) patience: Duration,
}

pub(super) const BOUNDS: ServerBounds = ServerBounds {
    connections: ConnectionBounds { all: 64, of_a_peer: 16 },
    patience: Duration::from_secs(5),
};

/// The most bytes and fields of a request's head.
const HEADER_BYTES: usize = 16 * 1024;
const HEADER_COUNT: usize = 64;

/// How long accepting rests after the system refused it, descriptors having run out.
const REST: Duration = Duration::from_millis(100);

/// A source of connections.
pub(super) trait Listen: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Peer)> {
        self.accept().await.map(|(stream, address)| (stream, address.into()))
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Peer)> {
        self.accept().await.map(|(stream, _)| (stream, Peer::Local))
    }
}

/// Answers paths by a function, one request a connection.
pub(super) struct AdminServer<A> {
    answer: A,
    bounds: ServerBounds,
    capacity: Capacity,
    drain: Drain,
}

impl<A> AdminServer<A>
where
    A: Fn(&str) -> Option<AdminAnswer> + Send + Sync + 'static,
{
    pub(super) fn new(answer: A, bounds: ServerBounds, drain: Drain) -> Self {
        Self { answer, bounds, capacity: Capacity::new(bounds.connections), drain }
    }

    /// Accepts until the drain begins. A connection that comes when all places are taken displaces another: a probe
    /// has its answer before it could be displaced itself.
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
            let place = self.capacity.take(peer);
            if place.displaces() {
                tracing::debug!(?peer, "a connection for health or metrics took the place of another");
            }
            let server = Arc::clone(&self);
            self.drain.spawn(async move {
                tokio::select! {
                    () = server.converse(stream, &place) => {}
                    () = place.lost() => {}
                }
            });
        }
    }

    /// Answers one request. Failures of the connection are the client's affair and not logged.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S, place: &ConnectionPlace) {
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let _asking = place.ask();
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
        let _ = tokio::time::timeout(self.bounds.patience, conversation).await;
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::answer::text;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn started(bounds: ServerBounds) -> (std::net::SocketAddr, Drain) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let drain = Drain::default();
        let server =
            Arc::new(AdminServer::new(|_: &str| Some(text(StatusCode::OK, "ok")), bounds, drain.clone()));
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
        let bounds = ServerBounds { patience: Duration::from_millis(50), ..BOUNDS };
        let (address, _drain) = started(bounds).await;
        for said in ["", "GET /x HTT", "GET /x HTTP/1.1\r\nhost: a\r\n"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            assert!(!read(&mut stream).await.contains("200"), "{said:?}");
        }
    }

    #[tokio::test]
    async fn whoever_holds_all_connections_keeps_nobody_out() {
        let connections = ConnectionBounds { all: 2, of_a_peer: 2 };
        let (address, _drain) = started(ServerBounds { connections, patience: PATIENCE }).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET").await.unwrap();
            held.push(stream);
        }
        let mut third = TcpStream::connect(address).await.unwrap();
        third.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        assert!(read(&mut third).await.starts_with("HTTP/1.1 200"));
        assert_eq!(read(&mut held[0]).await, "", "the first one made room");
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
