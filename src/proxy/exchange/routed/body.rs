//! Writes the body for each model of a chain: moved where it speaks the agent's API, else translated.

use bytes::Bytes;

use super::outgoing::{is_anthropics_own, service};
use crate::call::turn::{AnswerFailure, Notes};
use crate::call::{Dialect, Service, Vendor};
use crate::policy::routing::{self, Model};
use crate::provider::translate::estimate::Size;
use crate::provider::translate::{
    ChatTerms, EffortTerms, Images, MessagesServer, MovedBody, MovedTerms, SentNames, Transform, Transforms,
    ask, default_transforms, moved_chat, moved_messages, moved_responses, prompt,
};
use crate::wire::json::{Document, KnownParts, Limits};

/// A body for one model, and what its answer is read with.
#[derive(Debug)]
pub(super) struct ModelBody {
    pub(super) body: Bytes,
    /// What is known of it.
    pub(super) known: KnownParts,
    /// None where the model speaks the agent's API.
    pub(super) translated: Option<TranslatedRequest>,
    /// What was dropped or mended.
    pub(super) notes: Notes,
}

/// A body that was read before, and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct ReadBody<'a> {
    pub(super) bytes: &'a Bytes,
    pub(super) known: &'a KnownParts,
}

impl<'a> ReadBody<'a> {
    fn document(self, limits: Limits) -> Result<Document<'a>, AnswerFailure> {
        let document = Document::parse_known(self.bytes, limits, self.known);
        document.map_err(|_| AnswerFailure::unsayable("the body is no JSON"))
    }
}

/// What the answer to a translated request is read with.
#[derive(Debug)]
pub(super) struct TranslatedRequest {
    pub(super) names: SentNames,
    pub(super) has_exit_tool: bool,
    pub(super) transforms: Transforms,
    pub(super) shows_thinking: bool,
    pub(super) streams: bool,
    pub(super) stop_sequences: Vec<String>,
    pub(super) size: Size,
}

/// The body for a model of a provider; `agent` is what the agent speaks, `asked` the model that it asks for.
///
/// # Errors
/// If the request cannot be said there.
pub(super) fn for_model(
    (agent, asked): (Dialect, &str),
    model: &Model,
    body: ReadBody<'_>,
    limits: Limits,
) -> Result<ModelBody, AnswerFailure> {
    let unsayable = |what: &str| AnswerFailure::unsayable(what);
    let document = body.document(limits)?;
    let params = params(model);
    let service = service(&model.provider);
    if agent != model.provider.dialect {
        return translated(&document, (asked, model), (service.vendor, &params));
    }
    let terms = MovedTerms { model: model.model.as_deref(), max_tokens: model.max_tokens, params: &params };
    let moved = match agent {
        Dialect::Anthropic => moved_messages(&document, &terms, server(service)),
        Dialect::OpenAIChat => moved_chat(&document, &terms),
        Dialect::OpenAIResponses => moved_responses(&document, &terms),
        Dialect::Gemini | Dialect::Bedrock => return Err(unsayable("no model is asked in this API")),
    };
    Ok(moved_body(moved.map_err(|error| unsayable(error.what))?, body))
}

/// The body for where the agent sent it: without thinking that the gateway signed.
///
/// # Errors
/// If it cannot be edited.
pub(super) fn for_origin(
    service: Service,
    body: ReadBody<'_>,
    limits: Limits,
) -> Result<ModelBody, AnswerFailure> {
    let as_it_is = || ModelBody {
        body: body.bytes.clone(),
        known: body.known.clone(),
        translated: None,
        notes: Notes::default(),
    };
    // A quick look spares most requests the reading.
    let is_signed =
        memchr::memmem::find(body.bytes, crate::call::turn::prompt::SIGNATURE.as_bytes()).is_some();
    if service.dialect != Some(Dialect::Anthropic) || !is_signed {
        return Ok(as_it_is());
    }
    let document = body.document(limits)?;
    let moved = moved_messages(&document, &MovedTerms::default(), MessagesServer::Anthropic);
    Ok(moved_body(moved.map_err(|error| AnswerFailure::unsayable(error.what))?, body))
}

fn moved_body(moved: MovedBody, before: ReadBody<'_>) -> ModelBody {
    let (body, known) = match moved.body {
        Some(body) => (body.into(), moved.known),
        None => (before.bytes.clone(), before.known.clone()),
    };
    ModelBody { body, known, translated: None, notes: moved.notes }
}

fn server(service: Service) -> MessagesServer {
    if is_anthropics_own(service) { MessagesServer::Anthropic } else { MessagesServer::Other }
}

fn translated(
    document: &Document<'_>,
    (asked, model): (&str, &Model),
    (vendor, params): (Vendor, &str),
) -> Result<ModelBody, AnswerFailure> {
    let transforms = transforms(model);
    let said = prompt(document).map_err(|error| AnswerFailure::unsayable(error.what))?;
    let terms = ChatTerms {
        model: model.model.as_deref().unwrap_or(asked),
        label: &model.label,
        vendor,
        max_tokens: model.max_tokens,
        images: match model.images {
            routing::Images::Send => Images::Send,
            routing::Images::Omit => Images::Omit,
        },
        effort: match model.effort {
            routing::Effort::Drop => EffortTerms::Drop,
            routing::Effort::Map => EffortTerms::Map,
        },
        params,
        transforms,
    };
    let request = ask(&said, &terms).map_err(|error| AnswerFailure::unsayable(error.what))?;
    let stops = said.stop.and_then(crate::wire::json::Value::items).into_iter().flatten();
    let translated = TranslatedRequest {
        names: request.names,
        has_exit_tool: request.has_exit_tool,
        transforms,
        shows_thinking: said.asks_for_thinking,
        streams: said.stream == Some(true),
        stop_sequences: stops.filter_map(|stop| stop.text().map(std::borrow::Cow::into_owned)).collect(),
        size: Size::of(document),
    };
    Ok(ModelBody {
        body: request.body.into(),
        known: request.known,
        translated: Some(translated),
        notes: request.notes,
    })
}

/// The transforms that policy names, else those of the provider's host.
pub(super) fn transforms(model: &Model) -> Transforms {
    match &model.transforms {
        // Policy has compared the words with this list (policy/routing/transform.rs).
        Some(words) => words.iter().filter_map(|word| word.parse::<Transform>().ok()).collect(),
        None => default_transforms(model.provider.endpoint.host.name()),
    }
}

/// The parameters of a model as one JSON object; empty where it has none.
fn params(model: &Model) -> String {
    if model.params.is_empty() {
        return String::new();
    }
    let members: Vec<String> = (model.params.iter())
        .map(|param| format!("{}:{}", serde_json::Value::from(param.name.as_str()), param.json))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn policies_may_name_every_transform_and_no_other() {
        let known: BTreeSet<&str> = Transform::ALL.iter().map(|transform| transform.as_str()).collect();
        assert_eq!(BTreeSet::from(routing::TRANSFORMS), known);
    }
}
