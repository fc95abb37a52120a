//! Reads a stream of chunks: content flows, calls flow or wait for their verdict, and what is denied becomes text.
//!
//! Content and calls are different fields of a message, so content overtakes calls that wait; calls of one choice
//! never overtake each other, since their indices must be contiguous when one of them is taken out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::choice::Choice;
use super::chunk;
use super::rewrite::{self, Rewritten};
use super::{error, hosted, usage, whole};
use crate::provider::answer::{self, Broken, Event, Gate, KeepAlive, Out, Part, Received};
use crate::wire::json::{Document, Kind, Limits, Value};

/// How many choices an answer may have; OpenAI's `n` is at most 128.
const MOST_CHOICES: usize = 1024;

/// Where a delta has text.
const TEXTS: [&str; 4] = ["content", "reasoning_content", "reasoning", "refusal"];

/// Noise with which OpenAI makes all chunks of a stream equally long.
const PADDING: &str = "obfuscation";

/// Reads one answer.
#[derive(Default)]
pub(super) struct Transcript {
    choices: BTreeMap<u64, Choice>,
    kept: VecDeque<Chunk>,
    kept_bytes: usize,
    /// The choices that what is kept speaks of, and whether any of it says something whose order matters.
    waiting: BTreeMap<u64, bool>,
    /// Whether a call was decided since chunks were let go on last.
    decided: bool,
    /// The provider said that there is no more.
    done: bool,
}

/// What was received, and what stands in it.
pub(super) struct Chunk {
    received: Received,
    pub(super) said: Vec<Said>,
    /// The entries that speak of calls, in the order of the document.
    pub(super) pieces: Vec<Piece>,
}

/// What a chunk says of a choice beside calls.
pub(super) struct Said {
    pub(super) choice: u64,
    role: bool,
    text: bool,
    /// Something whose order matters.
    speaks: bool,
    finish: bool,
    /// A tool that the provider ran is taken out.
    cut: bool,
}

pub(super) struct Piece {
    pub(super) choice: u64,
    /// The call's number in its choice.
    pub(super) call: usize,
}

impl answer::Transcript for Transcript {
    fn event(&mut self, event: &Event<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), Broken> {
        if event.is_done() {
            self.done = true;
            self.choices.values_mut().for_each(|choice| choice.finish(gate));
            self.decided = true;
            self.flush(out)?;
            out.pass(event);
            return Ok(());
        }
        if event.json.kind() != Kind::Object {
            return Err(Broken::malformed("a chunk is no object"));
        }
        let chunk = self.read(event, gate)?;
        self.flush(out)?;
        if let Some(edited) = failed(event, gate)? {
            if !chunk.pieces.is_empty() {
                return Err(Broken::ambiguous("a chunk is an error and has tool calls"));
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
    fn free<'d>(&mut self, event: &Event<'d>) -> Vec<Value<'d>> {
        let root = event.json;
        let (Ok(choices), Ok(None), true) =
            (chunk::choices(root, "delta"), hosted::failed(root), self.kept.is_empty())
        else {
            return Vec::new();
        };
        let [chunk::Choice { said: Some(said), finish: None, .. }] = choices[..] else { return Vec::new() };
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

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), Broken> {
        for choice in self.choices.values_mut() {
            if self.done { choice.finish(gate) } else { choice.break_off(gate) }
        }
        self.decided = true;
        self.flush(out)
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, Broken> {
        whole::read(body, gate)
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

impl Transcript {
    /// Takes up what a chunk says, and decides what it completes.
    fn read(&mut self, event: &Event<'_>, gate: &mut Gate) -> Result<Chunk, Broken> {
        let root = event.json;
        let choices = chunk::choices(root, "delta")?;
        usage::read(root, &choices, &mut gate.facts)?;
        let mut chunk = Chunk { received: event.received.clone(), said: Vec::new(), pieces: Vec::new() };
        for own in &choices {
            let number = own.index;
            if self.choices.len() >= MOST_CHOICES && !self.choices.contains_key(&number) {
                return Err(Broken::bound(format!("an answer has more than {MOST_CHOICES} choices")));
            }
            if chunk.said.iter().any(|said| said.choice == number) {
                return Err(Broken::ambiguous("a choice stands twice in one chunk"));
            }
            no_message(own.value)?;
            let choice = self.choices.entry(number).or_default();
            let decided = choice.decided();
            let mut cut = false;
            if let Some(delta) = own.said {
                for piece in chunk::pieces(delta)? {
                    let call = choice.take(&piece, gate)?;
                    chunk.pieces.push(Piece { choice: number, call });
                }
                cut = hosted::ask(delta, &mut choice.hosted, gate)?;
            }
            match own.finish.as_deref() {
                None => {}
                Some("error") => choice.abandon(gate),
                Some(_) => choice.finish(gate),
            }
            self.decided |= choice.decided() != decided;
            chunk.said.push(said(own, cut)?);
        }
        if hosted::failed(root)?.is_some() {
            self.choices.values_mut().for_each(|choice| choice.abandon(gate));
            self.decided = true;
        }
        Ok(chunk)
    }

    fn is_undecided(&self, chunk: &Chunk) -> bool {
        chunk.pieces.iter().any(|piece| {
            self.choices.get(&piece.choice).is_some_and(|choice| choice.is_undecided(piece.call))
        })
    }

    /// Whether a chunk waits: for a verdict, or behind what waits.
    fn waits(&self, chunk: &Chunk) -> bool {
        let is_behind = |own: &Said| {
            let has_calls = chunk.pieces.iter().any(|piece| piece.choice == own.choice);
            self.waiting.get(&own.choice).is_some_and(|speaks| has_calls || own.finish || *speaks)
        };
        self.is_undecided(chunk) || chunk.said.iter().any(is_behind)
    }

    fn keep(&mut self, chunk: Chunk) {
        self.kept_bytes += chunk.received.kept_bytes();
        for said in &chunk.said {
            *self.waiting.entry(said.choice).or_default() |= said.speaks;
        }
        self.kept.push_back(chunk);
    }

    /// Lets go on what waits for nothing any more: nothing, as long as no call is decided.
    fn flush(&mut self, out: &mut Out) -> Result<(), Broken> {
        if !std::mem::take(&mut self.decided) || self.kept.is_empty() {
            return Ok(());
        }
        let mut blocked = BTreeSet::new();
        self.waiting.clear();
        for chunk in std::mem::take(&mut self.kept) {
            self.kept_bytes -= chunk.received.kept_bytes();
            let is_behind = chunk.said.iter().any(|said| blocked.contains(&said.choice));
            if is_behind || self.is_undecided(&chunk) {
                blocked.extend(chunk.said.iter().map(|said| said.choice));
                self.keep(chunk);
            } else {
                self.emit(&chunk, out)?;
            }
        }
        Ok(())
    }

    /// Lets a chunk go on, of which every call is decided or flows.
    fn emit(&mut self, chunk: &Chunk, out: &mut Out) -> Result<(), Broken> {
        for piece in &chunk.pieces {
            if let Some(choice) = self.choices.get_mut(&piece.choice) {
                choice.number(piece.call);
            }
        }
        let part = || Part::Received(chunk.received.clone());
        if self.is_touched(chunk) {
            let document = Document::parse(chunk.received.data(), Limits::default())
                .map_err(|error| Broken::malformed(error.to_string()))?;
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
    fn is_touched(&self, chunk: &Chunk) -> bool {
        let has_calls = |number: u64| chunk.pieces.iter().any(|piece| piece.choice == number);
        chunk.said.iter().any(|said| {
            let is_cut = self.choices.get(&said.choice).is_some_and(|choice| choice.cut);
            said.cut || is_cut && (said.finish || has_calls(said.choice))
        })
    }
}

fn said(own: &chunk::Choice<'_>, cut: bool) -> Result<Said, Broken> {
    let (mut role, mut text, mut speaks) = (false, false, false);
    for entry in own.said.and_then(Value::entries).into_iter().flatten() {
        if entry.key.says("role") {
            role = true;
        } else if !entry.key.says("tool_calls") && !entry.key.says("function_call") && says(entry.value) {
            speaks = true;
            text |= entry.key.says("content");
        }
    }
    Ok(Said { choice: own.index, role, text, speaks, finish: own.finish.is_some(), cut })
}

/// Whether a value says something.
pub(super) fn says(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::String => !value.says(""),
        Kind::Bool | Kind::Number | Kind::Array | Kind::Object => true,
    }
}

/// Some vendors repeat in every chunk what was said so far. A call there would be a second reading of it.
fn no_message(choice: Value<'_>) -> Result<(), Broken> {
    let Some(message) = chunk::entry(choice, "message")? else { return Ok(()) };
    if message.kind() == Kind::Object && !chunk::pieces(message)?.is_empty() {
        return Err(Broken::ambiguous("a chunk has a whole message with tool calls"));
    }
    Ok(())
}

/// An error that says what a denied call was.
fn failed(event: &Event<'_>, gate: &mut Gate) -> Result<Option<String>, Broken> {
    if hosted::failed(event.json)?.is_none() {
        return Ok(None);
    }
    let document = Document::parse(event.received.data(), Limits::default())
        .map_err(|error| Broken::malformed(error.to_string()))?;
    let edited = hosted::failed_generation(&document, gate)?;
    Ok(edited.map(|json| String::from_utf8_lossy(&json).into_owned()))
}
