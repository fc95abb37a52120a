//! Makes the answer of an upstream fit for the agent: one reading, no fields of the other hop, no real keys.

use std::sync::Arc;

use http::{Method, Response, StatusCode, Version};
use http_body::Body as _;

use super::head;
use crate::proxy::body::Body;
use crate::proxy::body::rewriting;
use crate::proxy::body::transit::Transit;
use crate::proxy::error::{Class, Failure};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::{Answer, Speaks};
use crate::secret::SecretMatcher;
use crate::wire::http1::check_response;

/// Returns the answer with the head that the agent gets, and the body still to come.
pub(super) fn receive(
    answer: Answer,
    session: &Session,
    snapshot: &Snapshot,
) -> Result<Response<Body>, Failure> {
    let idle = snapshot.settings.timeouts.stream_idle;
    let transit = Transit::new(&session.gateway.budget, snapshot.settings.limits.buffered_bytes);
    let mut response = match answer {
        Answer::H1(response) => {
            check_framing(&response)?;
            response.map(|body| Body::h1(body, idle).counted(transit))
        }
        Answer::H2(response) => response.map(|body| Body::h2(body, idle).counted(transit)),
        Answer::Upgrade(response) => {
            check_framing(&response)?;
            response.map(|body| Body::h2(body, idle).counted(transit))
        }
    };
    if switches_protocols(&response) {
        return Err(Failure::new(Class::Framing, "the upstream switched protocols unasked"));
    }
    head::strip(response.headers_mut());
    response.extensions_mut().remove::<hyper::ext::ReasonPhrase>();
    *response.version_mut() = match session.speaks {
        Speaks::H1 => Version::HTTP_11,
        Speaks::H2 => Version::HTTP_2,
    };
    Ok(response)
}

/// Fails if a body follows in a character set in which a real key could stand unseen.
pub(super) fn check_charset(response: &Response<Body>, method: &Method) -> Result<(), Failure> {
    if is_empty(response, method) { Ok(()) } else { rewriting::check_charset(response.headers()) }
}

/// Masks real keys in an answer.
pub(super) fn scrub(
    mut response: Response<Body>,
    method: &Method,
    secrets: Arc<SecretMatcher>,
    snapshot: &Snapshot,
) -> Result<Response<Body>, Failure> {
    if is_empty(&response, method) {
        secrets.scrub_head(response.headers_mut());
        return Ok(response);
    }
    let mut head = std::mem::take(response.headers_mut());
    response.body_mut().rewriting().scrubbing(&mut head, secrets, snapshot.coding_limits())?;
    *response.headers_mut() = head;
    Ok(response)
}

pub(super) fn switches_protocols<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

fn is_empty(response: &Response<Body>, method: &Method) -> bool {
    *method == Method::HEAD || response.body().is_end_stream()
}

/// Fails if two parsers could read the answer differently.
fn check_framing<B>(response: &Response<B>) -> Result<(), Failure> {
    check_response(response.status(), response.headers()).map_err(|violation| {
        Failure::new(Class::Framing, format!("the upstream's answer: {}", violation.reason()))
    })
}
