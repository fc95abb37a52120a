//! Reads the facts of a request of Anthropic Messages: models, stream, session, tools.

use std::borrow::Cow;

use super::offer::{MessagesTools, OfferedTool};
use super::{MessagesVariant, catalogue};
use crate::call::Denial;
use crate::provider::request::{RequestEditor, definition, hosted, may_write};
use crate::wire::json::{Document, Limits, Value};

/// The longest label of a session, in characters.
const LONGEST_SESSION: usize = 128;

/// Reads what the body says, but for its tools.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    variant: &MessagesVariant<'_>,
) -> Result<(), Denial> {
    let named = editor.get(body, "model")?.and_then(Value::text).map(Cow::into_owned);
    let model = named.or_else(|| variant.model.map(str::to_owned));
    let mut models: Vec<String> = model.iter().cloned().collect();
    if let Some(fallbacks) = editor.get(body, "fallbacks")? {
        // The word `default` stands for models that the request does not name.
        models.extend(fallbacks.text().map(Cow::into_owned));
        for fallback in fallbacks.items().into_iter().flatten() {
            models.extend(editor.get(fallback, "model")?.and_then(Value::text).map(Cow::into_owned));
        }
    }
    let stream = editor.get(body, "stream")?.and_then(Value::as_bool).unwrap_or(variant.stream);
    let session = session(editor, body)?;
    let most = editor.get(body, "max_tokens")?;
    editor.bounds_tokens(most);
    let facts = &mut editor.facts;
    facts.session = session;
    facts.stream = stream;
    facts.model = model;
    facts.models = models;
    Ok(())
}

/// Says which tools are left. `elsewhere`: the provider has more of them than the request names.
pub(super) fn tools<'d>(
    editor: &mut RequestEditor<'d>,
    offer: &MessagesTools<'d>,
    elsewhere: bool,
) -> Result<(), Denial> {
    let mut tools = Vec::new();
    for tool in offer.kept() {
        if catalogue::is_of(&tool.kind, catalogue::ADVISOR) {
            let model = editor.get(tool.value, "model")?.and_then(Value::text).map(Cow::into_owned);
            editor.facts.models.extend(model);
        }
        let describe = if catalogue::is_client(&tool.kind) { definition } else { hosted };
        tools.push(describe(name(tool), tool.value));
    }
    editor.facts.writes = elsewhere || tools.iter().any(may_write);
    editor.facts.tools = tools;
    let mut seen = std::collections::HashSet::new();
    editor.facts.models.retain(|model| seen.insert(model.clone()));
    Ok(())
}

/// The name of a tool; for a toolset, the name that its calls carry, else its type.
fn name<'t>(tool: &'t OfferedTool<'_>) -> &'t str {
    let unnamed = || catalogue::toolset(&tool.kind).unwrap_or(&tool.kind);
    tool.name.as_deref().unwrap_or_else(unnamed)
}

/// The session that Claude Code writes into `metadata.user_id`: JSON with a `session_id`, or after `_session_`. It is
/// what the agent says, and good for a label alone.
fn session<'d>(editor: &RequestEditor<'d>, body: Value<'d>) -> Result<Option<String>, Denial> {
    let Some(metadata) = editor.get(body, "metadata")? else { return Ok(None) };
    let Some(user) = editor.get(metadata, "user_id")?.and_then(Value::text) else { return Ok(None) };
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
