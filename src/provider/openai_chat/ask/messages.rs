//! Drafts the messages of a request: calls with their results behind them, everything else in the agent's order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::draft::{Call, Message, Part, PastThinking, Role};
use super::names::Namer;
use super::{ChatTerms, Images};
use crate::call::Vendor;
use crate::call::turn::prompt::{
    AssistantPart, Content, Pdf, Prompt, TextPart, ToolResult, Turn, Unsayable, UserPart,
};
use crate::call::turn::{Notes, Text, escape};

/// Returns the messages.
pub(super) fn draft<'d>(
    prompt: &'d Prompt<'d>,
    terms: &ChatTerms<'_>,
    names: &mut Namer<'d>,
    notes: &mut Notes,
) -> Result<Vec<Message<'d>>, Unsayable> {
    let mut drafting = Drafting { terms, names, notes, messages: Vec::with_capacity(prompt.turns.len() + 1) };
    drafting.system(&prompt.system);
    let mut rest = prompt.turns.as_slice();
    while let Some((turn, behind)) = rest.split_first() {
        rest = behind;
        match turn {
            Turn::System(texts) => drafting.system(texts),
            Turn::User(parts) => drafting.user(parts, &Answers::new()),
            Turn::Assistant(parts) => {
                let calls = drafting.assistant(parts, &mut rest);
                rest = drafting.results(&calls, rest);
            }
        }
    }
    Ok(drafting.messages)
}

/// The results that stand behind their calls, each by its place in memory: two may be equal.
type Answers<'d> = HashSet<*const ToolResult<'d>>;

struct Drafting<'r, 'd> {
    terms: &'r ChatTerms<'r>,
    names: &'r mut Namer<'d>,
    notes: &'r mut Notes,
    messages: Vec<Message<'d>>,
}

impl<'d> Drafting<'_, 'd> {
    fn system(&mut self, texts: &[TextPart<'d>]) {
        if !texts.is_empty() {
            let parts = texts.iter().map(text_part).collect();
            self.messages.push(Message::new(Role::System, parts));
        }
    }

    /// Drafts what the model said, and returns the ids of its calls. A turn with calls that goes on in the next one is
    /// one message: its results come behind both.
    fn assistant(&mut self, parts: &'d [AssistantPart<'d>], rest: &mut &'d [Turn<'d>]) -> Vec<&'d Text<'d>> {
        let mut message = Message::new(Role::Assistant, Vec::new());
        let mut calls = Vec::new();
        self.say(parts, &mut message, &mut calls);
        while !calls.is_empty()
            && let Some((Turn::Assistant(more), behind)) = rest.split_first()
        {
            self.say(more, &mut message, &mut calls);
            *rest = behind;
        }
        self.messages.push(message);
        calls
    }

    fn say(
        &mut self,
        parts: &'d [AssistantPart<'d>],
        message: &mut Message<'d>,
        calls: &mut Vec<&'d Text<'d>>,
    ) {
        for part in parts {
            match part {
                AssistantPart::Text(part) => message.parts.push(text_part(part)),
                AssistantPart::Available(name) => message.parts.push(self.available(name)),
                AssistantPart::Thinking(thinking) => {
                    message.thinking.push(PastThinking::new(thinking));
                }
                AssistantPart::Call(call) => {
                    calls.push(&call.id);
                    let name = self.names.sent(&call.name);
                    message.calls.push(Call { id: call.id.clone(), name, input: call.input });
                }
            }
        }
    }

    /// Drafts the results of these calls and then what else there is up to the model's next turn, which is returned with
    /// what follows it.
    fn results(&mut self, calls: &[&'d Text<'d>], rest: &'d [Turn<'d>]) -> &'d [Turn<'d>] {
        if calls.is_empty() {
            return rest;
        }
        let end = rest.iter().position(|turn| matches!(turn, Turn::Assistant(_))).unwrap_or(rest.len());
        let (turns, behind) = rest.split_at(end);
        let mut results: HashMap<Cow<'d, str>, VecDeque<&'d ToolResult<'d>>> = HashMap::new();
        for result in turns.iter().flat_map(results_of) {
            results.entry(result.call.decoded()).or_default().push_back(result);
        }
        let mut answers = Answers::new();
        for call in calls {
            let answer = results.get_mut(&call.decoded()).and_then(VecDeque::pop_front);
            self.result(call, answer);
            answers.extend(answer.map(std::ptr::from_ref));
        }
        for turn in turns {
            match turn {
                Turn::System(texts) => self.system(texts),
                Turn::User(parts) => self.user(parts, &answers),
                Turn::Assistant(_) => {}
            }
        }
        behind
    }

    fn result(&mut self, call: &'d Text<'d>, answer: Option<&'d ToolResult<'d>>) {
        let mut parts = Vec::new();
        if let Some(answer) = answer {
            parts.extend(answer.content.iter().filter_map(|content| self.shown(content)).filter(is_text));
            if parts.is_empty() {
                self.notes.add("empty_result");
                parts.push(Part::fixed("(no output)"));
            }
            if answer.is_error {
                begin_with("Error: ", &mut parts);
            }
        } else {
            self.notes.add("missing_result");
            parts.push(Part::fixed("(no result)"));
        }
        let message = Message { call: Some(call.clone()), ..Message::new(Role::Tool, parts) };
        self.messages.push(message);
    }

    /// Drafts a turn of the user. `answers` are the results that stand before it already: their media come first.
    fn user(&mut self, parts: &'d [UserPart<'d>], answers: &Answers<'d>) {
        let mut shown = Vec::new();
        let is_answer = |result: &ToolResult<'d>| answers.contains(&std::ptr::from_ref(result));
        for result in parts.iter().filter_map(result).filter(|result| is_answer(result)) {
            self.media(result, &mut shown);
        }
        for part in parts {
            match part {
                UserPart::Content(content) => shown.extend(self.shown(content)),
                UserPart::Result(result) if is_answer(result) => {}
                UserPart::Result(result) => self.unknown(result, &mut shown),
            }
        }
        if !shown.is_empty() {
            self.messages.push(Message::new(Role::User, shown));
        }
    }

    /// The media of a result, which a tool's message may not have.
    fn media(&mut self, result: &'d ToolResult<'d>, shown: &mut Vec<Part<'d>>) {
        let mut media = result.content.iter().filter(|content| self.is_media(content)).peekable();
        if media.peek().is_some() {
            shown.push(Part::ResultOf(result.call.clone()));
            shown.extend(media.filter_map(medium));
        }
    }

    /// A result whose call is not right before it.
    fn unknown(&mut self, result: &'d ToolResult<'d>, shown: &mut Vec<Part<'d>>) {
        self.notes.add("unknown_result");
        let mut parts: Vec<Part<'d>> =
            result.content.iter().filter_map(|content| self.shown(content)).collect();
        if !parts.iter().any(is_text) {
            parts.insert(0, Part::fixed("(no output)"));
        }
        begin_with(
            if result.is_error {
                "[result of an unknown call] Error: "
            } else {
                "[result of an unknown call] "
            },
            &mut parts,
        );
        shown.append(&mut parts);
    }

    /// One part; a text where media are not sent.
    fn shown(&mut self, content: &'d Content<'d>) -> Option<Part<'d>> {
        if self.is_media(content) {
            return medium(content);
        }
        Some(match content {
            Content::Text(part) => text_part(part),
            Content::Available(name) => self.available(name),
            Content::Image(_) => {
                self.notes.add("image");
                Part::fixed("[image omitted]")
            }
            Content::Pdf(pdf) => {
                self.notes.add("document");
                omitted(pdf)
            }
        })
    }

    /// Whether it is sent as what it is, and no text.
    fn is_media(&self, content: &Content<'_>) -> bool {
        match content {
            Content::Text(_) | Content::Available(_) => false,
            Content::Image(_) => self.terms.images == Images::Send,
            Content::Pdf(_) => {
                matches!(self.terms.vendor, Vendor::OpenAi | Vendor::AzureOpenAi | Vendor::OpenRouter)
            }
        }
    }

    fn available(&mut self, name: &'d str) -> Part<'d> {
        let mut text = String::from("Tool ");
        escape(&self.names.sent(name), &mut text);
        Part::text(Text::joined(&[&text, " is available."]))
    }
}

fn medium<'d>(content: &'d Content<'d>) -> Option<Part<'d>> {
    match content {
        Content::Image(image) => Some(Part::Image(image)),
        Content::Pdf(pdf) => Some(Part::File(pdf)),
        Content::Text(_) | Content::Available(_) => None,
    }
}

fn omitted<'d>(pdf: &Pdf<'d>) -> Part<'d> {
    pdf.title.as_ref().map_or(Part::fixed("[document omitted]"), |title| {
        Part::text(Text::joined(&["[document omitted: ", title.escaped(), "]"]))
    })
}

fn text_part<'d>(part: &TextPart<'d>) -> Part<'d> {
    Part::Text { text: part.text.clone(), cache: part.cache }
}

fn is_text(part: &Part<'_>) -> bool {
    matches!(part, Part::Text { .. })
}

/// Puts words before the first text.
fn begin_with(words: &str, parts: &mut [Part<'_>]) {
    let first = parts.iter_mut().find_map(|part| match part {
        Part::Text { text, .. } => Some(text),
        Part::ResultOf(_) | Part::Image(_) | Part::File(_) => None,
    });
    if let Some(text) = first {
        *text = Text::joined(&[words, text.escaped()]);
    }
}

fn results_of<'d>(turn: &'d Turn<'d>) -> impl Iterator<Item = &'d ToolResult<'d>> {
    let parts: &[UserPart<'d>] = match turn {
        Turn::User(parts) => parts,
        Turn::System(_) | Turn::Assistant(_) => &[],
    };
    parts.iter().filter_map(result)
}

fn result<'d>(part: &'d UserPart<'d>) -> Option<&'d ToolResult<'d>> {
    match part {
        UserPart::Result(result) => Some(result),
        UserPart::Content(_) => None,
    }
}
