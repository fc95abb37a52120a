//! Serves a page on the loopback: its files, its rows and single events, and nothing else.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::access::{PageAccess, Refusal};
use super::files;
use super::live::{LivePage, Seen};
use super::window::EventKey;
use crate::capacity::{Capacity, ConnectionBounds};
use crate::drain::Drain;
use crate::event::Id;

/// How many connections there may be: a browser opens six for each of its windows.
const CONNECTIONS: ConnectionBounds = ConnectionBounds { all: 64, of_a_peer: 64 };

/// The most bytes and fields of a request's head, and how long it may take.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_FIELDS: usize = 64;
const HEAD_PATIENCE: Duration = Duration::from_secs(60);

/// How long an answer waits for a new event.
const LISTEN: Duration = Duration::from_secs(20);

/// How long accepting rests after the system refused it, descriptors having run out.
const REST: Duration = Duration::from_millis(100);

/// Scripts and styles of this server alone, none inline; no text becomes markup, even by a mistake of the page's own.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// What every answer says.
const FIELDS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

type Answer = Response<Full<Bytes>>;

/// A server of one page, which has an address of its own.
pub(crate) struct PageServer {
    listener: TcpListener,
    address: SocketAddr,
    page: ServedPage,
}

struct ServedPage {
    access: PageAccess,
    live: Arc<LivePage>,
}

impl PageServer {
    /// Binds a port of the loopback, 0 for any.
    ///
    /// # Errors
    /// The port is taken.
    pub(crate) async fn bind(port: u16, token: String, live: Arc<LivePage>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, page: ServedPage { access: PageAccess::new(token), live } })
    }

    /// The address of the server, without the token.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address that leads to the page once, for a browser whose command line others may read.
    pub(crate) fn ticket(&self, ticket: String) -> String {
        let url = format!("http://{}/open/{ticket}", self.address);
        self.page.access.issue(ticket);
        url
    }

    /// Serves until the drain begins. A connection that comes when all places are taken displaces another.
    pub(crate) async fn run(self, drain: Drain) {
        let (page, capacity) = (Arc::new(self.page), Capacity::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = drain.stopping() => return,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let (place, page, stopping) = (capacity.take(peer.into()), Arc::clone(&page), drain.clone());
            drain.spawn(async move {
                tokio::select! {
                    () = converse(stream, page) => {}
                    () = place.lost() => {}
                    () = stopping.stopping() => {}
                }
            });
        }
    }
}

/// Answers the requests of one connection. Its failures are the browser's affair.
async fn converse(stream: TcpStream, page: Arc<ServedPage>) {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.answer(&request.into_parts().0).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
    http.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

impl ServedPage {
    async fn answer(&self, request: &Parts) -> Answer {
        let path = match self.access.admit(request) {
            Ok(path) => path,
            Err(Refusal::Token) => {
                let page = self.access.redeem(request.uri.path());
                return page.map_or_else(|| refused(Refusal::Token), |page| moved(&page));
            }
            Err(refusal) => return refused(refusal),
        };
        let query = request.uri.query().unwrap_or_default();
        match (path, files::find(path)) {
            (_, Some(file)) => typed(StatusCode::OK, file.content_type, Bytes::from_static(file.bytes)),
            ("events", None) => match seen(query) {
                Some(seen) => json(self.live.rows(&seen, LISTEN).await),
                None => text(StatusCode::BAD_REQUEST, "ask for events?from=NUMBER&change=NUMBER\n"),
            },
            ("event", None) => match key(query) {
                Some(key) => self.live.event(&key).map_or_else(
                    || text(StatusCode::NOT_FOUND, "there is no such event among those that are shown\n"),
                    json,
                ),
                None => text(StatusCode::BAD_REQUEST, "ask for event?id=UUID or event?number=NUMBER\n"),
            },
            (_, None) => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }
}

/// Reads `from=NUMBER&change=NUMBER`.
fn seen(query: &str) -> Option<Seen> {
    let (from, change) = query.split_once('&')?;
    let (from, change) = (from.strip_prefix("from=")?, change.strip_prefix("change=")?);
    Some(Seen { from: from.parse().ok()?, change: change.parse().ok()? })
}

fn key(query: &str) -> Option<EventKey> {
    match query.split_once('=')? {
        ("number", number) => number.parse().ok().map(EventKey::Number),
        ("id", id) => Id::parse(id).map(EventKey::Id),
        _ => None,
    }
}

fn moved(path: &str) -> Answer {
    let mut answer = text(StatusCode::SEE_OTHER, "");
    if let Ok(path) = HeaderValue::from_str(path) {
        answer.headers_mut().insert(LOCATION, path);
    }
    answer
}

fn refused(refusal: Refusal) -> Answer {
    let mut answer = text(refusal.status(), refusal.text());
    if refusal == Refusal::Method {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    answer
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    typed(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn json(body: serde_json::Result<Vec<u8>>) -> Answer {
    match body {
        Ok(body) => typed(StatusCode::OK, "application/json", body.into()),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the events cannot be written as JSON\n"),
    }
}

fn typed(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in FIELDS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
