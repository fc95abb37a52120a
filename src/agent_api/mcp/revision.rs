//! Which revision of the protocol a request is in, and whether its headers say the same as its body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::message::{INVALID_PARAMS, Request, Wrong};

/// The revisions that begin with a handshake, the newest first.
const HANDSHAKE: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// The revision whose requests stand for themselves.
pub(super) const STATELESS: &str = "2026-07-28";

/// What a header says is not what the body says (2026-07-28, `HEADER_MISMATCH`).
const HEADER_MISMATCH: i32 = -32_020;

/// 2026-07-28, `UNSUPPORTED_PROTOCOL_VERSION`.
const UNSUPPORTED: i32 = -32_022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a request is served.
pub(super) enum Revision {
    /// 2025-06-18 and 2025-11-25; also without any version, which means 2025-03-26: its tools have the same form.
    Handshake,
    /// 2026-07-28: each request says its revision in `_meta`, and again in headers.
    Stateless,
}

/// Says how a request is served. What its body says counts; its headers must not say anything else.
///
/// # Errors
/// The revision is not spoken here, or the request is not made as its revision asks.
pub(super) fn of(headers: &HeaderMap, request: &Request) -> Result<Revision, Wrong> {
    let meta = request.params.get("_meta").and_then(Value::as_object);
    let Some(meta) = meta.filter(|meta| meta.contains_key(VERSION_KEY)) else {
        return without_claim(headers, request);
    };
    let Some(version) = meta.get(VERSION_KEY).and_then(Value::as_str) else {
        return Err(missing(&[VERSION_KEY]));
    };
    if !meta.get(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(&[CAPABILITIES_KEY]));
    }
    agree(headers, "mcp-protocol-version", version)?;
    if version != STATELESS {
        return Err(unsupported(version, &[STATELESS]));
    }
    agree(headers, "mcp-method", &request.method)?;
    if let ("tools/call", Some(name)) = (request.method.as_str(), named(&request.params)) {
        agree(headers, "mcp-name", name)?;
    }
    Ok(Revision::Stateless)
}

/// Checks the revision of a notification, which is in no body.
///
/// # Errors
/// It is not spoken here.
pub(super) fn check_header(headers: &HeaderMap) -> Result<(), Wrong> {
    match text(headers, "mcp-protocol-version") {
        Some(version) if version != STATELESS => check_handshake(version),
        Some(_) | None => Ok(()),
    }
}

/// The revision that an `initialize` agrees on: the client's where it is spoken, else the newest with a handshake.
pub(super) fn agreed(request: &Request) -> &'static str {
    let asked = request.params.get("protocolVersion").and_then(Value::as_str);
    HANDSHAKE.into_iter().find(|version| Some(*version) == asked).unwrap_or(HANDSHAKE[0])
}

fn without_claim(headers: &HeaderMap, request: &Request) -> Result<Revision, Wrong> {
    match text(headers, "mcp-protocol-version") {
        None => Ok(Revision::Handshake),
        Some(STATELESS) if request.method == "initialize" => Err(mismatch("mcp-protocol-version")),
        Some(STATELESS) => Err(missing(&[VERSION_KEY, CAPABILITIES_KEY])),
        Some(version) => check_handshake(version).map(|()| Revision::Handshake),
    }
}

/// 2025-03-26 is what a client without the header speaks, and some say so.
fn check_handshake(version: &str) -> Result<(), Wrong> {
    if version == "2025-03-26" || HANDSHAKE.contains(&version) {
        return Ok(());
    }
    Err(unsupported(version, &[STATELESS, HANDSHAKE[0], HANDSHAKE[1]]))
}

/// What the request is for; `Mcp-Name` says the same.
fn named(params: &Map<String, Value>) -> Option<&str> {
    params.get("name")?.as_str()
}

fn agree(headers: &HeaderMap, name: &'static str, said: &str) -> Result<(), Wrong> {
    let is_same = text(headers, name).is_some_and(|value| match encoded(value) {
        Some(base64) => STANDARD.decode(base64).is_ok_and(|bytes| bytes == said.as_bytes()),
        None => value == said,
    });
    if is_same { Ok(()) } else { Err(mismatch(name)) }
}

/// A value that is not fit for a header is `=?base64?…?=`.
fn encoded(value: &str) -> Option<&str> {
    value.strip_prefix("=?base64?")?.strip_suffix("?=")
}

/// The one value of a header.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim_matches([' ', '\t']);
    // Of two values neither is the one.
    Some(if values.next().is_some() { "" } else { value })
}

fn mismatch(name: &'static str) -> Wrong {
    Wrong::new(400, HEADER_MISMATCH, format!("The header {name} does not say what the body says"))
}

fn missing(keys: &[&str]) -> Wrong {
    Wrong::new(400, INVALID_PARAMS, format!("`params._meta` needs {}", keys.join(" and ")))
}

fn unsupported(version: &str, supported: &[&str]) -> Wrong {
    Wrong::new(400, UNSUPPORTED, "This revision of the protocol is not spoken here")
        .with(json!({"supported": supported, "requested": super::super::short(version, 64)}))
}
