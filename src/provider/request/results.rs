//! Finds the results of the agent's tools in a request, and whether the provider has all of the conversation from it.

use std::borrow::Cow;

use super::RequestEditor;
use super::marks::{MarkedCall, MarkedResult, Marks, items, member, member_text, named};
use crate::call::Terms;
use crate::digest::sha256_of;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::wire::json::{Document, Kind, Value};

/// A call that is not in a request, since the provider has it of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCall {
    pub id: String,
    pub name: String,
    pub namespace: Option<String>,
    /// Whether it reads what was cut.
    pub reads_evidence: bool,
}

/// The results of a request.
pub struct ToolResults<'d> {
    marks: Marks<'d>,
    known: &'d [KnownCall],
    /// A digest of what users said before the model said anything: the same on every turn of a conversation.
    pub opening: [u8; 32],
    /// Whether users said anything.
    pub has_opening: bool,
    /// Whether the provider may have dropped, or may drop by itself, what stands earlier in the request.
    pub may_forget: bool,
}

impl<'d> ToolResults<'d> {
    /// Finds them. `terms` decides nothing here; `known` are calls that the request may leave out.
    pub fn find(
        adapter: &dyn Adapter,
        head: &ModelRequestHead<'_>,
        document: &'d Document<'d>,
        terms: &'d dyn Terms,
        known: &'d [KnownCall],
    ) -> Self {
        let mut marks = Marks::default();
        for call in known {
            marks.call(MarkedCall {
                name: call.name.as_str().into(),
                namespace: call.namespace.as_deref().map(Into::into),
                input: None,
                id: Some(call.id.as_str().into()),
            });
        }
        adapter.mark(head, &RequestEditor::new(document, terms), &mut marks);
        Self { known, ..Self::of(marks, document) }
    }

    /// Those of a document with these marks, of which no call is left out.
    pub fn of(marks: Marks<'d>, document: &'d Document<'d>) -> Self {
        let (opening, has_opening) = opening(&marks);
        Self { marks, known: &[], opening, has_opening, may_forget: may_forget(document.root()) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.marks.results().is_empty()
    }

    /// Whether the call of a result is known from before, and reads what was cut.
    pub fn is_known_to_read_evidence(&self, result: &MarkedResult<'_>) -> bool {
        let known = result.call.and_then(|call| self.known.get(Marks::place_of(call)));
        known.is_some_and(|call| call.reads_evidence)
    }

    /// Each text of a result, with its call where that is known.
    pub fn iter(&self) -> impl Iterator<Item = (&MarkedResult<'d>, Option<&MarkedCall<'d>>)> {
        let call = |result: &MarkedResult<'d>| self.marks.call_at(result.call?);
        self.marks.results().iter().map(move |result| (result, call(result)))
    }
}

/// The calls that a message of an answer has whole.
pub fn answered_calls<'d>(adapter: &dyn Adapter, message: &'d Document<'d>) -> Vec<MarkedCall<'d>> {
    let mut marks = Marks::default();
    adapter.mark_answer(message.root(), &mut marks);
    marks.into_calls()
}

/// The id of the answer, or of the conversation at the provider, from which a request goes on.
pub fn goes_on_from(body: Value<'_>) -> Option<Cow<'_, str>> {
    member_text(body, KEPT[0]).or_else(|| kept_conversation(body))
}

/// The id of the conversation at the provider to which a request belongs.
pub fn kept_conversation(body: Value<'_>) -> Option<Cow<'_, str>> {
    let conversation = member(body, KEPT[1])?;
    conversation.text().or_else(|| member_text(conversation, "id"))
}

fn opening(marks: &Marks<'_>) -> ([u8; 32], bool) {
    let texts: Vec<_> = marks.opening().into_iter().filter_map(Value::text).collect();
    let pieces: Vec<&[u8]> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"]).collect();
    (sha256_of(&pieces), !pieces.is_empty())
}

/// Members by which a conversation is kept at the provider.
const KEPT: [&str; 3] = ["previous_response_id", "conversation", "thread"];

/// Edits of a context that leave results of tools where they are.
const HARMLESS: &str = "clear_thinking";

fn may_forget(body: Value<'_>) -> bool {
    let is_kept = KEPT.iter().any(|key| member(body, key).is_some());
    let truncates = member(body, "truncation").is_some_and(|how| !how.says("disabled"));
    is_kept || truncates || member(body, "context_management").is_some_and(clears)
}

/// Whether a provider that manages the context may clear results. A list of edits, or an object with one.
fn clears(managed: Value<'_>) -> bool {
    let is_harmless =
        |edit: Value<'_>| member_text(edit, "type").is_some_and(|kind| kind.starts_with(HARMLESS));
    let lists = managed.kind() == Kind::Object;
    let edits = named(managed, "edits");
    if lists { !edits.flat_map(items).all(is_harmless) } else { !items(managed).all(is_harmless) }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
