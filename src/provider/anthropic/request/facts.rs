//! What a request of Anthropic Messages says of itself: models, stream, session, tools.

use std::borrow::Cow;

use super::offer::{Offer, Tool};
use super::{Door, catalogue};
use crate::call::Denial;
use crate::provider::request::{Draft, definition, hosted, may_write};
use crate::wire::json::{Document, Limits, Value};

/// The longest label of a session, in characters.
const LONGEST_SESSION: usize = 128;

/// Reads what the body says, but for its tools.
pub(super) fn read<'d>(draft: &mut Draft<'d>, body: Value<'d>, door: &Door<'_>) -> Result<(), Denial> {
    let named = draft.get(body, "model")?.and_then(Value::text).map(Cow::into_owned);
    let model = named.or_else(|| door.model.map(str::to_owned));
    let mut models: Vec<String> = model.iter().cloned().collect();
    if let Some(fallbacks) = draft.get(body, "fallbacks")? {
        // The word `default` stands for models that the request does not name.
        models.extend(fallbacks.text().map(Cow::into_owned));
        for fallback in fallbacks.items().into_iter().flatten() {
            models.extend(draft.get(fallback, "model")?.and_then(Value::text).map(Cow::into_owned));
        }
    }
    let stream = draft.get(body, "stream")?.and_then(Value::as_bool).unwrap_or(door.stream);
    let session = session(draft, body)?;
    let facts = &mut draft.facts;
    facts.session = session;
    facts.stream = stream;
    facts.model = model;
    facts.models = models;
    Ok(())
}

/// Says which tools are left. `elsewhere`: the provider has more of them than the request names.
pub(super) fn tools<'d>(draft: &mut Draft<'d>, offer: &Offer<'d>, elsewhere: bool) -> Result<(), Denial> {
    let mut tools = Vec::new();
    for tool in offer.kept() {
        if catalogue::is_of(&tool.kind, catalogue::ADVISOR) {
            let model = draft.get(tool.value, "model")?.and_then(Value::text).map(Cow::into_owned);
            draft.facts.models.extend(model);
        }
        let describe = if catalogue::is_client(&tool.kind) { definition } else { hosted };
        tools.push(describe(name(tool), tool.value));
    }
    draft.facts.writes = elsewhere || tools.iter().any(may_write);
    draft.facts.tools = tools;
    let mut seen = std::collections::HashSet::new();
    draft.facts.models.retain(|model| seen.insert(model.clone()));
    Ok(())
}

/// What a tool is called; of a toolset, what its calls say, else its type.
fn name<'t>(tool: &'t Tool<'_>) -> &'t str {
    let unnamed = || catalogue::toolset(&tool.kind).unwrap_or(&tool.kind);
    tool.name.as_deref().unwrap_or_else(unnamed)
}

/// The session that Claude Code writes into `metadata.user_id`: JSON with a `session_id`, or after `_session_`. It is
/// what the agent says, and good for a label alone.
fn session<'d>(draft: &Draft<'d>, body: Value<'d>) -> Result<Option<String>, Denial> {
    let Some(metadata) = draft.get(body, "metadata")? else { return Ok(None) };
    let Some(user) = draft.get(metadata, "user_id")?.and_then(Value::text) else { return Ok(None) };
    let named = Document::parse(user.as_bytes(), Limits { depth: 4, nodes: 64 }).ok().and_then(|document| {
        let session = document.root().get("session_id").ok().flatten()?;
        session.text().map(Cow::into_owned)
    });
    let session = named.or_else(|| user.rsplit_once("_session_").map(|(_, session)| session.to_owned()));
    let is_label = |session: &String| {
        let visible = session.bytes().all(|byte| byte.is_ascii_graphic());
        visible && !session.is_empty() && session.len() <= LONGEST_SESSION
    };
    Ok(session.filter(is_label))
}
