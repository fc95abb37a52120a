//! The same questions as tools of the Model Context Protocol, over Streamable HTTP: no session, no stream, no batch.
//!
//! The wire format: <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports>, and for messages that
//! carry their revision in themselves <https://modelcontextprotocol.io/specification/2026-07-28/basic>.

mod message;
mod revision;
mod tools;

pub use tools::Action;

use http::HeaderMap;
use serde_json::{Value, json};

use super::evidence::EvidenceAccess;
use super::{Answer, Source};
use crate::policy::document::Explain;
use crate::tool_output::evidence_id::EvidenceId;
use message::{Message, Request, Wrong};
use revision::Revision;

/// What the gateway says of itself: of what may be asked, and of nothing else.
fn instructions(source: &impl Source) -> String {
    let explains = source.explains() != Explain::None;
    let reads = source.evidence_access() == EvidenceAccess::ToolToo;
    [
        (true, "The gateway through which this agent's traffic leaves."),
        (explains, " It says why something was denied."),
        (reads, " It reads the tool results of this conversation that were cut, in full or by lines."),
        (true, " It changes nothing, and asking it lifts no rule."),
    ]
    .iter()
    .filter_map(|(is_told, sentence)| is_told.then_some(*sentence))
    .collect()
}

/// Answers the body of a `POST /mcp`.
pub fn answer(headers: &HeaderMap, body: &[u8], source: &impl Source) -> Answer {
    match respond(headers, body, source) {
        Ok(Some(answer)) => Answer::of(200, &answer),
        Ok(None) => Answer { status: 202, content_type: super::JSON, allow: None, body: String::new() },
        Err(wrong) => wrong.into_answer(),
    }
}

/// The text that a call of `read_evidence` in this body needs.
pub fn wanted_evidence(headers: &HeaderMap, body: &[u8]) -> Option<EvidenceId> {
    match message::read(headers, body) {
        Ok(Message::Request(request)) => tools::wanted_evidence(&request),
        Ok(Message::Notification) | Err(_) => None,
    }
}

/// Answers a body that is too long to be read.
pub fn too_long() -> Answer {
    Wrong::new(413, message::INVALID_REQUEST, "The body is longer than 64 KiB").into_answer()
}

/// The response to a request; none to what wants none.
fn respond(headers: &HeaderMap, body: &[u8], source: &impl Source) -> Result<Option<Value>, Wrong> {
    let request = match message::read(headers, body)? {
        Message::Request(request) => request,
        Message::Notification => {
            revision::check_header(headers)?;
            return Ok(None);
        }
    };
    let outcome = revision::of(headers, &request).and_then(|revision| match revision {
        Revision::Handshake => handshake(&request, source),
        Revision::Stateless => stateless(&request, source),
    });
    match outcome {
        Ok(result) => Ok(Some(json!({"jsonrpc": "2.0", "id": request.id, "result": result}))),
        Err(wrong) => Err(wrong.of(request.id)),
    }
}

/// Serves the revisions that begin with `initialize`.
fn handshake(request: &Request, source: &impl Source) -> Result<Value, Wrong> {
    match request.method.as_str() {
        "initialize" => Ok(json!({
            "protocolVersion": revision::agreed(request),
            "capabilities": {"tools": {}},
            "serverInfo": server(),
            "instructions": instructions(source),
        })),
        "ping" => Ok(json!({})),
        "tools/list" => tools::list(request, source),
        "tools/call" => tools::call(request, source),
        other => Err(Wrong::new(200, message::METHOD_NOT_FOUND, unknown(other))),
    }
}

/// Serves the revision whose requests stand for themselves.
fn stateless(request: &Request, source: &impl Source) -> Result<Value, Wrong> {
    let mut result = match request.method.as_str() {
        "server/discover" => json!({
            "supportedVersions": [revision::STATELESS],
            "capabilities": {"tools": {}},
            "instructions": instructions(source),
        }),
        "tools/list" => tools::list(request, source)?,
        "tools/call" => tools::call(request, source)?,
        other => return Err(Wrong::new(404, message::METHOD_NOT_FOUND, unknown(other))),
    };
    result["resultType"] = json!("complete");
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server()});
    if request.method != "tools/call" {
        // A policy can change at any time, and with it what may be asked.
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

fn server() -> Value {
    json!({"name": "postern", "title": "Postern", "version": crate::version::VERSION})
}

fn unknown(method: &str) -> String {
    format!("There is no method {:?} here", super::short(method, 64))
}

#[cfg(test)]
mod tests;
