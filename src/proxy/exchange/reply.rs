//! What an agent reads where its request goes no further.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::call::{Answer, Service};
use crate::decision::Decision;
use crate::event::Id;
use crate::provider;
use crate::provider::adapter::{self, ErrorAnswer};
use crate::proxy::body::Body;
use crate::proxy::error::{Failure, Refusal};

/// A denial, in four lines (design: blocked, destination, rule, reason), with the id of the event that denied. An LLM
/// provider's client reads it in the shape of the provider's own errors.
pub(crate) fn denied(
    refusal: &Refusal,
    destination: &str,
    service: Option<Service>,
    event: Id,
) -> Response<Body> {
    let text = denial_text(&refusal.decision, destination);
    let mut response = match voiced(refusal, text.trim_end(), service) {
        Some(said) => shaped(said, refusal.close),
        None => plain(refusal.status, text, refusal.close),
    };
    let head = response.headers_mut();
    head.insert("x-postern-decision", HeaderValue::from_static("deny"));
    if let Ok(rule) = HeaderValue::from_str(refusal.decision.rule_id()) {
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
    Some(provider::error_format(service)?.refusal(&said))
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

/// The same denial as bytes, for a connection that no HTTP server serves; it is closed after them. The reason phrase says
/// it too: of a refused CONNECT most clients show nothing else.
pub(crate) fn denied_raw(status: StatusCode, decision: &Decision, destination: &str, event: Id) -> Vec<u8> {
    let more = format!(
        "x-postern-decision: deny\r\nx-postern-rule: {}\r\nx-postern-event: {event}\r\n",
        decision.rule_id()
    );
    let phrase = phrase(&format!("Blocked by policy: {} ({})", decision.rule_id(), decision.why()));
    framed((status.as_u16(), &phrase), &denial_text(decision, destination), &more)
}

/// The longest reason phrase that is sent, in bytes: some clients take a status line of 256.
const MOST_PHRASE: usize = 200;

/// A text as a reason phrase (RFC 9112, section 4): printable ASCII, shortened.
fn phrase(text: &str) -> String {
    let printable = |sign: char| if sign == ' ' || sign.is_ascii_graphic() { sign } else { '?' };
    let mut phrase: String = text.chars().take(MOST_PHRASE).map(printable).collect();
    if text.chars().nth(MOST_PHRASE).is_some() {
        phrase.truncate(MOST_PHRASE - 3);
        phrase.push_str("...");
    }
    phrase
}

/// A text of our own as bytes, with more header lines; the connection is closed after them.
pub(crate) fn raw(status: StatusCode, text: &str, more: &str) -> Vec<u8> {
    framed((status.as_u16(), status.canonical_reason().unwrap_or("Refused")), text, more)
}

fn framed((code, reason): (u16, &str), text: &str, more: &str) -> Vec<u8> {
    let length = text.len();
    format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         {more}connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

fn denial_text(decision: &Decision, destination: &str) -> String {
    format!(
        "[postern] Blocked by policy\nDestination: {destination}\nRule: {}\nReason: {}\n",
        decision.rule_id(),
        decision.why()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::fresh_id;

    #[test]
    fn a_refusal_in_bytes_names_rule_and_reason_in_its_status_line_and_nothing_that_breaks_it() {
        let first = |reason: &str| {
            let decision = Decision::builtin("default-deny", reason.to_owned());
            let bytes = denied_raw(StatusCode::FORBIDDEN, &decision, "a.example:443", fresh_id());
            String::from_utf8(bytes).unwrap().lines().next().unwrap().to_owned()
        };
        let rule = "HTTP/1.1 403 Blocked by policy: postern/builtin/default-deny";
        assert_eq!(first("No rule names this host"), format!("{rule} (No rule names this host)"));
        assert_eq!(first("a\r\nx: b\u{e9}"), format!("{rule} (a??x: b?)"));
        let long = first(&"x".repeat(1_000));
        assert!(long.len() == "HTTP/1.1 403 ".len() + MOST_PHRASE && long.ends_with("..."), "{long}");
    }
}
