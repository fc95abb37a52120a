//! A request for `generateContent`, `streamGenerateContent` or `countTokens`: what it is, and what may not go on.

mod count;
mod files;
mod roles;
mod tool_config;
mod tools;

#[cfg(test)]
mod tests;

pub(super) use roles::mark;

use super::fields::{MessageFields, repeated};
use super::target::{self, GeminiTarget};
use crate::call::Denial;
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// Reads a body and says what it is; takes out or refuses what may not go on.
///
/// # Errors
/// If it must not go on, or has no reading or several.
pub(super) fn read(head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    target::check_format(head.query)?;
    let target = GeminiTarget::of(head.path);
    editor.facts.stream = target.streams;
    names_model(editor, target.model.as_deref());
    let body = fields(editor.root(), "")?;
    if !target.wraps {
        return message(editor, &body);
    }
    let Some(request) = body.at("request") else {
        return Err(Denial::unparseable(
            "request",
            "the field is missing, in which Code Assist has the request",
        ));
    };
    let request = fields(request, "request")?;
    names_model(editor, body.text("model").as_deref());
    let session = request.text("sessionId").or_else(|| body.text("sessionId"));
    editor.facts.session = session.or_else(|| body.text("userPromptId")).map(String::from);
    message(editor, &request)
}

/// A `GenerateContentRequest`, or a `CountTokensRequest`, which may have one in itself.
fn message<'d>(editor: &mut RequestEditor<'d>, message: &MessageFields<'d>) -> Result<(), Denial> {
    content_request(editor, message)?;
    match message.at("generateContentRequest") {
        Some(counted) => content_request(editor, &fields(counted, "generateContentRequest")?),
        None => Ok(()),
    }
}

fn content_request<'d>(editor: &mut RequestEditor<'d>, message: &MessageFields<'d>) -> Result<(), Denial> {
    names_model(editor, message.text("model").as_deref());
    routes(editor, message)?;
    keeps_state(editor, message)?;
    count::read(editor, message)?;
    files::ask(editor, message)?;
    let offered = tools::read(editor, message)?;
    tool_config::follow(editor, message, &offered)?;
    let has_others = offered.predefined || !offered.hosted.is_empty();
    editor.facts.tools.extend(offered.declared);
    if has_others || (editor.has_lost_all() && goes_on(message)?) {
        editor.excuse();
    }
    Ok(())
}

/// Whether the conversation is one with tools of the client: it has calls of them, or more of it is kept at the provider.
fn goes_on(message: &MessageFields<'_>) -> Result<bool, Denial> {
    if message.is_on("cachedContent") || message.is_on("continuationToken") {
        return Ok(true);
    }
    for content in message.at("contents").into_iter().flat_map(repeated) {
        for part in fields(content, "contents")?.at("parts").into_iter().flat_map(repeated) {
            let part = fields(part, "contents.parts")?;
            if part.at("functionCall").is_some() || part.at("functionResponse").is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Notes a model that the request could use; names of resources are cut to what the path has.
fn names_model(editor: &mut RequestEditor<'_>, name: Option<&str>) {
    let Some(name) = name else { return };
    let name = name.rsplit_once("models/").map_or(name, |(_, name)| name);
    editor.facts.model.get_or_insert_with(|| name.to_owned());
    if !editor.facts.models.iter().any(|known| known == name) {
        editor.facts.models.push(name.to_owned());
    }
}

/// `routingConfig` may name another model than the path does.
fn routes(editor: &mut RequestEditor<'_>, message: &MessageFields<'_>) -> Result<(), Denial> {
    let mut inner = message.clone();
    for name in ["generationConfig", "routingConfig", "manualMode"] {
        let Some(value) = inner.at(name) else { return Ok(()) };
        inner = fields(value, name)?;
    }
    names_model(editor, inner.text("modelName").as_deref());
    Ok(())
}

/// Asks about state at the provider. Cached content may contain tools that are not visible here.
fn keeps_state<'d>(editor: &mut RequestEditor<'d>, message: &MessageFields<'d>) -> Result<(), Denial> {
    for name in ["cachedContent", "continuationToken", "automaticContinuation"] {
        if message.is_on(name) {
            editor.keeps_state(name)?;
        }
    }
    editor.facts.writes |= message.is_on("cachedContent");
    let Some(store) = message.at("store").filter(|_| message.is_on("store")) else { return Ok(()) };
    if editor.may_keep_state() {
        return Ok(());
    }
    editor.changed("store");
    editor.replace(store, "false")
}

fn fields<'d>(value: Value<'d>, place: &str) -> Result<MessageFields<'d>, Denial> {
    MessageFields::read(value).map_err(|unclear| unclear.denial(place))
}
