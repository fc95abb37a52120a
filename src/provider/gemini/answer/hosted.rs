//! Notes calls that already ran at the provider; a denied one is replaced, with its result.

use super::chunk::{self, unclear};
use super::page::{Pages, PartChange, PartPlace};
use super::part::HostedPart;
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate};
use crate::provider::gemini::fields::MessageFields;
use crate::wire::json::Value;

/// How many calls one candidate may have run at the provider.
const MOST: usize = 1024;

/// How long an id, and the name of a tool, may be.
const LONGEST: usize = 512;

/// The tools of the provider that have run for one candidate, in their order.
#[derive(Debug, Default)]
pub(super) struct HostedCalls(Vec<Past>);

#[derive(Debug)]
struct Past {
    tool: String,
    id: String,
    denied: bool,
}

impl HostedCalls {
    /// A tool of the provider has run.
    ///
    /// # Errors
    /// If there are more than a bound allows.
    pub(super) fn ran(
        &mut self,
        ran: &HostedPart<'_>,
        at: PartPlace,
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        if let Some(text) = self.ask(&ran.id, &ran.tool, ran.input, gate)? {
            pages.change(at, PartChange::Text(text));
        }
        Ok(())
    }

    /// Removes the result of a denied call. A result without a call is asked about as one.
    ///
    /// # Errors
    /// As for [`Self::ran`].
    pub(super) fn result(
        &mut self,
        result: HostedPart<'_>,
        at: PartPlace,
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        let is_its =
            |past: &&Past| past.tool == result.tool && (result.id.is_empty() || past.id == result.id);
        match self.0.iter().rev().find(is_its) {
            Some(past) if past.denied => pages.change(at, PartChange::Gone),
            Some(_) => {}
            None => return self.ran(&HostedPart { input: "{}", ..result }, at, pages, gate),
        }
        Ok(())
    }

    /// Asks about a search or fetch that only the grounding of a candidate shows.
    ///
    /// # Errors
    /// As for [`Self::ran`], and where it has not one reading.
    pub(super) fn grounded(
        &mut self,
        candidate: &MessageFields<'_>,
        at: PartPlace,
        pages: &mut Pages,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        for field in ["groundingMetadata", "urlContextMetadata"] {
            let Some(found) = candidate.at(field) else { continue };
            let metadata = chunk::fields(found)?;
            if metadata.iter().next().is_none() {
                continue;
            }
            let tool = if field == "urlContextMetadata" { "urlContext" } else { searched(&metadata) };
            let text = match self.0.iter().rev().find(|past| past.tool == tool) {
                Some(past) if past.denied => None,
                Some(_) => continue,
                None => match self.ask("", tool, &queries(&metadata), gate)? {
                    Some(text) => Some(text),
                    None => continue,
                },
            };
            if let Some(page) = pages.page(at.page) {
                page.changes.metadata.insert((at.place.candidate, field), text);
            }
        }
        Ok(())
    }

    /// Asks about a call that has run, and remembers it. Returns the text that stands in its place, if any does.
    fn ask(
        &mut self,
        id: &str,
        tool: &str,
        input: &str,
        gate: &mut Gate,
    ) -> Result<Option<String>, BrokenAnswer> {
        if self.0.len() == MOST {
            return Err(BrokenAnswer::bound(format!(
                "the answer has more than {MOST} calls of hosted tools"
            )));
        }
        if id.len().max(tool.len()) > LONGEST {
            return Err(unclear("the name or the id of a hosted tool is too long"));
        }
        let fate = gate.whole(&CallHead::hosted(id, tool), input);
        self.0.push(Past { tool: tool.to_owned(), id: id.to_owned(), denied: fate != CallOutcome::Passes });
        Ok(match fate {
            CallOutcome::Passes => None,
            CallOutcome::Denied(text) => Some(text),
        })
    }
}

/// Which tool grounding comes from.
fn searched(metadata: &MessageFields<'_>) -> &'static str {
    let chunks = metadata.at("groundingChunks").and_then(Value::items).into_iter().flatten();
    let kinds: Vec<_> = chunks.filter_map(|chunk| chunk.entries()?.next()?.key.text()).collect();
    let has = |name: &str| kinds.iter().any(|kind| kind == name);
    if has("maps") || metadata.at("googleMapsWidgetContextToken").is_some() {
        return "googleMaps";
    }
    if has("retrievedContext") || has("retrieved_context") || metadata.at("retrievalQueries").is_some() {
        return "retrieval";
    }
    "googleSearch"
}

/// The searches or fetched URLs, as JSON.
fn queries(metadata: &MessageFields<'_>) -> String {
    let names = ["webSearchQueries", "retrievalQueries", "urlMetadata"];
    let entry = |name: &&str| Some(format!("\"{name}\":{}", metadata.at(name)?.raw()));
    format!("{{{}}}", names.iter().filter_map(entry).collect::<Vec<_>>().join(","))
}
