//! Answers questions about the workspace at the gateway's own name: a map of it, and the anatomy of a part.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};

use super::body::Body;
use super::snapshot::Snapshot;
use crate::agent_api::Answer;
use crate::wire::percent;
use crate::workspace::protocol::{WorkspaceAnswer, WorkspaceQuestion};

/// Where the outlines of the whole workspace are served.
const MAP: &str = "/workspace/map";

/// Where a part of it is, which the query names.
const ANATOMY: &str = "/workspace/anatomy";

/// The longest path that is asked for, in bytes.
const MOST_PATH: usize = 4096;

/// What is said of a question about the workspace.
pub(super) enum WorkspaceReply {
    /// Lines for the agent.
    Page(String),
    Error(Answer),
}

/// Answers a question about the workspace; none where it is about something else, or there is no workspace.
/// `path` is that of the question at the gateway's own name.
pub(super) async fn answer(snapshot: &Snapshot, path: &str, parts: &Parts) -> Option<WorkspaceReply> {
    let workspace = Arc::clone(snapshot.workspace()?);
    let error = |status, why: &str| Some(WorkspaceReply::Error(Answer::error(status, why)));
    let question = match path {
        MAP => WorkspaceQuestion::Map,
        ANATOMY => match part(parts.uri.query().unwrap_or_default()) {
            Some(path) => WorkspaceQuestion::Anatomy { path },
            None => return error(400, "Which part? GET /workspace/anatomy?path=src"),
        },
        _ => return None,
    };
    if parts.headers.contains_key(header::ORIGIN) {
        return error(403, "A page in a browser may not ask");
    }
    if !matches!(parts.method.as_str(), "GET" | "HEAD") {
        let refused = Answer { allow: Some("GET, HEAD"), ..Answer::error(405, "This takes another method") };
        return Some(WorkspaceReply::Error(refused));
    }
    let asked = tokio::task::spawn_blocking(move || workspace.ask(&question)).await;
    match asked {
        Ok(Ok(WorkspaceAnswer::Page(text))) => Some(WorkspaceReply::Page(text)),
        Ok(Ok(WorkspaceAnswer::Refused(why))) => error(404, &why),
        Ok(Ok(WorkspaceAnswer::File(_))) | Err(_) => error(503, "The workspace gives no answer"),
        Ok(Err(why)) => {
            tracing::debug!(error = %why, "a question about the workspace has no answer");
            error(503, "The workspace gives no answer")
        }
    }
}

/// The path that a query names, as forms write it; none where it names none, or none that can be asked for.
fn part(query: &str) -> Option<String> {
    let mut named = query.split('&').filter_map(|pair| pair.strip_prefix("path="));
    let (Some(path), None) = (named.next(), named.next()) else { return None };
    let path = String::from_utf8(percent::decode(path.replace('+', " ").as_bytes()).into_owned()).ok()?;
    (path.len() <= MOST_PATH && !path.contains('\0')).then_some(path)
}

/// The response with a page.
pub(super) fn page(text: String, is_head: bool) -> Response<Body> {
    let mut response = Response::new(Body::own(if is_head { String::new() } else { text }));
    *response.status_mut() = StatusCode::OK;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_one_path() {
        assert_eq!(part("path=src/a%20b+c.rs").as_deref(), Some("src/a b c.rs"));
        assert_eq!(part("x=1&path=").as_deref(), Some(""));
        for none in ["", "path", "paths=a", "path=a&path=b", "path=a%00b", "path=%ff"] {
            assert_eq!(part(none), None, "{none}");
        }
        assert_eq!(part(&format!("path={}", "a".repeat(MOST_PATH + 1))), None);
    }
}
