//! The explicit proxy: CONNECT and absolute-form (RFC 9112, sections 3.2.2 and 3.2.3), with an optional password.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::flow::Flow;
use super::framed::FREE;
use super::listener::Password;
use super::names::framing;
use super::rewind::Rewind;
use super::session::{Naming, Session, serve};
use crate::decision::Decision;
use crate::event::{self, Destination, Event, Kind};
use crate::ledger::fresh_id;
use crate::name::host::{Authority, Host};
use crate::proxy::Gateway;
use crate::proxy::budget::Exhausted;
use crate::proxy::exchange::reply;
use crate::telemetry::label::{Closed, Limit, Mode};
use crate::wire::http1::{self, Violation};

/// The first request to the proxy.
enum FirstRequest {
    Connect {
        target: String,
        rest: Bytes,
    },
    Absolute {
        all: Bytes,
    },
    /// A request in origin form, as servers get it: a proxy serves none.
    Origin,
}

/// Why no first request came.
enum NoRequest {
    Closed(Closed),
    Violation(Violation),
    WrongPassword,
    Exhausted,
}

pub(crate) async fn serve_explicit(
    gateway: Arc<Gateway>,
    password: Option<&Password>,
    mut stream: TcpStream,
) -> Closed {
    match first(&gateway, password, &mut stream).await {
        Ok(FirstRequest::Connect { target, rest }) => connect(gateway, &target, rest, stream).await,
        Ok(FirstRequest::Absolute { all }) => absolute(gateway, Rewind::new(all, stream)).await,
        Ok(FirstRequest::Origin) => {
            let text = "[postern] This is a proxy: use CONNECT, or a request with a full http:// URL\n";
            say(&mut stream, &reply::raw(StatusCode::BAD_REQUEST, text, "")).await;
            Closed::Garbage
        }
        Err(NoRequest::Closed(closed)) => closed,
        Err(NoRequest::WrongPassword) => {
            let text = "[postern] This proxy asks for a password\n";
            let more = "proxy-authenticate: Basic realm=\"postern\"\r\n";
            say(&mut stream, &reply::raw(StatusCode::PROXY_AUTHENTICATION_REQUIRED, text, more)).await;
            Closed::Password
        }
        Err(NoRequest::Exhausted) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            refuse(&gateway, status, &Exhausted::ruling(), None, &mut stream).await;
            gateway.metrics.limit_reached(Limit::BufferedBytes);
            Closed::Limit
        }
        Err(NoRequest::Violation(violation)) => {
            refuse(&gateway, violation.status(), &framing(violation.reason()).decision, None, &mut stream)
                .await;
            gateway.violated(&violation)
        }
    }
}

async fn first(
    gateway: &Gateway,
    password: Option<&Password>,
    stream: &mut TcpStream,
) -> Result<FirstRequest, NoRequest> {
    let snapshot = gateway.snapshot();
    let limits = http1::Limits {
        header_bytes: snapshot.settings.limits.header_bytes,
        header_count: snapshot.settings.limits.header_count,
    };
    let deadline = Instant::now() + snapshot.settings.timeouts.agent_head;
    let mut reserved = gateway.budget.unread(&snapshot.settings.limits);
    let mut bytes = BytesMut::with_capacity(1 << 10);
    loop {
        if let Some(head) = http1::first_request(&bytes, &limits).map_err(NoRequest::Violation)? {
            if !password.is_none_or(|password| is_password(head.proxy_authorization, password)) {
                return Err(NoRequest::WrongPassword);
            }
            let (length, target) = (head.length, head.target.to_owned());
            return Ok(match head.method {
                "CONNECT" => FirstRequest::Connect { target, rest: bytes.split_off(length).freeze() },
                _ if target.starts_with('/') || target == "*" => FirstRequest::Origin,
                _ => FirstRequest::Absolute { all: bytes.freeze() },
            });
        }
        let counted = if bytes.len() > FREE { bytes.capacity() } else { 0 };
        reserved.set(counted).map_err(|_| NoRequest::Exhausted)?;
        bytes.reserve(bytes.len().clamp(1 << 10, 8 << 10));
        match timeout_at(deadline, stream.read_buf(&mut bytes)).await {
            Ok(Ok(0) | Err(_)) => return Err(NoRequest::Closed(Closed::Silent)),
            Ok(Ok(_)) => {}
            Err(_) => return Err(NoRequest::Closed(Closed::HeadTimeout)),
        }
    }
}

/// Whether a `Proxy-Authorization` carries the password, under any user name (RFC 7617).
fn is_password(value: Option<&str>, password: &Password) -> bool {
    let Some((scheme, token)) = value.and_then(|value| value.split_once(' ')) else { return false };
    let Ok(pair) = BASE64_STANDARD.decode(token.trim()) else { return false };
    let Some(colon) = memchr::memchr(b':', &pair) else { return false };
    scheme.eq_ignore_ascii_case("Basic")
        && aws_lc_rs::constant_time::verify_slices_are_equal(&pair[colon + 1..], password).is_ok()
}

async fn connect(gateway: Arc<Gateway>, target: &str, rest: Bytes, mut stream: TcpStream) -> Closed {
    let authority =
        Authority::parse(target).ok().and_then(|authority| Some((authority.host, authority.port?)));
    let Some((host, port)) = authority else {
        let decision = framing("CONNECT takes a host name or an address, and a port").decision;
        refuse(&gateway, StatusCode::BAD_REQUEST, &decision, None, &mut stream).await;
        return Closed::Framing;
    };
    let mut flow = Flow::new(&gateway, Mode::Explicit, &host, port);
    let outlook = flow.outlook();
    if !outlook.named {
        let host = flow.host().unwrap_or(host);
        refuse(&gateway, StatusCode::FORBIDDEN, &outlook.decision, Some((&host, port)), &mut stream).await;
        return Closed::Denied;
    }
    if let Some(decision) = flow.lacks_ca().await {
        refuse(&gateway, StatusCode::FORBIDDEN, &decision, Some((&host, port)), &mut stream).await;
        return Closed::Denied;
    }
    if stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
        return Closed::AgentGone;
    }
    // The future of the flow is large: boxed, it takes no memory while the head is read.
    Box::pin(flow.run(stream, rest)).await
}

async fn absolute(gateway: Arc<Gateway>, stream: Rewind<TcpStream>) -> Closed {
    let connection = fresh_id();
    gateway.metrics.connection(Mode::Explicit, event::Action::Inspect);
    let destination = Arc::new(Destination {
        host: "-".to_owned(),
        port: 0,
        action: event::Action::Inspect,
        intercepted: true,
        reason: None,
    });
    let session = Session::new(gateway, connection, Naming::PerRequest, destination);
    Box::pin(serve(session, stream)).await
}

/// Emits the event, then writes the refusal.
async fn refuse(
    gateway: &Gateway,
    status: StatusCode,
    decision: &Decision,
    target: Option<(&Host, u16)>,
    stream: &mut TcpStream,
) {
    let id = fresh_id();
    let mut event = Event::new(id, Kind::Connection, decision.clone());
    event.connection = Some(id);
    event.destination = target.map(|(host, port)| {
        Arc::new(Destination {
            host: host.to_string(),
            port,
            action: event::Action::Deny,
            intercepted: false,
            reason: None,
        })
    });
    gateway.emit(event);
    let door = gateway.snapshot().ask_at().map(|place| format!("{place}{id}"));
    gateway.metrics.connection(Mode::Explicit, event::Action::Deny);
    let shown = target.map_or_else(|| "-".to_owned(), |(host, port)| format!("{host}:{port}"));
    say(stream, &reply::denied_raw(status, decision, &shown, (id, door))).await;
}

/// Writes the last bytes of a connection; the agent may be gone already.
async fn say(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
}
