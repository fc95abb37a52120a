//! What an agent reads where its request goes no further.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::body::Body;
use super::error::{Failure, Refusal};
use crate::event::Id;

/// A denial, in four lines (design: blocked, destination, rule, reason), with the id of the event that denied.
pub(crate) fn denied(refusal: &Refusal, destination: &str, event: Id) -> Response<Body> {
    let rule = refusal.ruling.rule.as_str();
    let text = format!(
        "[postern] Blocked by policy\nDestination: {destination}\nRule: {rule}\nReason: {}\n",
        refusal.ruling.reason
    );
    let mut response = plain(refusal.status, text, refusal.close);
    let head = response.headers_mut();
    head.insert("x-postern-decision", HeaderValue::from_static("deny"));
    if let Ok(rule) = HeaderValue::from_str(rule) {
        head.insert("x-postern-rule", rule);
    }
    insert_event(head, event);
    response
}

/// An upstream that could not be used.
pub(crate) fn failed(failure: &Failure, destination: &str, event: Id) -> Response<Body> {
    let (status, _) = failure.class.shows();
    let text =
        format!("[postern] No answer from the upstream\nDestination: {destination}\nReason: {failure}\n");
    let mut response = plain(status, text, false);
    insert_event(response.headers_mut(), event);
    response
}

/// A request to the proxy itself that it cannot take.
pub(crate) fn plain(status: StatusCode, text: impl Into<Bytes>, close: bool) -> Response<Body> {
    let mut response = Response::new(Body::own(text));
    *response.status_mut() = status;
    let head = response.headers_mut();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    head.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if close {
        head.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn insert_event(head: &mut http::HeaderMap, event: Id) {
    if let Ok(value) = HeaderValue::from_str(&event.to_string()) {
        head.insert("x-postern-event", value);
    }
}

/// The same, as bytes, for a connection that no HTTP server serves.
pub(crate) fn raw(status: StatusCode, text: &str, more: &str) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("Refused");
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n{text}",
        status.as_u16(),
        text.len()
    )
    .into_bytes()
}
