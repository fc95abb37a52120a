//! What the gateway itself says where routes are about a request: errors, the stub, lists of models, counts.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::call::Dialect;
use crate::call::turn::AnswerFailure;
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Event, Id, Kind};
use crate::ledger::fresh_id;
use crate::provider::adapter::ErrorAnswer;
use crate::provider::translate::{AgentRoute, agent_error, told};
use crate::proxy::body::Body;
use crate::proxy::routing::health::Change;

/// What the agent reads where no model of a route answered: an error in its own API.
pub(super) fn failed(
    dialect: Dialect,
    failure: &AnswerFailure,
    (label, rule): (&str, &str),
    event: Id,
) -> Response<Body> {
    let route = AgentRoute { label: label.to_owned(), rule: rule.to_owned() };
    let ErrorAnswer { status, headers, body } = agent_error(failure, &route);
    let body = if dialect == Dialect::Anthropic { body } else { of_openai(&body) };
    let mut response = as_json(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), body);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    named(&mut response, "x-postern-event", &event.to_string());
    named(&mut response, "x-postern-route", label);
    response
}

/// The same error as OpenAI's APIs write theirs.
fn of_openai(body: &str) -> String {
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let (kind, message) = (&error["error"]["type"], &error["error"]["message"]);
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}}).to_string()
}

/// The answer to a request whose marker names no model of its route: a text that SDKs read as one.
pub(super) fn stub(
    text: &str,
    (model, streams): (&str, bool),
    (decision, event): (&Decision, Id),
    id: &str,
) -> Response<Body> {
    let body = told(text, (&format!("msg_postern_{id}"), model), streams);
    let mut response = as_json(StatusCode::OK, body);
    if streams {
        let events = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, events);
    }
    named(&mut response, "x-postern-decision", "deny");
    named(&mut response, "x-postern-rule", decision.rule_id());
    named(&mut response, "x-postern-event", &event.to_string());
    response
}

/// The models that may be asked for at a host, as Anthropic and OpenAI both list theirs: each reads its own fields.
pub(super) fn models(names: &[&str], one: Option<&str>) -> Response<Body> {
    let model = |name: &&str| {
        json!({
            "type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z",
            "object": "model", "created": 0, "owned_by": "postern",
        })
    };
    if let Some(one) = one {
        let Some(name) = names.iter().find(|name| **name == one) else { return unknown() };
        return as_json(StatusCode::OK, model(name).to_string());
    }
    let data: Vec<Value> = names.iter().map(model).collect();
    let list = json!({
        "object": "list", "data": data, "has_more": false,
        "first_id": names.first(), "last_id": names.last(),
    });
    as_json(StatusCode::OK, list.to_string())
}

/// The greeting, on which Claude Code in a terminal insists from a host before it starts.
pub(super) fn hello() -> Response<Body> {
    as_json(StatusCode::OK, json!({"message": "hello"}).to_string())
}

/// The answer to what no route answers at a host that only routes answer.
pub(super) fn unknown() -> Response<Body> {
    let message = "[postern] Nothing but models is asked at this host here";
    let error = json!({"type": "error", "error": {"type": "not_found_error", "message": message}});
    as_json(StatusCode::NOT_FOUND, error.to_string())
}

/// The answer to a count of tokens.
pub(super) fn count(tokens: u64) -> Response<Body> {
    as_json(StatusCode::OK, json!({"input_tokens": tokens}).to_string())
}

/// The event of a model that is passed over from now on, or asked again.
pub(super) fn health_changed(rule: &RuleId, label: &str, change: Change) -> Event {
    let reason = match change {
        Change::Closed(time) => format!(
            "{label} has given no answer several times, and is passed over for {} seconds while another model is left",
            time.as_secs()
        ),
        Change::Opened => format!("{label} answers again"),
    };
    Event::new(fresh_id(), Kind::Lifecycle, Decision::by(rule.clone(), Verdict::Audit, reason))
}

fn as_json(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::own(body));
    *response.status_mut() = status;
    let head = response.headers_mut();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn named(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
