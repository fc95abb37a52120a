//! What heads say for the events of an exchange: the session, the organization, the trace, the id of an answer.

use std::sync::Arc;

use http::HeaderMap;

use crate::event::TraceParent;

/// Fields in which providers give the id of an answer.
const REQUEST_IDS: [&str; 5] =
    ["request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "mistral-correlation-id"];
/// Fields in which a request names the organization that it is to be counted on, and in which an answer names the one that
/// the key belongs to.
const ORGANIZATION_OF_REQUEST: [&str; 1] = ["openai-organization"];
const ORGANIZATION_OF_ANSWER: [&str; 2] = ["openai-organization", "anthropic-organization-id"];
/// The longest session label that is taken from an agent.
const LABEL: usize = 128;
/// The longest name or id, chosen by an agent or a provider, that an event has, in characters.
const SHOWN: usize = 256;
/// Fields in which agents name the session of a request.
const SESSION_FIELDS: [&str; 3] = ["x-postern-session", "x-claude-code-session-id", "session-id"];

/// The label that the agent gives its session: short visible ASCII; any other is ignored.
pub(super) fn session(head: &HeaderMap) -> Option<Arc<str>> {
    let text = SESSION_FIELDS.iter().find_map(|name| head.get(*name))?.to_str().ok()?;
    let fit = !text.is_empty() && text.len() <= LABEL && text.bytes().all(|byte| byte.is_ascii_graphic());
    fit.then(|| text.into())
}

/// The agent's trace.
pub(super) fn trace(head: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(head.get("traceparent")?.to_str().ok()?)
}

/// The organization that a request names.
pub(super) fn organization_of_request(head: &HeaderMap) -> Option<String> {
    organization(head, &ORGANIZATION_OF_REQUEST)
}

/// The organization that an answer names.
pub(super) fn organization_of_answer(head: &HeaderMap) -> Option<String> {
    organization(head, &ORGANIZATION_OF_ANSWER)
}

/// What the provider calls an answer.
pub(super) fn request_id(head: &HeaderMap) -> Option<String> {
    REQUEST_IDS.iter().find_map(|name| head.get(*name)?.to_str().ok().map(str::to_owned))
}

/// Of several values all, so that none hides behind another.
fn organization(head: &HeaderMap, names: &[&str]) -> Option<String> {
    let values = names.iter().flat_map(|name| head.get_all(*name));
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A name as events have it.
pub(super) fn short(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
