//! Finds the results of the agent's tools in a request, and whether the provider has all of the conversation from it.

use super::RequestEditor;
use super::marks::{MarkedCall, MarkedResult, Marks, entries, items, member, member_text};
use crate::call::Terms;
use crate::digest::sha256_of;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::wire::json::{Document, Kind, Value};

/// The results of a request.
pub struct ToolResults<'d> {
    marks: Marks<'d>,
    /// A digest of what users said before the model said anything: the same on every turn of a conversation.
    pub opening: [u8; 32],
    /// Whether the provider may have dropped, or may drop by itself, what stands earlier in the request.
    pub may_forget: bool,
}

impl<'d> ToolResults<'d> {
    /// Finds them. `terms` decides nothing here.
    pub fn find(
        adapter: &dyn Adapter,
        head: &ModelRequestHead<'_>,
        document: &'d Document<'d>,
        terms: &'d dyn Terms,
    ) -> Self {
        let mut marks = Marks::default();
        adapter.mark(head, &RequestEditor::new(document, terms), &mut marks);
        let opening = opening(&marks);
        Self { marks, opening, may_forget: may_forget(document.root()) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.marks.results().is_empty()
    }

    /// Each text of a result, with its call where the request has it.
    pub fn iter(&self) -> impl Iterator<Item = (&MarkedResult<'d>, Option<&MarkedCall<'d>>)> {
        let call = |result: &MarkedResult<'d>| self.marks.call_at(result.call?);
        self.marks.results().iter().map(move |result| (result, call(result)))
    }
}

fn opening(marks: &Marks<'_>) -> [u8; 32] {
    let texts: Vec<_> = marks.opening().into_iter().filter_map(Value::text).collect();
    let pieces: Vec<&[u8]> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"]).collect();
    sha256_of(&pieces)
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
    let edits = entries(managed).filter(|(key, _)| key == "edits").map(|(_, edits)| edits);
    if lists { !edits.flat_map(items).all(is_harmless) } else { !items(managed).all(is_harmless) }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
