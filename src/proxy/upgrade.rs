//! A connection that becomes a WebSocket: only where a rule says so, and opaque only after a verified 101.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::body::{Body, RequestBody};
use super::error::{Class, Failure, Stop};
use super::session::Session;
use super::snapshot::Snapshot;
use super::upstream::{Origin, Speaks};
use super::{exchange, head};
use crate::credential::placement::Plan;
use crate::policy::destination::{Action, Flow, Protocol, Ruling};
use crate::policy::inspection::Inspection;
use crate::policy::name::Host;

/// Whether the request asks for a WebSocket that may be had.
///
/// `Upgrade: h2c` is passed over, as RFC 9110 (section 7.8) lets a server do: the request goes on over HTTP/1.1.
/// `CONNECT` inside a connection, and any other protocol, is refused.
pub(crate) fn asked(parts: &Parts, inspection: Option<&Inspection>) -> Result<bool, Stop> {
    if parts.method == http::Method::CONNECT {
        return Err(Ruling::builtin("upgrade", "a connection inside a connection is not to be had").into());
    }
    let Some(protocol) = parts.headers.get(header::UPGRADE) else { return Ok(false) };
    if protocol.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return Ok(false);
    }
    if !protocol.as_bytes().eq_ignore_ascii_case(b"websocket") {
        return Err(Ruling::builtin("upgrade", "of all protocols, only WebSocket can be upgraded to").into());
    }
    match inspection.map(Inspection::upgrade) {
        Some(ruling) if ruling.denies() => Err(ruling.into()),
        Some(_) | None => Ok(true),
    }
}

/// Sends the upgrade, verifies the answer, and joins the two connections.
pub(crate) async fn run(
    session: &Arc<Session>,
    snapshot: &Snapshot,
    mut parts: Parts,
    origin: &Origin,
    plan: Option<&Plan>,
) -> Result<Response<Body>, Stop> {
    let agent = parts
        .extensions
        .remove::<OnUpgrade>()
        .ok_or_else(|| Failure::new(Class::Agent, "the connection cannot be upgraded"))?;
    let expected = accept_for(&parts.headers)?;
    head::strip(&mut parts.headers);
    insert_upgrade(&mut parts.headers);
    if let Some(plan) = plan {
        exchange::attach(snapshot, plan, &mut parts)?;
    }
    let mut request = Request::from_parts(parts, RequestBody::empty());
    head::address(&mut request, origin, Speaks::H1);
    let mut response = snapshot.upstreams.send_upgrade(snapshot.policy(), origin, request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        head::strip(response.headers_mut());
        return Ok(response.map(|body| Body::h2(body, snapshot.settings.timeouts.stream_idle)));
    }
    verify(response.headers(), &expected)?;
    let upstream = hyper::upgrade::on(&mut response);
    join(session, origin.clone(), agent, upstream);
    let mut head = response.headers().clone();
    head::strip(&mut head);
    insert_upgrade(&mut head);
    let mut answer = Response::new(Body::own(""));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *answer.headers_mut() = head;
    Ok(answer)
}

fn insert_upgrade(head: &mut HeaderMap) {
    head.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    head.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// What the answer's `Sec-WebSocket-Accept` has to be (RFC 6455, section 4.2.2).
fn accept_for(head: &HeaderMap) -> Result<String, Stop> {
    let key = head.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_key = BASE64_STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16);
    if !is_key || head.get_all(header::SEC_WEBSOCKET_KEY).iter().count() != 1 {
        return Err(super::names::framing("the WebSocket key is not one").into());
    }
    let mut salted = key.to_vec();
    salted.extend_from_slice(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, &salted);
    Ok(BASE64_STANDARD.encode(digest))
}

fn verify(head: &HeaderMap, expected: &str) -> Result<(), Failure> {
    let says = |name, value: &[u8]| {
        head.get(name).is_some_and(|found: &HeaderValue| found.as_bytes().eq_ignore_ascii_case(value))
    };
    let accepted =
        head.get(header::SEC_WEBSOCKET_ACCEPT).is_some_and(|found| found.as_bytes() == expected.as_bytes());
    if accepted && says(header::UPGRADE, b"websocket") && says(header::CONNECTION, b"upgrade") {
        return Ok(());
    }
    Err(Failure::new(Class::Framing, "the upstream switched protocols without having understood the request"))
}

/// Copies between the two, until either ends or policy no longer allows it.
fn join(session: &Arc<Session>, origin: Origin, agent: OnUpgrade, upstream: OnUpgrade) {
    session.activity.upgraded.store(true, Ordering::Relaxed);
    let busy = session.activity.begin();
    let session = Arc::clone(session);
    let drain = session.gateway.drain.clone();
    drain.spawn(async move {
        let _busy = busy;
        let (Ok(agent), Ok(upstream)) = (agent.await, upstream.await) else { return };
        let (mut agent, mut upstream) = (TokioIo::new(agent), TokioIo::new(upstream));
        let mut replaced = session.gateway.replaced();
        let copy = tokio::io::copy_bidirectional(&mut agent, &mut upstream);
        tokio::pin!(copy);
        loop {
            tokio::select! {
                _ = &mut copy => return,
                _ = replaced.changed() => if !is_still_allowed(&session, &origin) { return },
                () = session.gateway.drain.aborting() => return,
            }
        }
    });
}

fn is_still_allowed(session: &Session, origin: &Origin) -> bool {
    let (name, address) = match &origin.host {
        Host::Name(name) => (Some(name), None),
        Host::Ip(ip) => (None, Some(*ip)),
    };
    let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
    let flow = Flow { name, address, port: origin.port, protocol };
    match session.gateway.snapshot().destination(&flow).action {
        Action::Inspect(inspection) => inspection.upgrade_allowed(),
        Action::Tunnel { .. } => true,
        Action::Deny { .. } => false,
    }
}
