//! One stream of events, from `response.created` to the event with which the response ends.

use std::collections::BTreeMap;

use super::called::{self, CalledItem, number, text};
use super::item::OutputItem;
use super::queue::{Cuts, EventQueue};
use super::say::{Replacement, SentResponse};
use super::{ENDS, facts};
use crate::call::{AnswerFacts, BlockedCall};
use crate::provider::answer::member::get;
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate, Out, StreamEvent};
use crate::wire::json::{Kind, Value};

/// The most items of one response, and the most calls whose outputs are looked for.
const MOST: usize = 4096;

#[derive(Default)]
pub(super) struct ResponseStream {
    told: SentResponse,
    /// Whether the client has the start of the response and not its end.
    is_open: bool,
    conversation: Option<String>,
    /// The tokens of the response that are counted.
    tokens: u64,
    items: BTreeMap<u64, OutputItem>,
    /// The texts that replace the outputs of denied calls, by the ids of the calls.
    outputs: BTreeMap<String, String>,
    queue: EventQueue,
}

impl ResponseStream {
    pub(super) fn new(stream: Option<&str>) -> Self {
        let told = SentResponse { stream: stream.map(str::to_owned), ..SentResponse::default() };
        Self { told, ..Self::default() }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// If it cannot be understood, or must not go on.
    pub(super) fn event(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let json = event.json;
        let kind = if json.kind() == Kind::Object { text(json, "type")? } else { None };
        let Some(kind) = kind.as_deref() else {
            return self.unnamed(event, out);
        };
        if kind == "response.created" {
            self.restart(gate, out);
        }
        let response = get(json, "response")?.filter(|response| response.kind() == Kind::Object);
        let mut index = self.index(json)?;
        let mut cuts = Cuts::new();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                index = Some(self.item(json, kind.ends_with("added"), gate)?);
            }
            _ => {
                Self::check_carries_nothing(json)?;
                if let Some(index) = index {
                    self.piece(kind, index, json, gate)?;
                }
            }
        }
        if let Some(response) = response {
            self.read(response, gate)?;
            cuts = self.snapshot(response, ENDS.contains(&kind), gate)?;
        }
        self.queue.push(event, index, cuts);
        self.queue.flush(&mut self.items, out);
        match kind {
            "response.created" => self.is_open = true,
            kind if ENDS.contains(&kind) => self.is_open = false,
            _ => {}
        }
        Ok(())
    }

    /// The text of a piece and its padding change no state. Its number does, and [`Self::again`] takes it.
    pub(super) fn free<'d>(&self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        let of = |key: &str| event.json.get(key).ok().flatten();
        let is_text = of("type").is_some_and(|kind| TEXTS.iter().any(|text| kind.says(text)));
        let is_plain = |index: Option<u64>| {
            index.and_then(|index| self.items.get(&index)).is_none_or(OutputItem::is_plain)
        };
        // Behind a held event its number may still change; an item or a response could carry a call.
        let is_alone = of("response").is_none() && of("item").is_none() && self.queue.bytes() == 0;
        if !is_text || !is_alone || !self.index(event.json).is_ok_and(is_plain) {
            return Vec::new();
        }
        let texts = ["delta", "obfuscation"].into_iter().filter_map(of);
        let texts = texts.filter(|text| text.kind() == Kind::String);
        texts.chain(of("sequence_number").filter(|number| number.kind() == Kind::Number)).collect()
    }

    /// Takes the number of the last piece of text that went on unparsed.
    pub(super) fn again(&mut self, numbers: &[u64]) {
        if let [number] = numbers {
            self.queue.passed(*number);
        }
    }

    /// Takes a part that is no event: `[DONE]`, which ends streams of Chat Completions, or unknown JSON.
    fn unnamed(&mut self, event: &StreamEvent<'_>, out: &mut Out) -> Result<(), BrokenAnswer> {
        let is_object = event.json.kind() == Kind::Object;
        if is_object && event.name.is_some_and(|name| name.starts_with("response.")) {
            // There are clients that take the name for the type.
            return Err(BrokenAnswer::ambiguous("an event does not say its type in its JSON"));
        }
        if !event.json.is_null() {
            Self::check_carries_nothing(event.json)?;
        }
        self.queue.push(event, None, Cuts::new());
        self.queue.flush(&mut self.items, out);
        Ok(())
    }

    /// A new response begins; several may come one after the other.
    fn restart(&mut self, gate: &mut Gate, out: &mut Out) {
        self.abandon(gate);
        self.queue.flush(&mut self.items, out);
        gate.facts = AnswerFacts::default();
        self.queue.restart();
        self.items.clear();
        self.outputs.clear();
        self.conversation = None;
        self.tokens = 0;
        self.told = SentResponse { stream: self.told.stream.take(), ..SentResponse::default() };
    }

    /// The item that an event is about.
    fn index(&self, json: Value<'_>) -> Result<Option<u64>, BrokenAnswer> {
        if let Some(index) = number(json, "output_index")? {
            return Ok(Some(index));
        }
        let Some(id) = text(json, "item_id")? else { return Ok(None) };
        let mut matching = self.items.iter().filter(|(_, item)| item.id() == Some(&id));
        Ok(matching.next().map(|(index, _)| *index))
    }

    /// An event of an unknown type may come, but not with an item in it.
    fn check_carries_nothing(json: Value<'_>) -> Result<(), BrokenAnswer> {
        let Some(item) = get(json, "item")?.filter(|item| item.kind() == Kind::Object) else { return Ok(()) };
        match called::read(item)? {
            called::ItemRole::Plain | called::ItemRole::Output(_) => Ok(()),
            called::ItemRole::Call(_) => {
                Err(BrokenAnswer::ambiguous("a tool call is in an event where none is expected"))
            }
        }
    }

    /// An item begins or is complete.
    fn item(&mut self, json: Value<'_>, begins: bool, gate: &mut Gate) -> Result<u64, BrokenAnswer> {
        let index = number(json, "output_index")?;
        let index = index.ok_or_else(|| BrokenAnswer::ambiguous("an output item has no output_index"))?;
        let item =
            get(json, "item")?.ok_or_else(|| BrokenAnswer::malformed("an event has no output item"))?;
        let kind = text(item, "type")?.unwrap_or_default();
        if self.items.len() >= MOST && !self.items.contains_key(&index) {
            return Err(BrokenAnswer::bound(format!("the answer has more than {MOST} output items")));
        }
        let read = called::read(item)?;
        let known = self.items.get_mut(&index);
        match (read, known) {
            (called::ItemRole::Call(called), Some(known)) if !begins => {
                known.complete(&called, is_cut(item)?, gate)?;
                self.settle(index, &called, gate);
            }
            (_, Some(known)) if begins && (!known.is_plain() || known.kind() != kind) => {
                return Err(BrokenAnswer::ambiguous("two output items have one output_index"));
            }
            (called::ItemRole::Call(called), None) => {
                self.begin(index, &called, gate)?;
                if !begins && let Some(known) = self.items.get_mut(&index) {
                    known.complete(&called, is_cut(item)?, gate)?;
                    self.settle(index, &called, gate);
                }
            }
            (called::ItemRole::Call(_), Some(_)) => {
                return Err(BrokenAnswer::ambiguous("two output items have one output_index"));
            }
            (called::ItemRole::Plain | called::ItemRole::Output(_), Some(known)) => {
                if known.kind() != kind {
                    return Err(BrokenAnswer::ambiguous("the type of an output item changes"));
                }
            }
            (called::ItemRole::Output(call), None) => {
                let denied = call.as_deref().and_then(|call| self.outputs.get(call));
                let item = match denied {
                    Some(text) => OutputItem::denied(&kind, self.replacement(item, index, text)?),
                    None => OutputItem::plain(&kind),
                };
                self.items.insert(index, item);
            }
            (called::ItemRole::Plain, None) => {
                self.items.insert(index, OutputItem::plain(&kind));
            }
        }
        Ok(index)
    }

    fn begin(&mut self, index: u64, called: &CalledItem<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        let stream = self.told.stream.as_deref();
        let id = called.id.as_deref().or(called.call_id.as_deref());
        let item = OutputItem::begin(called, Replacement::new(id, index, "", stream), gate)?;
        self.items.insert(index, item);
        Ok(())
    }

    /// Remembers a call that is complete and was denied.
    fn settle(&mut self, index: u64, called: &CalledItem<'_>, gate: &mut Gate) {
        let Some(item) = self.items.get(&index) else { return };
        let Some(replacement) = item.replacement() else { return };
        let (text, is_hosted) = (replacement.text.clone(), item.is_hosted());
        self.deny(called, is_hosted, text, gate);
    }

    /// Remembers a denied call: its output is replaced as well, or the provider will wait for one.
    fn deny(&mut self, called: &CalledItem<'_>, is_hosted: bool, text: String, gate: &mut Gate) {
        let id = called.call_id.as_deref().or(called.id.as_deref()).unwrap_or_default();
        if is_hosted {
            if self.outputs.len() < MOST {
                self.outputs.insert(id.to_owned(), text);
            }
            return;
        }
        for scope in [&self.told.id, &self.conversation].into_iter().flatten() {
            gate.blocked(scope, BlockedCall { id: id.to_owned(), kind: called.kind.to_string() });
        }
    }

    fn replacement(&self, item: Value<'_>, index: u64, with: &str) -> Result<Replacement, BrokenAnswer> {
        let id = text(item, "id")?;
        Ok(Replacement::new(id.as_deref(), index, with, self.told.stream.as_deref()))
    }

    /// A piece of an item's input, or all of it.
    fn piece(
        &mut self,
        kind: &str,
        index: u64,
        json: Value<'_>,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        let Some((field, is_whole)) = input_field(kind) else { return Ok(()) };
        let Some(item) = self.items.get_mut(&index) else {
            return Err(BrokenAnswer::ambiguous("the input of a tool call that did not begin"));
        };
        let command = number(json, "command_index")?;
        let input = get(json, field)?.and_then(Value::text);
        let input = input.ok_or_else(|| BrokenAnswer::ambiguous(format!("{kind} has no {field}")))?;
        if is_whole {
            item.whole(command, &input, text(json, "name")?.as_deref())
        } else {
            item.piece(command, &input, gate)
        }
    }

    /// Reads the facts of a response.
    pub(super) fn read(&mut self, response: Value<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        let tokens = facts::read(response, &mut gate.facts)?;
        gate.tokens = gate.tokens.saturating_add(tokens.saturating_sub(self.tokens));
        self.tokens = self.tokens.max(tokens);
        if self.told.id.is_none() {
            self.told.id = text(response, "id")?.map(Into::into);
            self.told.created_at = number(response, "created_at").unwrap_or_default();
        }
        self.told.model = gate.facts.model.clone();
        if let Some(conversation) = get(response, "conversation")? {
            let id = if conversation.kind() == Kind::Object {
                text(conversation, "id")?
            } else {
                conversation.text()
            };
            self.conversation = id.map(Into::into);
        }
        Ok(())
    }

    /// All items of a response, as a part of it tells them once more, or for the first time. `ends`: nothing comes
    /// after it.
    pub(super) fn snapshot(
        &mut self,
        response: Value<'_>,
        ends: bool,
        gate: &mut Gate,
    ) -> Result<Cuts, BrokenAnswer> {
        let mut cuts = Cuts::new();
        // Nothing follows the last event: a call that is open then was cut.
        let is_stopped = ends && is_cut(response)?;
        let output = get(response, "output")?.and_then(Value::items);
        for (index, item) in (0..).zip(output.into_iter().flatten()) {
            let replacement = match called::read(item)? {
                called::ItemRole::Plain => None,
                called::ItemRole::Output(call) => {
                    let denied = call.as_deref().and_then(|call| self.outputs.get(call));
                    denied.map(|text| self.replacement(item, index, text)).transpose()?
                }
                called::ItemRole::Call(called) => {
                    let is_known = self.find(index, &called).is_some();
                    let is_cut = is_cut(item)? || is_stopped && is_known;
                    self.copy(index, &called, ends, is_cut, gate)?
                }
            };
            if let Some(replacement) = replacement {
                cuts.push((item.span(), replacement.item().to_string()));
            }
        }
        if ends {
            self.abandon(gate);
        }
        Ok(cuts)
    }

    /// Decides about a call in a whole response. Returns the message that replaces it.
    fn copy(
        &mut self,
        index: u64,
        called: &CalledItem<'_>,
        ends: bool,
        is_cut: bool,
        gate: &mut Gate,
    ) -> Result<Option<Replacement>, BrokenAnswer> {
        if let Some(known) = self.find(index, called)
            && let Some(item) = self.items.get_mut(&known)
        {
            if ends && !item.is_complete() {
                item.complete(called, is_cut, gate)?;
                self.settle(known, called, gate);
            } else if item.is_open() {
                return Err(BrokenAnswer::ambiguous("a tool call is told again before it is complete"));
            } else {
                item.check_copy(called)?;
            }
            return Ok(self.items.get(&known).and_then(OutputItem::replacement).cloned());
        }
        let fate = if is_cut {
            let call = gate.begin(&CallHead { is_hosted: false, ..called.head() });
            gate.cut(call)
        } else {
            gate.whole(&called.head(), called.input.as_deref().unwrap_or_default())
        };
        let CallOutcome::Denied(text) = fate else { return Ok(None) };
        if gate.observes() {
            return Ok(None);
        }
        let id = called.id.as_deref().or(called.call_id.as_deref());
        let replacement = Replacement::new(id, index, &text, self.told.stream.as_deref());
        self.deny(called, called.is_hosted, text, gate);
        Ok(Some(replacement))
    }

    /// The item of which this is a copy: at this place, or wherever a call has this id.
    fn find(&self, index: u64, called: &CalledItem<'_>) -> Option<u64> {
        let is_same = |item: &OutputItem| match (item.call_id(), called.call_id.as_deref()) {
            (Some(before), Some(now)) => before == now,
            (None, None) => item.kind() == called.kind,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if self.items.get(&index).is_some_and(|item| item.kind() == called.kind && is_same(item)) {
            return Some(index);
        }
        let mut by_id = self.items.iter().filter(|(_, item)| item.call_id().is_some() && is_same(item));
        by_id.next().map(|(index, _)| *index)
    }

    /// Gives up pending calls.
    pub(super) fn abandon(&mut self, gate: &mut Gate) {
        self.items.values_mut().for_each(|item| item.abandon(gate));
    }

    /// Lets events go on that do not wait any more.
    pub(super) fn flush(&mut self, out: &mut Out) {
        self.queue.flush(&mut self.items, out);
    }

    /// Whether the next event may belong to a call: one is not complete, or was denied and has not ended.
    pub(super) fn is_in_call(&self) -> bool {
        self.items.values().any(OutputItem::is_under_way)
    }

    pub(super) fn waits(&self) -> bool {
        self.items.values().any(OutputItem::is_open)
    }

    pub(super) fn held(&self) -> usize {
        self.queue.bytes()
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// `response.in_progress` with the number of the event that went on last, so that the numbers have no gap.
    pub(super) fn in_progress(&self) -> String {
        self.told.in_progress(self.queue.next().map(|next| next - 1))
    }

    /// Tells the client that the response cannot go on.
    pub(super) fn fail(&mut self, message: &str, out: &mut Out) {
        let mut number = self.queue.next();
        if !self.is_open {
            number = Some(0);
            out.say(Some("response.created"), self.told.created(number));
            number = Some(1);
        }
        out.say(Some("response.failed"), self.told.failed(message, number));
        self.is_open = false;
    }
}

/// Whether an item, or a response, says that the model was stopped inside it.
fn is_cut(item: Value<'_>) -> Result<bool, BrokenAnswer> {
    Ok(text(item, "status")?.is_some_and(|status| status == "incomplete"))
}

/// Events with a piece of text in `delta`.
const TEXTS: [&str; 4] = [
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.refusal.delta",
];

/// Returns the field in which an event of this type has input of a tool call, and whether that is the whole input.
fn input_field(kind: &str) -> Option<(&'static str, bool)> {
    Some(match kind {
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta"
        | "response.code_interpreter_call_code.delta"
        | "response.apply_patch_call_operation_diff.delta"
        | "response.shell_call_command.delta" => ("delta", false),
        "response.shell_call_command.added" => ("command", false),
        "response.function_call_arguments.done" | "response.mcp_call_arguments.done" => ("arguments", true),
        "response.code_interpreter_call_code.done" => ("code", true),
        "response.custom_tool_call_input.done" => ("input", true),
        "response.apply_patch_call_operation_diff.done" => ("diff", true),
        "response.shell_call_command.done" => ("command", true),
        _ => return None,
    })
}
