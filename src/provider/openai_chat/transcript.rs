//! Reads a stream of chunks: content flows, calls flow or wait for their verdict, and what is denied becomes text.
//!
//! Content and calls are different fields of a message, so content overtakes calls that wait; calls of one choice
//! never overtake each other, since their indices must be contiguous when one of them is taken out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::choice::ChoiceState;
use super::chunk;
use super::rewrite::{self, Rewritten};
use super::{error, hosted, usage, whole};
use crate::provider::answer::{self, AnswerPart, BrokenAnswer, Gate, KeepAlive, Out, Received, StreamEvent};
use crate::wire::json::{Document, Kind, Limits, Value};

/// How many choices an answer may have; OpenAI's `n` is at most 128.
const MOST_CHOICES: usize = 1024;

/// The members of a delta that hold text.
const TEXTS: [&str; 4] = ["content", "reasoning_content", "reasoning", "refusal"];

/// Noise with which OpenAI makes all chunks of a stream equally long.
const PADDING: &str = "obfuscation";

/// Reads one answer.
#[derive(Default)]
pub(super) struct ChatTranscript {
    choices: BTreeMap<u64, ChoiceState>,
    kept: VecDeque<ReadChunk>,
    kept_bytes: usize,
    /// The number of kept chunks of each choice that has any.
    waiting: BTreeMap<u64, KeptChunks>,
    /// Whether a call was decided since chunks were let go on last.
    decided: bool,
    /// Whether the marker `[DONE]` came.
    done: bool,
}

/// The chunks of one choice that are kept.
#[derive(Default)]
struct KeptChunks {
    chunks: usize,
    /// How many of them say something whose order matters.
    speaking: usize,
}

/// A received chunk, and the choices and calls in it.
pub(super) struct ReadChunk {
    received: Received,
    pub(super) said: Vec<ChoiceContent>,
    /// The entries that speak of calls, in the order of the document.
    pub(super) pieces: Vec<ChunkCall>,
}

/// The content of a choice in a chunk, beside calls.
pub(super) struct ChoiceContent {
    pub(super) choice: u64,
    role: bool,
    text: bool,
    /// Whether it has content whose order matters.
    speaks: bool,
    finish: bool,
    /// A tool that the provider ran is taken out.
    cut: bool,
}

pub(super) struct ChunkCall {
    pub(super) choice: u64,
    /// The call's number in its choice.
    pub(super) call: usize,
}

impl answer::Transcript for ChatTranscript {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        if event.is_done() {
            self.done = true;
            self.choices.values_mut().for_each(|choice| choice.finish(gate));
            self.decided = true;
            self.flush(out)?;
            out.pass(event);
            return Ok(());
        }
        if event.json.kind() != Kind::Object {
            return Err(BrokenAnswer::malformed("a chunk is no object"));
        }
        let chunk = self.read(event, gate)?;
        self.flush(out)?;
        if let Some(edited) = failed(event, gate)? {
            if !chunk.pieces.is_empty() {
                return Err(BrokenAnswer::ambiguous("a chunk is an error and has tool calls"));
            }
            out.say(None, edited);
        } else if self.waits(&chunk) {
            self.keep(chunk);
        } else {
            self.emit(&chunk, out)?;
        }
        Ok(())
    }

    /// Of what a choice says beside calls, only that it says something matters, and that only once.
    fn free<'d>(&mut self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        let root = event.json;
        let (Ok(choices), Ok(None), true) =
            (chunk::choices(root, "delta"), hosted::failed(root), self.kept.is_empty())
        else {
            return Vec::new();
        };
        let [chunk::ChunkChoice { said: Some(said), finish: None, .. }] = choices[..] else {
            return Vec::new();
        };
        if !chunk::pieces(said).is_ok_and(|pieces| pieces.is_empty()) {
            return Vec::new();
        }
        let of = |object: Value<'d>, key: &str| object.get(key).ok().flatten();
        let mut free: Vec<Value<'d>> = TEXTS.iter().filter_map(|key| of(said, key)).collect();
        free.retain(|text| text.kind() == Kind::String && says(*text));
        if !free.is_empty() {
            free.extend(of(root, PADDING).filter(|padding| padding.kind() == Kind::String));
        }
        free
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        for choice in self.choices.values_mut() {
            if self.done { choice.finish(gate) } else { choice.break_off(gate) }
        }
        self.decided = true;
        self.flush(out)
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        whole::read(body, gate)
    }

    fn is_in_call(&self) -> bool {
        self.choices.values().any(ChoiceState::is_in_call)
    }

    fn held(&self) -> usize {
        self.kept_bytes
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Comment
    }

    /// Both official clients raise `error` of a chunk, with its message, and read no further.
    fn broken(&mut self, message: &str, out: &mut Out) {
        if !self.done {
            out.say(None, error(message, "policy_violation"));
        }
    }
}

impl ChatTranscript {
    /// Takes up what a chunk says, and decides what it completes.
    fn read(&mut self, event: &StreamEvent<'_>, gate: &mut Gate) -> Result<ReadChunk, BrokenAnswer> {
        let root = event.json;
        let choices = chunk::choices(root, "delta")?;
        usage::read(root, &choices, &mut gate.facts)?;
        let mut chunk = ReadChunk { received: event.received.clone(), said: Vec::new(), pieces: Vec::new() };
        for own in &choices {
            let number = own.index;
            if self.choices.len() >= MOST_CHOICES && !self.choices.contains_key(&number) {
                return Err(BrokenAnswer::bound(format!("an answer has more than {MOST_CHOICES} choices")));
            }
            if chunk.said.iter().any(|said| said.choice == number) {
                return Err(BrokenAnswer::ambiguous("a choice stands twice in one chunk"));
            }
            no_message(own.value)?;
            let choice = self.choices.entry(number).or_default();
            let mut cut = false;
            if let Some(delta) = own.said {
                for piece in chunk::pieces(delta)? {
                    let call = choice.take(&piece, gate)?;
                    chunk.pieces.push(ChunkCall { choice: number, call });
                }
                cut = hosted::ask(delta, &mut choice.hosted, gate)?;
            }
            match own.finish.as_deref() {
                None => {}
                // OpenRouter ends a choice so after an error of the model's provider.
                Some("error") => choice.abandon(gate),
                Some("length" | "content_filter") => choice.stop(gate),
                Some(_) => choice.finish(gate),
            }
            self.decided |= choice.take_settled();
            chunk.said.push(said(own, cut)?);
        }
        if hosted::failed(root)?.is_some() {
            self.choices.values_mut().for_each(|choice| choice.abandon(gate));
            self.decided = true;
        }
        Ok(chunk)
    }

    fn is_undecided(&self, chunk: &ReadChunk) -> bool {
        chunk.pieces.iter().any(|piece| {
            self.choices.get(&piece.choice).is_some_and(|choice| choice.is_undecided(piece.call))
        })
    }

    /// Whether a chunk waits: for a verdict, or behind what waits.
    fn waits(&self, chunk: &ReadChunk) -> bool {
        self.is_undecided(chunk)
            || chunk.said.iter().any(|own| {
                let has_calls = || chunk.pieces.iter().any(|piece| piece.choice == own.choice);
                let waiting = self.waiting.get(&own.choice);
                // Neither its end, nor text behind waiting text, nor another call may overtake what waits of a choice.
                waiting.is_some_and(|waiting| own.finish || waiting.speaking > 0 || has_calls())
            })
    }

    fn keep(&mut self, chunk: ReadChunk) {
        self.kept_bytes += chunk.received.kept_bytes();
        for said in &chunk.said {
            let waiting = self.waiting.entry(said.choice).or_default();
            waiting.chunks += 1;
            waiting.speaking += usize::from(said.speaks);
        }
        self.kept.push_back(chunk);
    }

    fn forget(&mut self, chunk: &ReadChunk) {
        self.kept_bytes -= chunk.received.kept_bytes();
        for said in &chunk.said {
            let Some(waiting) = self.waiting.get_mut(&said.choice) else { continue };
            waiting.chunks -= 1;
            waiting.speaking -= usize::from(said.speaks);
            if waiting.chunks == 0 {
                self.waiting.remove(&said.choice);
            }
        }
    }

    /// Lets go on what waits for nothing any more: nothing, as long as no call is decided.
    fn flush(&mut self, out: &mut Out) -> Result<(), BrokenAnswer> {
        if !std::mem::take(&mut self.decided) || self.kept.is_empty() {
            return Ok(());
        }
        let (mut blocked, mut stay) = (BTreeSet::new(), Vec::new());
        // Once all that wait are blocked nothing more goes on, however much there is.
        while blocked.len() < self.waiting.len() {
            let Some(chunk) = self.kept.pop_front() else { break };
            let is_behind = chunk.said.iter().any(|said| blocked.contains(&said.choice));
            if is_behind || self.is_undecided(&chunk) {
                blocked.extend(chunk.said.iter().map(|said| said.choice));
                stay.push(chunk);
            } else {
                self.forget(&chunk);
                self.emit(&chunk, out)?;
            }
        }
        stay.into_iter().rev().for_each(|chunk| self.kept.push_front(chunk));
        Ok(())
    }

    /// Lets a chunk go on, of which every call is decided or flows.
    fn emit(&mut self, chunk: &ReadChunk, out: &mut Out) -> Result<(), BrokenAnswer> {
        for piece in &chunk.pieces {
            if let Some(choice) = self.choices.get_mut(&piece.choice) {
                choice.number(piece.call);
            }
        }
        let part = || AnswerPart::Received(chunk.received.clone());
        if self.is_touched(chunk) {
            let document = Document::parse(chunk.received.data(), Limits::default())
                .map_err(|error| BrokenAnswer::malformed(error.to_string()))?;
            match rewrite::chunk(&document, chunk, &mut self.choices)? {
                Rewritten::Same => out.release([part()]),
                Rewritten::Gone => {}
                Rewritten::Json(json) => out.say(None, json),
            }
        } else {
            out.release([part()]);
        }
        for said in &chunk.said {
            if let Some(choice) = self.choices.get_mut(&said.choice) {
                choice.spoke |= said.text;
                choice.role |= said.role;
            }
        }
        Ok(())
    }

    /// Whether anything in a chunk may have to be changed.
    fn is_touched(&self, chunk: &ReadChunk) -> bool {
        let has_calls = |number: u64| chunk.pieces.iter().any(|piece| piece.choice == number);
        chunk.said.iter().any(|said| {
            let is_cut = self.choices.get(&said.choice).is_some_and(|choice| choice.cut);
            said.cut || is_cut && (said.finish || has_calls(said.choice))
        })
    }
}

fn said(own: &chunk::ChunkChoice<'_>, cut: bool) -> Result<ChoiceContent, BrokenAnswer> {
    let (mut role, mut text, mut speaks) = (false, false, false);
    for entry in own.said.and_then(Value::entries).into_iter().flatten() {
        if entry.key.says("role") {
            role = true;
        } else if !entry.key.says("tool_calls") && !entry.key.says("function_call") && says(entry.value) {
            speaks = true;
            text |= entry.key.says("content");
        }
    }
    Ok(ChoiceContent { choice: own.index, role, text, speaks, finish: own.finish.is_some(), cut })
}

/// Whether a value says something.
pub(super) fn says(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::String => !value.says(""),
        Kind::Bool | Kind::Number | Kind::Array | Kind::Object => true,
    }
}

/// Some vendors repeat the whole message in every chunk. A call there would be a second reading of the call.
fn no_message(choice: Value<'_>) -> Result<(), BrokenAnswer> {
    let Some(message) = chunk::entry(choice, "message")? else { return Ok(()) };
    if message.kind() == Kind::Object && !chunk::pieces(message)?.is_empty() {
        return Err(BrokenAnswer::ambiguous("a chunk has a whole message with tool calls"));
    }
    Ok(())
}

/// An error that says what a denied call was.
fn failed(event: &StreamEvent<'_>, gate: &mut Gate) -> Result<Option<String>, BrokenAnswer> {
    if hosted::failed(event.json)?.is_none() {
        return Ok(None);
    }
    let document = Document::parse(event.received.data(), Limits::default())
        .map_err(|error| BrokenAnswer::malformed(error.to_string()))?;
    let edited = hosted::failed_generation(&document, gate)?;
    Ok(edited.map(|json| String::from_utf8_lossy(&json).into_owned()))
}
