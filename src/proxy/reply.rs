//! What an agent reads where its request goes no further.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::body::Body;
use super::error::{Failure, Refusal};
use crate::call::{Answer, Service};
use crate::event::Id;
use crate::policy::destination::Ruling;
use crate::provider;
use crate::provider::adapter::{self, ErrorAnswer};

/// A denial, in four lines (design: blocked, destination, rule, reason), with the id of the event that denied. An LLM
/// provider's client reads it in the shape of the provider's own errors.
pub(crate) fn denied(
    refusal: &Refusal,
    destination: &str,
    service: Option<Service>,
    event: Id,
) -> Response<Body> {
    let text = denial_text(&refusal.ruling, destination);
    let mut response = match voiced(refusal, text.trim_end(), service) {
        Some(said) => shaped(said, refusal.close),
        None => plain(refusal.status, text, refusal.close),
    };
    let head = response.headers_mut();
    head.insert("x-postern-decision", HeaderValue::from_static("deny"));
    if let Ok(rule) = HeaderValue::from_str(refusal.ruling.rule.as_str()) {
        head.insert("x-postern-rule", rule);
    }
    if refusal.status == StatusCode::UPGRADE_REQUIRED {
        // What is spoken here instead (RFC 9110, section 15.5.22).
        head.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    }
    insert_event(head, event);
    response
}

/// The status under which a denial is said.
pub(crate) fn status(refusal: &Refusal, service: Option<Service>) -> StatusCode {
    voiced(refusal, "", service).map_or(refusal.status, |said| status_of(&said))
}

/// A denial in the words of the provider that was asked, where there are such words.
fn voiced(refusal: &Refusal, message: &str, service: Option<Service>) -> Option<ErrorAnswer> {
    let service = service.filter(|_| is_about_content(refusal))?;
    let said = adapter::Refusal { service, message, answer: refusal.answer };
    Some(provider::voice(service)?.refusal(&said))
}

fn status_of(said: &ErrorAnswer) -> StatusCode {
    StatusCode::from_u16(said.status).unwrap_or(StatusCode::FORBIDDEN)
}

/// Whether a dialect has words for a refusal: it is about what was asked, not about how it came.
fn is_about_content(refusal: &Refusal) -> bool {
    refusal.status == StatusCode::FORBIDDEN || refusal.answer != Answer::Forbidden
}

/// A refusal as a dialect says it.
fn shaped(said: ErrorAnswer, close: bool) -> Response<Body> {
    let mut response = plain(status_of(&said), said.body, close);
    let head = response.headers_mut();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in said.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            head.insert(name, value);
        }
    }
    response
}

/// An upstream that could not be used. `close`: nothing else will ever be said on the connection.
pub(crate) fn failed(failure: &Failure, destination: &str, event: Id, close: bool) -> Response<Body> {
    let (status, _) = failure.class.shows();
    let text =
        format!("[postern] No answer from the upstream\nDestination: {destination}\nReason: {failure}\n");
    let mut response = plain(status, text, close);
    insert_event(response.headers_mut(), event);
    response
}

/// The same denial as bytes, for a connection that no HTTP server serves; it is closed after them.
pub(crate) fn denied_raw(status: StatusCode, ruling: &Ruling, destination: &str, event: Id) -> Vec<u8> {
    let more = format!(
        "x-postern-decision: deny\r\nx-postern-rule: {}\r\nx-postern-event: {event}\r\n",
        ruling.rule
    );
    raw(status, &denial_text(ruling, destination), &more)
}

/// A text of our own as bytes, with more header lines; the connection is closed after them.
pub(crate) fn raw(status: StatusCode, text: &str, more: &str) -> Vec<u8> {
    let (code, reason) = (status.as_u16(), status.canonical_reason().unwrap_or("Refused"));
    let length = text.len();
    format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         {more}connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

fn denial_text(ruling: &Ruling, destination: &str) -> String {
    format!(
        "[postern] Blocked by policy\nDestination: {destination}\nRule: {}\nReason: {}\n",
        ruling.rule, ruling.reason
    )
}

fn plain(status: StatusCode, text: String, close: bool) -> Response<Body> {
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

fn insert_event(head: &mut HeaderMap, event: Id) {
    if let Ok(value) = HeaderValue::from_str(&event.to_string()) {
        head.insert("x-postern-event", value);
    }
}
