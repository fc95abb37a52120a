//! A request for `generateContent`, `streamGenerateContent` or `countTokens`: what it is, and what may not go on.

mod files;
mod tool_config;
mod tools;

#[cfg(test)]
mod tests;

use super::fields::{Fields, repeated};
use super::target::{self, Target};
use crate::call::Denial;
use crate::provider::adapter::Asked;
use crate::provider::request::Draft;
use crate::wire::json::Value;

/// Reads a body and says what it is; takes out or refuses what may not go on.
///
/// # Errors
/// Where it must not go on, or has no reading or several.
pub(super) fn read(asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<(), Denial> {
    target::check_format(asked.query)?;
    let target = Target::of(asked.path);
    draft.facts.stream = target.streams;
    names_model(draft, target.model.as_deref());
    let body = fields(draft.root(), "")?;
    if !target.wraps {
        return message(draft, &body);
    }
    let Some(request) = body.at("request") else {
        return Err(Denial::unparseable(
            "request",
            "the field is missing, in which Code Assist has the request",
        ));
    };
    let request = fields(request, "request")?;
    names_model(draft, body.text("model").as_deref());
    let session = request.text("sessionId").or_else(|| body.text("sessionId"));
    draft.facts.session = session.or_else(|| body.text("userPromptId")).map(String::from);
    message(draft, &request)
}

/// A `GenerateContentRequest`, or a `CountTokensRequest`, which may have one in itself.
fn message<'d>(draft: &mut Draft<'d>, message: &Fields<'d>) -> Result<(), Denial> {
    content_request(draft, message)?;
    match message.at("generateContentRequest") {
        Some(counted) => content_request(draft, &fields(counted, "generateContentRequest")?),
        None => Ok(()),
    }
}

fn content_request<'d>(draft: &mut Draft<'d>, message: &Fields<'d>) -> Result<(), Denial> {
    names_model(draft, message.text("model").as_deref());
    routes(draft, message)?;
    keeps_state(draft, message)?;
    files::ask(draft, message)?;
    let offered = tools::read(draft, message)?;
    tool_config::follow(draft, message, &offered)?;
    let has_others = offered.predefined || !offered.hosted.is_empty();
    draft.facts.tools.extend(offered.declared);
    if has_others || (draft.has_lost_all() && goes_on(message)?) {
        draft.excuse();
    }
    Ok(())
}

/// Whether the conversation is one with tools of the client: it has calls of them, or more of it is kept at the provider.
fn goes_on(message: &Fields<'_>) -> Result<bool, Denial> {
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
fn names_model(draft: &mut Draft<'_>, name: Option<&str>) {
    let Some(name) = name else { return };
    let name = name.rsplit_once("models/").map_or(name, |(_, name)| name);
    draft.facts.model.get_or_insert_with(|| name.to_owned());
    if !draft.facts.models.iter().any(|known| known == name) {
        draft.facts.models.push(name.to_owned());
    }
}

/// `routingConfig` may name another model than the path does.
fn routes(draft: &mut Draft<'_>, message: &Fields<'_>) -> Result<(), Denial> {
    let mut inner = message.clone();
    for name in ["generationConfig", "routingConfig", "manualMode"] {
        let Some(value) = inner.at(name) else { return Ok(()) };
        inner = fields(value, name)?;
    }
    names_model(draft, inner.text("modelName").as_deref());
    Ok(())
}

/// What continues at the provider, or is kept there. Cached content has tools in itself that nobody sees here.
fn keeps_state<'d>(draft: &mut Draft<'d>, message: &Fields<'d>) -> Result<(), Denial> {
    for name in ["cachedContent", "continuationToken", "automaticContinuation"] {
        if message.is_on(name) {
            draft.keeps_state(name)?;
        }
    }
    draft.facts.writes |= message.is_on("cachedContent");
    let Some(store) = message.at("store").filter(|_| message.is_on("store")) else { return Ok(()) };
    if draft.may_keep_state() {
        return Ok(());
    }
    draft.changed("store");
    draft.replace(store, "false")
}

fn fields<'d>(value: Value<'d>, place: &str) -> Result<Fields<'d>, Denial> {
    Fields::read(value).map_err(|unclear| unclear.denial(place))
}
