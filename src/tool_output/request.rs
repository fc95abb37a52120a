//! Reads a request, and plans the edits of its results by the settings of its conversation.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::Shortening;
use super::chains::Chains;
use super::conversations::{ConversationKey, Conversations};
use super::heard::Heard;
use super::known::KnownCuts;
use super::plan::{self, Plan, PlannedEdit, ResultText};
use crate::call::{Terms, Tool};
use crate::evidence::EvidenceId;
use crate::name::gateway::READ_EVIDENCE;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::kind::{self, Offered};
use crate::provider::request::marks::MarkedCall;
use crate::provider::request::results::{self, ToolResults};
use crate::wire::json::{Document, KnownParts, Limits, Value};

/// Which results are shortened, and how.
pub trait Settings: PartialEq {
    fn shortening(&self) -> &Shortening;

    /// Whether results of a tool are cut. `tool` is known by its name alone, so that every turn says the same.
    fn covers(&self, tool: &Tool<'_>) -> bool;

    /// Whether repeats of a tool's results are referred.
    fn covers_repeats(&self, tool: &Tool<'_>) -> bool;
}

/// Where texts are that were cut.
pub trait Places {
    /// Where all of the text with this name is, once it was kept.
    fn place(&self, id: EvidenceId) -> String;

    /// What every place begins with.
    fn root(&self) -> &str;

    /// Whether the input of a call names such a place: what it gives back was cut once already.
    fn is_named_in(&self, input: &str) -> bool;
}

/// A request to a model, as its dialect reads it.
pub struct AskedRequest<'a> {
    pub adapter: &'a dyn Adapter,
    pub head: ModelRequestHead<'a>,
    pub body: &'a [u8],
    /// What is known of it.
    pub known: &'a KnownParts,
    pub limits: Limits,
    /// It decides nothing here.
    pub terms: &'a dyn Terms,
    pub earlier: Earlier<'a>,
}

/// Where is known what a request leaves out, since the provider has it from an earlier one.
#[derive(Clone, Copy)]
pub enum Earlier<'a> {
    /// It was said before on the WebSocket on which the request came.
    Socket(&'a Heard),
    /// It was said in an answer that the request names.
    Answers(&'a Chains),
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Planned {
    pub edits: Vec<PlannedEdit>,
    /// None where the provider keeps no answer.
    pub kept: Option<KeptAnswer>,
}

/// What a request that goes on from the answer must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// How the conversation began.
    pub opening: ConversationKey,
    /// What the provider calls the conversation, where it has a name.
    pub conversation: Option<String>,
}

/// Plans the edits of a request; none where it cannot be read, or its conversation is not edited. `current`: the settings in
/// force. Without `places` nothing that is cut could be kept.
pub fn planned<S: Settings>(
    asked: &AskedRequest<'_>,
    (conversations, known): (&Conversations<S>, &KnownCuts),
    current: Option<&Arc<S>>,
    places: Option<&dyn Places>,
    now: Instant,
) -> Option<Planned> {
    let document = Document::parse_known(asked.body, asked.limits, asked.known).ok()?;
    let (calls, began) = match asked.earlier {
        Earlier::Socket(heard) => (heard.calls(), None),
        Earlier::Answers(chains) => chains.before(document.root()),
    };
    let found = ToolResults::find(asked.adapter, &asked.head, &document, asked.terms, &calls);
    let opening = match asked.earlier {
        Earlier::Socket(heard) => heard.opening(&found),
        Earlier::Answers(_) => began.unwrap_or(found.opening),
    };
    let settings = conversations.settings(opening, !found.is_empty(), current, now)?;
    let texts = found.iter().map(|(result, call)| {
        let nothing = ResultText {
            value: result.text,
            is_error: result.is_error,
            is_cut: false,
            is_referred: false,
            reads_evidence: false,
            called: None,
        };
        let mut text =
            call.map_or_else(|| nothing.clone(), |call| of_call(&nothing, call, &*settings, places));
        text.reads_evidence |= text.is_cut && found.is_known_to_read_evidence(result);
        text
    });
    let texts: Vec<ResultText<'_>> = texts.collect();
    let plan = Plan { settings: settings.shortening(), may_refer: !found.may_forget, places, known };
    let kept = asked.adapter.keeps_answer(document.root()).then(|| KeptAnswer {
        opening,
        conversation: results::kept_conversation(document.root()).map(Cow::into_owned),
    });
    Some(Planned { edits: plan.edits(&texts), kept })
}

/// Whether a call reads what was cut: by the gateway's tool, or by a place that its input names.
pub fn names_evidence(name: &str, input: Option<&str>, places: &dyn Places) -> bool {
    // Slashes may be escaped in JSON.
    let is_named = |input: &str| {
        places.is_named_in(input) || input.contains("\\/") && places.is_named_in(&input.replace("\\/", "/"))
    };
    name.ends_with(READ_EVIDENCE) || input.is_some_and(is_named)
}

/// What the settings say of a result, by its call's name alone.
fn of_call<'d>(
    result: &ResultText<'d>,
    call: &MarkedCall<'_>,
    settings: &impl Settings,
    places: Option<&dyn Places>,
) -> ResultText<'d> {
    let offered = Offered::default();
    let tool = kind::tool(&call.name, call.namespace.as_deref(), false, &offered);
    let (is_cut, is_referred) = (settings.covers(&tool), settings.covers_repeats(&tool));
    let input = call.input.map(Value::raw);
    let id = call.id.as_deref().filter(|_| is_referred);
    ResultText {
        is_cut,
        is_referred,
        reads_evidence: is_cut && places.is_some_and(|places| names_evidence(&call.name, input, places)),
        called: id.and_then(|id| plan::called(&call.name, id)),
        ..result.clone()
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
