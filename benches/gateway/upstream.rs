//! A TLS upstream in the load's own thread: JSON, events, bulk down, bulk up.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;

use super::body::Body;

/// Events of one stream.
const EVENTS: u32 = 2_000;
/// Bytes of a small answer.
const ANSWER: usize = 1_024;

/// Serves on a free port of the loopback for as long as the runtime runs.
pub(crate) async fn serve(config: Arc<ServerConfig>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(config);
    Handle::current().spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            Handle::current().spawn(connection(acceptor.clone(), stream));
        }
    });
    address
}

/// What ends a connection early is the client's to tell.
async fn connection(acceptor: TlsAcceptor, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let Ok(tls) = acceptor.accept(stream).await else { return };
    let h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, service) = (TokioIo::new(tls), service_fn(answer));
    if h2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

/// An answer of Anthropic Messages, so long.
fn answer_of(length: usize) -> String {
    let of = |text: &str| {
        format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        )
    };
    of(&"a".repeat(length - of("").len()))
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    let (kind, body) = match path.as_str() {
        "/v1/events" => ("text/event-stream", Body::events(EVENTS)),
        "/v1/bulk" => ("application/octet-stream", Body::bulk(&Arc::default())),
        _ => ("application/json", Body::text(answer_of(ANSWER))),
    };
    let response =
        Response::builder().header(header::CONTENT_TYPE, kind).header("request-id", "req_0123456789");
    Ok(response.body(body).unwrap())
}
