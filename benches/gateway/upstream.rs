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

use super::answers;
use super::body::{Body, CHAT, Events, MESSAGES, TEXT};
use super::load::{BULK_MODEL, EVENTS_MODEL, HELD_MODEL, PACED_MODEL, TURN_MODEL};

/// Events of one stream.
const EVENTS: u32 = 2_000;
/// Events of a turn.
const TURN: u32 = 300;
/// Bytes of a small answer.
const ANSWER: usize = 1_024;

/// What a request to a model asks for, by what its first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Whole,
    /// A stream, each event on its own.
    Events,
    /// A stream of events some time apart.
    Paced,
    /// A stream as long as that of a turn.
    Turn,
    /// Calls that never end.
    Held,
    /// A stream, as many events at once as a write holds.
    Bulk,
    /// A short stream.
    Short(&'static str),
}

/// The bytes of a body that have the model; behind them may stand anything, such as the names of models.
const HEAD: usize = 64;

impl Asks {
    fn of(body: &[u8]) -> Self {
        let body = &body[..body.len().min(HEAD)];
        let holds = |model: &str| memchr::memmem::find(body, model.as_bytes()).is_some();
        match () {
            () if holds(BULK_MODEL) => Self::Bulk,
            () if holds(EVENTS_MODEL) => Self::Events,
            () if holds(PACED_MODEL) => Self::Paced,
            () if holds(TURN_MODEL) => Self::Turn,
            () if holds(HELD_MODEL) => Self::Held,
            () => answers::short(body).map_or(Self::Whole, Self::Short),
        }
    }
}

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

/// The stream of a model.
fn stream(events: &'static Events, asks: Asks) -> Body {
    match asks {
        Asks::Held => Body::held(),
        Asks::Paced => Body::paced(events, EVENTS),
        Asks::Turn => Body::events(events, TURN, false),
        Asks::Bulk => Body::events(events, EVENTS, true),
        Asks::Events | Asks::Whole | Asks::Short(_) => Body::events(events, EVENTS, false),
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut asks = None;
    while let Some(Ok(frame)) = body.frame().await {
        asks = asks.or_else(|| frame.into_data().ok().map(|data| Asks::of(&data)));
    }
    let asks = asks.unwrap_or(Asks::Whole);
    let (kind, body) = match path.as_str() {
        "/v1/messages" if let Asks::Short(text) = asks => ("text/event-stream", Body::text(text)),
        "/v1/events" => ("text/event-stream", Body::events(&TEXT, EVENTS, false)),
        "/v1/messages" if asks != Asks::Whole => ("text/event-stream", stream(&MESSAGES, asks)),
        "/v1/chat/completions" => ("text/event-stream", stream(&CHAT, asks)),
        "/v1/bulk" => ("application/octet-stream", Body::bulk(&Arc::default())),
        _ => ("application/json", Body::text(answer_of(ANSWER))),
    };
    let response =
        Response::builder().header(header::CONTENT_TYPE, kind).header("request-id", "req_0123456789");
    Ok(response.body(body).unwrap())
}
