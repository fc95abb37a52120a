//! Reads bodies of InvokeModel, and takes out what would act at the provider.

use super::family::Family;
use crate::call::Denial;
use crate::provider::anthropic::{Door, messages_request};
use crate::provider::bedrock::operation::Target;
use crate::provider::bedrock::{converse, definition};
use crate::provider::request::Draft;
use crate::wire::json::{Kind, Value};

/// Fields that carry tools in APIs of which nobody here knows who runs them.
const UNKNOWN: [&str; 3] = ["tool_config", "functions", "connectors"];

/// Fields that make a provider search.
const DOORS: [&str; 2] = ["plugins", "web_search_options"];

/// Reads a body whose root is the document's.
///
/// # Errors
/// Where the request must not go on, or cannot be understood: tools in an API that is not known among it.
pub(in crate::provider::bedrock) fn read(draft: &mut Draft<'_>, target: &Target) -> Result<(), Denial> {
    let body = draft.root();
    if body.kind() != Kind::Object {
        return Err(Denial::unparseable("the body", "it is no JSON object"));
    }
    if let Some(duplicate) = body.duplicate() {
        return Err(Denial::unparseable("the body", duplicate));
    }
    let family = Family::of(draft, &target.model, body)?;
    family.check(draft, body)?;
    match family {
        Family::Anthropic => {
            let door = Door { model: Some(&target.model), stream: target.stream, subscription: false };
            messages_request(draft, body, &door)
        }
        Family::Nova => converse::read_tools(draft, body),
        Family::Other => other(draft, body),
    }
}

/// Models that speak Chat Completions, or something of their own: what has no tools passes.
fn other<'d>(draft: &mut Draft<'d>, body: Value<'d>) -> Result<(), Denial> {
    for key in DOORS {
        if draft.get(body, key)?.is_some_and(|value| !value.is_null()) {
            draft.refuses(key)?;
        }
    }
    for key in UNKNOWN {
        if draft.get(body, key)?.is_some_and(|value| !value.is_null()) {
            return Err(unknown(key));
        }
    }
    if let Some(tools) = draft.get(body, "tools")?.filter(|tools| !tools.is_null()) {
        let items = tools.items().ok_or_else(|| Denial::unparseable("tools", "it is no array"))?;
        items.into_iter().try_for_each(|tool| offered(draft, tool))?;
    }
    let Some(messages) = draft.get(body, "messages")?.and_then(Value::items) else { return Ok(()) };
    for message in messages {
        let Some(content) = draft.get(message, "content")? else { continue };
        content.items().into_iter().flatten().try_for_each(|part| fetched(draft, part))?;
    }
    Ok(())
}

/// A tool as Chat Completions has it. Every other is refused, not taken out: what an API of its own becomes without
/// its tools is not known.
fn offered<'d>(draft: &mut Draft<'d>, tool: Value<'d>) -> Result<(), Denial> {
    if let Some(duplicate) = tool.duplicate() {
        return Err(Denial::unparseable("tools", duplicate));
    }
    let kind = draft.get(tool, "type")?.filter(|kind| !kind.is_null());
    let function = draft.get(tool, "function")?.filter(|function| function.kind() == Kind::Object);
    let is_function = kind.is_none_or(|kind| kind.says("function"));
    let name = function.map_or(Ok(None), |function| draft.get(function, "name"))?.and_then(Value::text);
    match (name, kind.and_then(Value::text)) {
        (Some(name), _) if is_function => {
            draft.facts.tools.push(definition::of(&name, tool));
            draft.facts.writes = true;
            Ok(())
        }
        (_, Some(kind)) if !is_function => {
            draft.refuses(&kind)?;
            draft.facts.tools.push(definition::of(&kind, tool));
            draft.facts.writes = true;
            Ok(())
        }
        (_, _) => Err(unknown("tools")),
    }
}

/// What the provider would fetch: everything but data in the URL itself.
fn fetched<'d>(draft: &mut Draft<'d>, part: Value<'d>) -> Result<(), Denial> {
    let Some(image) = draft.get(part, "image_url")?.filter(|image| !image.is_null()) else { return Ok(()) };
    let url = if image.kind() == Kind::Object { draft.get(image, "url")? } else { Some(image) };
    let is_data = |url: Value<'_>| url.text().is_some_and(|url| url.starts_with("data:"));
    if url.is_some_and(|url| !is_data(url)) {
        draft.fetches("image_url")?;
    }
    Ok(())
}

fn unknown(place: &str) -> Denial {
    Denial::unparseable(place, "it is not known which tools models of this vendor have, and who runs them; use Converse")
}
