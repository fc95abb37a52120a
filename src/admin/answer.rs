//! Answers of the admin server.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;

pub(super) type AdminAnswer = Response<Full<Bytes>>;

pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> AdminAnswer {
    let mut answer = typed("text/plain; charset=utf-8", body);
    *answer.status_mut() = status;
    answer
}

pub(super) fn typed(content_type: &'static str, body: impl Into<Bytes>) -> AdminAnswer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Returns the path's answer to GET and HEAD, 405 to other methods, 404 to paths that have none.
pub(super) fn respond(method: &Method, answer: Option<AdminAnswer>) -> AdminAnswer {
    match answer {
        None => text(StatusCode::NOT_FOUND, "not found\n"),
        Some(answer) if *method == Method::GET || *method == Method::HEAD => answer,
        Some(_) => {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            refusal
        }
    }
}
