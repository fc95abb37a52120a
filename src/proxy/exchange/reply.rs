//! Writes the refusals and failures that agents read.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::call::{DenialForm, Service};
use crate::decision::Decision;
use crate::event::Id;
use crate::provider;
use crate::provider::adapter::{self, ErrorAnswer};
use crate::proxy::body::Body;
use crate::proxy::error::{Failure, Refusal};
use crate::proxy::inbound::session::Naming;
use crate::proxy::snapshot::Snapshot;

/// Where the agent may ask why an event was denied; none where it may not ask, or has no way there.
pub(crate) fn door(snapshot: &Snapshot, naming: &Naming, event: Id) -> Option<String> {
    ask_at(snapshot, naming).map(|place| format!("{place}{event}"))
}

/// The same without the event's id, which ends it.
pub(crate) fn ask_at(snapshot: &Snapshot, naming: &Naming) -> Option<&'static str> {
    match naming {
        Naming::Fixed(_) | Naming::PerRequest => snapshot.ask_at(),
        Naming::Reverse(_) => None,
    }
}

/// The response to a denied request: blocked, destination, rule, reason, where to ask, event, a line each. A client of
/// an LLM provider gets the provider's own shape of errors.
pub(crate) fn denied(
    refusal: &Refusal,
    destination: &str,
    service: Option<Service>,
    (event, door): (Id, Option<String>),
) -> Response<Body> {
    let text = denial_text(&refusal.decision, destination, (event, door.as_deref()));
    let mut response = match in_dialect(refusal, text.trim_end(), service) {
        Some(error) => dialect_response(error, refusal.close),
        None => text_response(refusal.status, text, refusal.close),
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

/// The status of a denial.
pub(crate) fn status(refusal: &Refusal, service: Option<Service>) -> StatusCode {
    in_dialect(refusal, "", service).map_or(refusal.status, |error| status_of(&error))
}

/// A denial in the error format of the provider, if it has one for this denial.
fn in_dialect(refusal: &Refusal, message: &str, service: Option<Service>) -> Option<ErrorAnswer> {
    let service = service.filter(|_| is_about_content(refusal))?;
    let refusal = adapter::RefusalMessage { service, message, answer: refusal.answer };
    Some(provider::error_format(service)?.refusal(&refusal))
}

fn status_of(error: &ErrorAnswer) -> StatusCode {
    StatusCode::from_u16(error.status).unwrap_or(StatusCode::FORBIDDEN)
}

/// Whether a denial is about the content of a request, and not about its framing: dialects have errors for content.
fn is_about_content(refusal: &Refusal) -> bool {
    refusal.status == StatusCode::FORBIDDEN || refusal.answer != DenialForm::Forbidden
}

/// An error of a dialect as a response.
fn dialect_response(error: ErrorAnswer, close: bool) -> Response<Body> {
    let mut response = text_response(status_of(&error), error.body, close);
    let head = response.headers_mut();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in error.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            head.insert(name, value);
        }
    }
    response
}

/// The response where an upstream failed. `close` ends the connection.
pub(crate) fn failed(failure: &Failure, destination: &str, event: Id, close: bool) -> Response<Body> {
    let (status, _) = failure.class.shows();
    let text = format!(
        "[postern] No answer from the upstream\nDestination: {destination}\nReason: {failure}\nEvent: {event}\n"
    );
    let mut response = text_response(status, text, close);
    insert_event(response.headers_mut(), event);
    response
}

/// A denial as bytes, for a connection without an HTTP server, which is closed after them. The reason phrase repeats the
/// rule and the reason: of a refused CONNECT most clients show nothing else.
pub(crate) fn denied_raw(
    status: StatusCode,
    decision: &Decision,
    destination: &str,
    (event, door): (Id, Option<String>),
) -> Vec<u8> {
    let more = format!(
        "x-postern-decision: deny\r\nx-postern-rule: {}\r\nx-postern-event: {event}\r\n",
        decision.rule_id()
    );
    let phrase = phrase(&format!("Blocked by policy: {} ({})", decision.rule_id(), decision.why()));
    raw_response(status, &phrase, &denial_text(decision, destination, (event, door.as_deref())), &more)
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

/// A text as bytes, with more header lines; the connection is closed after them.
pub(crate) fn raw(status: StatusCode, text: &str, more: &str) -> Vec<u8> {
    raw_response(status, status.canonical_reason().unwrap_or("Refused"), text, more)
}

fn raw_response(status: StatusCode, phrase: &str, text: &str, more: &str) -> Vec<u8> {
    let (code, length) = (status.as_u16(), text.len());
    format!(
        "HTTP/1.1 {code} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         {more}connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

fn denial_text(decision: &Decision, destination: &str, (event, door): (Id, Option<&str>)) -> String {
    let mut text = format!(
        "[postern] Blocked by policy\nDestination: {destination}\nRule: {}\nReason: {}\n",
        decision.rule_id(),
        decision.why()
    );
    if let Some(door) = door {
        text.push_str("Ask: ");
        text.push_str(door);
        text.push('\n');
    }
    text.push_str(&format!("Event: {event}\n"));
    text
}

fn text_response(status: StatusCode, text: String, close: bool) -> Response<Body> {
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
            let bytes = denied_raw(StatusCode::FORBIDDEN, &decision, "a.example:443", (fresh_id(), None));
            String::from_utf8(bytes).unwrap().lines().next().unwrap().to_owned()
        };
        let rule = "HTTP/1.1 403 Blocked by policy: postern/builtin/default-deny";
        assert_eq!(first("No rule names this host"), format!("{rule} (No rule names this host)"));
        assert_eq!(first("a\r\nx: b\u{e9}"), format!("{rule} (a??x: b?)"));
        let long = first(&"x".repeat(1_000));
        assert!(long.len() == "HTTP/1.1 403 ".len() + MOST_PHRASE && long.ends_with("..."), "{long}");
    }
}
