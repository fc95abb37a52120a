//! A request of Chat Completions before it is written: what transforms change.

use std::borrow::Cow;

use super::{ChatTerms, EffortTerms};
use crate::call::Vendor;
use crate::call::turn::prompt::{Effort, Image, Pdf, Prompt, Thinking, ToolSchema};
use crate::call::turn::{Notes, Text};
use crate::provider::translate::exceeds;
use crate::wire::json::Value;

/// A request.
pub(in crate::provider::openai_chat) struct Draft<'d> {
    pub messages: Vec<Message<'d>>,
    pub tools: Vec<Tool<'d>>,
    /// None where the request says nothing of it.
    pub choice: Option<Choice<'d>>,
    pub one_call: bool,
    pub limit: Option<TokenLimit>,
    pub temperature: Option<&'d str>,
    pub top_p: Option<&'d str>,
    pub stop: Option<Value<'d>>,
    pub stream: Option<bool>,
    /// Whether a stream is asked for its usage.
    pub asks_for_usage: bool,
    pub schema: Option<Value<'d>>,
    pub effort: Option<&'static str>,
    pub has_exit_tool: bool,
    /// Whether `cache_control` stays on text parts.
    pub keeps_cache: bool,
    /// Whether the calls of the conversation carry Google's word for a signature that is not there.
    pub skips_signatures: bool,
}

/// A message. Which of the fields it may have follows from its role.
pub(in crate::provider::openai_chat) struct Message<'d> {
    pub role: Role,
    pub parts: Vec<Part<'d>>,
    pub calls: Vec<Call<'d>>,
    /// Thinking that was shown before; it is not written unless a transform does.
    pub thinking: Vec<PastThinking<'d>>,
    pub reasoning: Option<Text<'d>>,
    /// Of a tool's message, the id of its call.
    pub call: Option<Text<'d>>,
}

impl<'d> Message<'d> {
    pub(in crate::provider::openai_chat) fn new(role: Role, parts: Vec<Part<'d>>) -> Self {
        Self { role, parts, calls: Vec::new(), thinking: Vec::new(), reasoning: None, call: None }
    }

    /// Whether there is nothing to write.
    pub(in crate::provider::openai_chat) fn is_void(&self) -> bool {
        self.parts.is_empty() && self.calls.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider::openai_chat) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// What stands between two texts of a message, escaped.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::System => "\\n\\n",
            Self::User | Self::Assistant | Self::Tool => "\\n",
        }
    }
}

pub(in crate::provider::openai_chat) enum Part<'d> {
    Text {
        text: Text<'d>,
        cache: Option<&'d str>,
    },
    /// Says to the result of which call the media behind it belong.
    ResultOf(Text<'d>),
    Image(&'d Image<'d>),
    File(&'d Pdf<'d>),
}

impl<'d> Part<'d> {
    pub(in crate::provider::openai_chat) fn text(text: Text<'d>) -> Self {
        Self::Text { text, cache: None }
    }

    /// A text of ours, in which nothing has to be escaped.
    pub(in crate::provider::openai_chat) fn fixed(text: &'static str) -> Self {
        Self::text(Text::fixed(text))
    }
}

pub(in crate::provider::openai_chat) struct Call<'d> {
    pub id: Text<'d>,
    /// The name as it is sent.
    pub name: Cow<'d, str>,
    /// JSON.
    pub input: &'d str,
}

/// Thinking of an earlier turn.
pub(in crate::provider::openai_chat) struct PastThinking<'d> {
    pub thinking: &'d Thinking<'d>,
    /// Whether it is in the message's reasoning.
    pub in_reasoning: bool,
    /// Whether it is in the message's text.
    pub in_text: bool,
}

impl<'d> PastThinking<'d> {
    pub(super) fn new(thinking: &'d Thinking<'d>) -> Self {
        Self { thinking, in_reasoning: false, in_text: false }
    }
}

pub(in crate::provider::openai_chat) struct Tool<'d> {
    /// The name as it is sent.
    pub name: Cow<'d, str>,
    pub description: Option<Text<'d>>,
    pub schema: ToolSchema<'d>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::provider::openai_chat) enum Choice<'d> {
    Auto,
    Required,
    None,
    /// The function of this name, as it is sent.
    Function(Cow<'d, str>),
}

/// The most tokens of an answer.
pub(in crate::provider::openai_chat) struct TokenLimit {
    /// Whether it is `max_completion_tokens`; else `max_tokens`.
    pub of_completion: bool,
    /// A number as it is written.
    pub tokens: Cow<'static, str>,
    /// Whether the agent asked for more.
    pub is_lowered: bool,
}

impl<'d> Draft<'d> {
    pub(super) fn new(
        prompt: &'d Prompt<'d>,
        terms: &ChatTerms<'_>,
        messages: Vec<Message<'d>>,
        tools: Vec<Tool<'d>>,
        choice: Option<Choice<'d>>,
        notes: &mut Notes,
    ) -> Self {
        let one_call = prompt.one_call && !tools.is_empty();
        Self {
            messages,
            tools,
            choice,
            one_call,
            limit: limit(prompt, terms),
            temperature: prompt.temperature,
            top_p: prompt.top_p,
            stop: prompt.stop,
            stream: prompt.stream,
            asks_for_usage: prompt.stream == Some(true),
            schema: prompt.schema,
            effort: effort(prompt, terms, notes),
            has_exit_tool: false,
            keeps_cache: false,
            skips_signatures: false,
        }
    }

    /// Takes back the reasoning that the messages of the model were given.
    pub(in crate::provider::openai_chat) fn forget_reasoning(&mut self) {
        for message in self.messages.iter_mut().filter(|message| message.reasoning.is_some()) {
            message.reasoning = None;
            message.thinking.iter_mut().for_each(|past| past.in_reasoning = false);
        }
    }

    /// Counts what no transform wrote.
    pub(super) fn note_losses(&mut self, notes: &mut Notes) {
        for message in &self.messages {
            let lost = message.thinking.iter().filter(|past| !past.in_reasoning && !past.in_text);
            notes.add_some("thinking", lost.count());
            if !self.keeps_cache {
                let is_cached = |part: &&Part<'_>| matches!(part, Part::Text { cache: Some(_), .. });
                notes.add_some("cache_control", message.parts.iter().filter(is_cached).count());
            }
        }
        notes.add_some("max_tokens", usize::from(self.limit.as_ref().is_some_and(|limit| limit.is_lowered)));
        let before = self.messages.len();
        self.messages.retain(|message| !message.is_void());
        notes.add_some("empty_turn", before - self.messages.len());
    }
}

/// The number of a limit, lowered to what policy allows.
fn limit(prompt: &Prompt<'_>, terms: &ChatTerms<'_>) -> Option<TokenLimit> {
    let asked = prompt.max_tokens?;
    let of_completion = matches!(terms.vendor, Vendor::OpenAi | Vendor::AzureOpenAi);
    let most = terms.max_tokens.filter(|most| exceeds(asked, *most));
    let tokens = most.map_or_else(|| asked.to_owned(), |most| most.to_string());
    Some(TokenLimit { of_completion, tokens: Cow::Owned(tokens), is_lowered: most.is_some() })
}

/// The budgets of thinking up to which an effort is low, and medium.
const LOW: u64 = 4096;
const ABOVE_LOW: u64 = LOW + 1;
const MEDIUM: u64 = 16_384;

fn effort(prompt: &Prompt<'_>, terms: &ChatTerms<'_>, notes: &mut Notes) -> Option<&'static str> {
    if terms.effort == EffortTerms::Drop {
        notes.add_some("effort", usize::from(prompt.effort.is_some()));
        notes.add_some("thinking_budget", usize::from(prompt.thinking_budget.is_some()));
        return None;
    }
    let by_budget = |budget: u64| match budget {
        0..=LOW => "low",
        ABOVE_LOW..=MEDIUM => "medium",
        _ => "high",
    };
    prompt.effort.map_or_else(
        || prompt.thinking_budget.filter(|_| prompt.asks_for_thinking).map(by_budget),
        |effort| {
            Some(match effort {
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High | Effort::Above => "high",
            })
        },
    )
}
