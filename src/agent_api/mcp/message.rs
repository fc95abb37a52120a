//! Messages of JSON-RPC 2.0 as the Model Context Protocol sends them: one object in a body, with an id that is no null.

use std::borrow::Cow;

use http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use super::super::Answer;

pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
pub(super) const INVALID_PARAMS: i32 = -32_602;

/// What a body holds.
pub(super) enum Message {
    Request(Request),
    /// A notification, or a response to a request that nobody made: neither is answered.
    Notification,
}

/// A request.
pub(super) struct Request {
    /// A text or a whole number.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// An error of the protocol.
pub(super) struct Wrong {
    /// Of HTTP. The protocol's own errors have one; those of a method come with 200 where the revision says so.
    pub(super) status: u16,
    code: i32,
    message: Cow<'static, str>,
    data: Option<Box<Value>>,
    /// Of the request; null where it could not be read.
    id: Value,
}

impl Wrong {
    pub(super) fn new(status: u16, code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), data: None, id: Value::Null }
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(Box::new(data)), ..self }
    }

    pub(super) fn of(self, id: Value) -> Self {
        Self { id, ..self }
    }

    pub(super) fn into_answer(self) -> Answer {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = *data;
        }
        Answer::of(self.status, &json!({"jsonrpc": "2.0", "id": self.id, "error": error}))
    }
}

/// Reads a body.
///
/// # Errors
/// It holds no message.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Message, Wrong> {
    if !is_json(headers) {
        return Err(Wrong::new(415, INVALID_REQUEST, "The content-type is not application/json"));
    }
    let mut message = match serde_json::from_slice(body) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => {
            return Err(Wrong::new(
                400,
                INVALID_REQUEST,
                "Batches are not read: send one message in a request",
            ));
        }
        Ok(_) => return Err(Wrong::new(400, INVALID_REQUEST, "The body is no message of JSON-RPC")),
        Err(_) => {
            return Err(Wrong::new(
                400,
                PARSE_ERROR,
                "The body is no JSON, or nested deeper than 128 levels",
            ));
        }
    };
    let id = message.remove("id");
    let invalid = |message: &'static str| {
        let id = id.clone().filter(is_id).unwrap_or_default();
        Err(Wrong::new(400, INVALID_REQUEST, message).of(id))
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` is not \"2.0\"");
    }
    let Some(method) = message.remove("method") else {
        let is_response = message.contains_key("result") || message.contains_key("error");
        return if is_response { Ok(Message::Notification) } else { invalid("There is no `method`") };
    };
    let Value::String(method) = method else { return invalid("`method` is no text") };
    let params = match message.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return invalid("`params` is no object"),
    };
    match id {
        None => Ok(Message::Notification),
        Some(id) if is_id(&id) => Ok(Message::Request(Request { id, method, params })),
        Some(_) => invalid("`id` is neither a text nor a whole number"),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
