//! One chunk of an answer (`GenerateContentResponse`), taken apart: its candidates, their parts, what it says of itself.

use crate::call::{AnswerFacts, Usage};
use crate::provider::answer::BrokenAnswer;
use crate::provider::gemini::fields::{FieldError, MessageFields};
use crate::wire::json::Value;

/// How many candidates an answer may have; providers allow eight.
const MOST_CANDIDATES: u64 = 64;

/// One candidate, as far as a chunk has it.
#[derive(Debug)]
pub(super) struct ChunkCandidate<'d> {
    /// Its own number, by which chunks are put together.
    pub(super) index: u64,
    pub(super) fields: MessageFields<'d>,
    pub(super) parts: Vec<Value<'d>>,
    /// Whether nothing more comes of it, and how it ended.
    pub(super) ending: Option<CandidateEnding>,
}

/// How a candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateEnding {
    /// The model had said all.
    Complete,
    /// It was stopped: by the number of its tokens, a filter, an error.
    Cut,
}

/// Reads a message of an answer.
///
/// # Errors
/// For what is no object, and where a field stands twice.
pub(super) fn fields(value: Value<'_>) -> Result<MessageFields<'_>, BrokenAnswer> {
    MessageFields::read(value).map_err(FieldError::broken)
}

/// The object with the candidates: the chunk itself, or what Code Assist wraps.
///
/// # Errors
/// If it is no object, or candidates stand in both places.
pub(super) fn unwrap(chunk: Value<'_>) -> Result<Value<'_>, BrokenAnswer> {
    let Some(_) = chunk.entries() else {
        return Err(BrokenAnswer::malformed("the answer cannot be understood: it is no JSON object"));
    };
    let fields = fields(chunk)?;
    let Some(inner) = fields.at("response") else { return Ok(chunk) };
    if fields.at("candidates").is_some() {
        return Err(unclear("candidates stand in two places"));
    }
    Ok(inner)
}

/// The candidates of an unwrapped chunk, in their order.
///
/// # Errors
/// If what stands there could be read in several ways.
pub(super) fn candidates<'d>(answer: &MessageFields<'d>) -> Result<Vec<ChunkCandidate<'d>>, BrokenAnswer> {
    let Some(list) = answer.at("candidates") else { return Ok(Vec::new()) };
    let candidates = list.items().ok_or_else(|| unclear("its candidates are no list"))?;
    let candidates: Vec<_> = candidates.map(candidate).collect::<Result<_, _>>()?;
    let numbers: std::collections::BTreeSet<u64> =
        candidates.iter().map(|candidate| candidate.index).collect();
    if numbers.len() < candidates.len() {
        return Err(unclear("two candidates have the same index"));
    }
    Ok(candidates)
}

fn candidate(value: Value<'_>) -> Result<ChunkCandidate<'_>, BrokenAnswer> {
    let fields = fields(value)?;
    let index = match fields.at("index") {
        None => 0,
        Some(index) => number(index).ok_or_else(|| unclear("a candidate's index is no number"))?,
    };
    if index >= MOST_CANDIDATES {
        return Err(BrokenAnswer::bound(format!("the answer has more than {MOST_CANDIDATES} candidates")));
    }
    let reason = fields.at("finishReason");
    let ending = reason
        .map(|reason| if reason.says("STOP") { CandidateEnding::Complete } else { CandidateEnding::Cut });
    let parts = match parts(&fields)? {
        Some(parts) => parts.items().ok_or_else(|| unclear("a candidate's parts are no list"))?.collect(),
        None => Vec::new(),
    };
    Ok(ChunkCandidate { index, fields, parts, ending })
}

/// The list of a candidate's parts, where it has one.
pub(super) fn parts<'d>(candidate: &MessageFields<'d>) -> Result<Option<Value<'d>>, BrokenAnswer> {
    match candidate.at("content") {
        Some(content) => Ok(fields(content)?.at("parts")),
        None => Ok(None),
    }
}

/// Takes over what an unwrapped chunk says of the answer; the last that says it has the say.
pub(super) fn note(answer: &MessageFields<'_>, facts: &mut AnswerFacts) {
    if let Some(model) = answer.text("modelVersion") {
        facts.model = Some(model.into_owned());
    }
    if let Some(id) = answer.text("responseId") {
        facts.id = Some(id.into_owned());
    }
    let Some(usage) = answer.at("usageMetadata").and_then(|usage| MessageFields::read(usage).ok()) else {
        return;
    };
    facts.usage = used(facts.usage, |name| usage.at(name).and_then(number));
}

/// By which names a chunk counts what was used.
pub(super) const COUNTS: [&str; 5] = [
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
];

/// What was used so far: what is not counted any more stays as it was before, in `old`.
pub(super) fn used(old: Usage, count: impl Fn(&str) -> Option<u64>) -> Usage {
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    let reasoning = count("thoughtsTokenCount");
    // Results of the provider's own tools are read by the model and counted apart from the prompt.
    let input = count("promptTokenCount").map(|prompt| sum(Some(prompt), count("toolUsePromptTokenCount")));
    Usage {
        input: input.flatten().or(old.input),
        output: sum(count("candidatesTokenCount"), reasoning).or(old.output),
        cache_read: count("cachedContentTokenCount").or(old.cache_read),
        cache_write: None,
        reasoning: reasoning.or(old.reasoning),
    }
}

/// A whole number, which may stand in quotes.
fn number(value: Value<'_>) -> Option<u64> {
    match value.number_text() {
        Some(digits) => digits.parse().ok(),
        None => value.text()?.parse().ok(),
    }
}

/// An answer that has not one reading, and could have a call in it that somebody else would see.
pub(super) fn unclear(why: &str) -> BrokenAnswer {
    BrokenAnswer::ambiguous(format!("the answer cannot be understood: {why}"))
}
