//! Reads a request, and plans the edits of its results by the settings of its conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use foldhash::quality::RandomState;
use memchr::memmem::Finder;

use super::Shortening;
use super::chains::Chains;
use super::conversations::{ConversationKey, Conversations};
use super::evidence_id::EvidenceId;
use super::heard::Heard;
use super::known::KnownCuts;
use super::plan::{Plan, PlannedEdit, ResultText};
use crate::call::{Terms, Tool};
use crate::digest::sha256_of;
use crate::name::gateway::READ_EVIDENCE;
use crate::name::host::Host;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::kind::{self, Offered};
use crate::provider::request::marks::{MarkedCall, Marks};
use crate::provider::request::results::{self, ToolResults};
use crate::wire::json::Document;

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
    /// It decides nothing here.
    pub terms: &'a dyn Terms,
    /// The source of what it leaves out.
    pub earlier: Earlier<'a>,
}

/// The source of what a request leaves out, since the provider has it from an earlier one.
#[derive(Clone, Copy)]
pub enum Earlier<'a> {
    /// What was said on the WebSocket on which the request came.
    Socket(&'a Heard),
    /// The answers of this host, of which the request names one.
    Answers(&'a Chains, &'a Host),
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Planned {
    /// In the order of the document; none where the conversation is not edited.
    pub edits: Vec<PlannedEdit>,
    /// None where the provider keeps no answer.
    pub kept: Option<KeptAnswer>,
}

/// What to remember of the answer, where the provider keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// How the conversation began.
    pub opening: ConversationKey,
    /// What the provider calls the conversation, where it has a name.
    pub conversation: Option<String>,
}

/// Plans the edits of a request. `marks` are those of its document, where somebody has made them. `current`: the settings in force. Without `places` nothing that is cut could be kept.
pub fn planned<'d, S: Settings>(
    asked: &AskedRequest<'d>,
    (document, marks): (&'d Document<'d>, Option<Marks<'d>>),
    (conversations, known): (&Conversations<S>, &KnownCuts),
    current: Option<&Arc<S>>,
    places: Option<&dyn Places>,
    now: Instant,
) -> Planned {
    let root = document.root();
    let from = results::goes_on_from(root);
    let (calls, began) = match asked.earlier {
        Earlier::Socket(heard) => (heard.calls(), heard.opening()),
        Earlier::Answers(chains, host) => {
            let before = from.as_deref().and_then(|id| chains.before(host, id));
            before.map_or_else(Default::default, |(calls, opening)| (calls, Some(opening)))
        }
    };
    let found = match marks.filter(|_| calls.is_empty()) {
        Some(marks) => ToolResults::of(marks, document),
        None => ToolResults::find(asked.adapter, &asked.head, document, asked.terms, &calls),
    };
    let opening = match &from {
        Some(id) => began.unwrap_or_else(|| unknown_opening(id)),
        None => found.opening,
    };
    if let (Earlier::Socket(heard), None) = (asked.earlier, &from) {
        heard.begin(found.has_opening.then_some(opening));
    }
    let is_under_way = from.is_some() || !found.is_empty();
    let settings = conversations.settings(opening, is_under_way, current, now);
    let edits = settings.map(|settings| edits(&found, &*settings, places, known)).unwrap_or_default();
    let kept = asked
        .adapter
        .keeps_answer(root)
        .then(|| KeptAnswer { opening, conversation: results::kept_conversation(root).map(Cow::into_owned) });
    Planned { edits, kept }
}

/// Names a conversation by the answer from which this process first saw it go on: how it began is not known. No two share it.
fn unknown_opening(id: &str) -> ConversationKey {
    sha256_of(&[b"from\0", id.as_bytes()])
}

/// The edits by the settings of the conversation.
fn edits<S: Settings>(
    found: &ToolResults<'_>,
    settings: &S,
    places: Option<&dyn Places>,
    known: &KnownCuts,
) -> Vec<PlannedEdit> {
    // A conversation has hundreds of results of a few tools.
    let mut tools: HashMap<_, CoveredTool, RandomState> = HashMap::default();
    let texts = found.iter().map(|(result, call)| {
        let tool = call.map(|call| {
            let name = (&*call.name, call.namespace.as_deref());
            *tools.entry(name).or_insert_with(|| CoveredTool::of(name, settings))
        });
        let CoveredTool { is_cut, is_referred } = tool.unwrap_or_default();
        let reads = || call.zip(places).is_some_and(|(call, places)| reads_evidence(call, places));
        ResultText {
            value: result.text,
            is_error: result.is_error,
            is_cut,
            is_referred,
            reads_evidence: is_cut && (reads() || found.is_known_to_read_evidence(result)),
            called: call.and_then(|call| Some((&*call.name, call.id.as_deref()?))),
        }
    });
    let texts: Vec<ResultText<'_>> = texts.collect();
    Plan { settings: settings.shortening(), may_refer: !found.may_forget, places, known }.edits(&texts)
}

/// What the settings say of the results of a tool.
#[derive(Clone, Copy, Default)]
struct CoveredTool {
    is_cut: bool,
    is_referred: bool,
}

impl CoveredTool {
    /// By the tool's name alone.
    fn of((name, namespace): (&str, Option<&str>), settings: &impl Settings) -> Self {
        let tool = kind::tool(name, namespace, false, &Offered::default());
        Self { is_cut: settings.covers(&tool), is_referred: settings.covers_repeats(&tool) }
    }
}

/// Whether a call reads what was cut, as it stands in a request or a message.
pub(super) fn reads_evidence(call: &MarkedCall<'_>, places: &dyn Places) -> bool {
    // Of a string, what it says: the same call is told so by an answer that streams.
    let input = call.input.map(|input| input.text().unwrap_or(Cow::Borrowed(input.raw())));
    names_evidence(&call.name, input.as_deref().unwrap_or_default(), places)
}

/// Whether a call reads what was cut: by the gateway's tool, or by a place that its input names.
pub fn names_evidence(name: &str, input: &str, places: &dyn Places) -> bool {
    // Slashes may be escaped in JSON.
    static ESCAPED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r"\/"));
    let is_escaped = || ESCAPED.find(input.as_bytes()).is_some();
    name.ends_with(READ_EVIDENCE)
        || places.is_named_in(input)
        || is_escaped() && places.is_named_in(&input.replace(r"\/", "/"))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
