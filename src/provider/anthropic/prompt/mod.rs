//! Reads a request of Anthropic Messages into a [`Prompt`], for a model that speaks something else:
//! <https://platform.claude.com/docs/en/api/messages>
//!
//! What the provider itself would do is not there any more: policy took it out, or it is dropped here and counted.

mod content;
mod history;
mod hosted;
mod members;
#[cfg(test)]
mod recording_tests;
mod schema;
#[cfg(test)]
mod tests;
mod tools;

use crate::call::turn::prompt::{Effort, Prompt, TextPart, ToolChoice, Unsayable};
use crate::call::turn::{Notes, Text};
use crate::wire::json::{Document, Kind, Value};

use members::{Members, members, text};
use tools::ToolSet;

/// The line in which Claude Code keeps a hash of the body, as the first block of `system`. It changes with every
/// request, and no provider but Anthropic's own has a use for it.
pub(in crate::provider) const BILLING: &str = "x-anthropic-billing-header:";

/// The fields of a body that are dropped, in the words under which they are counted. Of a field that is not known here,
/// the word is [`OTHER_FIELD`].
const DROPPED: [&str; 20] = [
    "anthropic_beta",
    "betas",
    "billing_policy",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "service_tier",
    "speed",
    "thread",
    "top_k",
    "anthropic_version",
    "task_budget",
    "user_profile_id",
];

const OTHER_FIELD: &str = "other_field";

/// Reads a body of Messages.
///
/// # Errors
/// If the request has something that no other dialect can say, or cannot be read with one meaning.
pub fn prompt<'d>(document: &'d Document<'d>) -> Result<Prompt<'d>, Unsayable> {
    if document.first_duplicate().is_some() {
        return Err(Unsayable::new("a key stands twice in an object"));
    }
    let body = document.root();
    let Some(entries) = body.entries() else { return Err(Unsayable::new("the body is no object")) };
    let mut prompt = Prompt::default();
    let mut tools = ToolSet::default();
    let (mut messages, mut format) = (None, None);
    for entry in entries.filter(|entry| !entry.value.is_null()) {
        let (key, value) = (entry.key.text().unwrap_or_default(), entry.value);
        match &*key {
            "model" => {}
            "messages" => messages = Some(value),
            "system" => prompt.system = system(value, &mut prompt.notes)?,
            "tools" => tools.declare(value, &mut prompt.notes)?,
            "tool_choice" => choose(value, &mut prompt)?,
            "max_tokens" => prompt.max_tokens = value.number_text(),
            "temperature" => prompt.temperature = value.number_text(),
            "top_p" => prompt.top_p = value.number_text(),
            "stop_sequences" => prompt.stop = stop(value)?,
            "stream" => prompt.stream = value.as_bool(),
            "thinking" => thinking(value, &mut prompt),
            "output_config" => format = output(value, &mut prompt).or(format),
            "output_format" => format = format.or(Some(value)),
            "thread"
                if !members(value, ["type"]).known.into_iter().flatten().any(|kind| kind.says("create")) =>
            {
                return Err(Unsayable::new("a conversation that is kept at the provider"));
            }
            _ => prompt.notes.add(dropped(&key)),
        }
    }
    // The conversation changes the tools, so it is read when they are known, wherever they stand in the body.
    if let Some(messages) = messages {
        prompt.turns = history::read(messages, &mut tools, &mut prompt.notes)?;
    }
    prompt.tools = tools.offered(&mut prompt.notes)?;
    prompt.schema = format.map(|format| schema_of(format, &mut prompt.notes)).transpose()?;
    Ok(prompt)
}

fn dropped(key: &str) -> &'static str {
    DROPPED.iter().find(|word| **word == key).copied().unwrap_or(OTHER_FIELD)
}

/// The instructions: a text, or blocks of text.
fn system<'d>(value: Value<'d>, notes: &mut Notes) -> Result<Vec<TextPart<'d>>, Unsayable> {
    const WRONG: Unsayable = Unsayable::new("system is neither text nor blocks of text");
    if let Some(whole) = Text::of(value) {
        let kept = without_billing(whole, notes);
        return Ok(if kept.is_empty() { Vec::new() } else { vec![TextPart::of(kept)] });
    }
    let mut parts = Vec::new();
    for block in value.items().ok_or(WRONG)? {
        let part = content::text(block, notes)?.ok_or(WRONG)?;
        if part.text.escaped().starts_with(BILLING) {
            notes.add("billing_header");
        } else {
            parts.extend(content::unless_empty(part, notes));
        }
    }
    Ok(parts)
}

/// A system prompt of one text, without the billing line at its beginning.
fn without_billing<'d>(whole: Text<'d>, notes: &mut Notes) -> Text<'d> {
    if !whole.escaped().starts_with(BILLING) {
        return whole;
    }
    notes.add("billing_header");
    let decoded = whole.decoded();
    Text::plain(decoded.split_once('\n').map_or("", |(_, rest)| rest))
}

fn stop(value: Value<'_>) -> Result<Option<Value<'_>>, Unsayable> {
    const WRONG: Unsayable = Unsayable::new("stop_sequences is no list of texts");
    let mut items = value.items().ok_or(WRONG)?;
    if items.clone().any(|item| item.kind() != Kind::String) {
        return Err(WRONG);
    }
    Ok(items.next().is_some().then_some(value))
}

fn choose<'d>(value: Value<'d>, prompt: &mut Prompt<'d>) -> Result<(), Unsayable> {
    let Members { known: [kind, name, one_call], others } =
        members(value, ["type", "name", "disable_parallel_tool_use"]);
    prompt.notes.add_some("tool_choice_field", others);
    let kind = text(kind);
    let choice = match kind.as_deref() {
        Some("auto") => ToolChoice::Auto,
        Some("any") => ToolChoice::Any,
        Some("none") => ToolChoice::None,
        Some("tool") => {
            let name = name.and_then(Value::text);
            ToolChoice::Tool(name.ok_or(Unsayable::new("tool_choice names no tool"))?)
        }
        Some(_) | None => return Err(Unsayable::new("tool_choice is of an unknown type")),
    };
    prompt.choice = Some(choice);
    prompt.one_call = one_call.and_then(Value::as_bool) == Some(true);
    Ok(())
}

fn thinking<'d>(value: Value<'d>, prompt: &mut Prompt<'d>) {
    let Members { known: [kind, budget], others } = members(value, ["type", "budget_tokens"]);
    prompt.notes.add_some("thinking_field", others);
    prompt.asks_for_thinking = kind.is_some_and(|kind| !kind.says("disabled"));
    prompt.thinking_budget = budget.and_then(Value::number_text).and_then(|number| number.parse().ok());
}

/// Reads `output_config`; returns its format.
fn output<'d>(value: Value<'d>, prompt: &mut Prompt<'d>) -> Option<Value<'d>> {
    let Members { known: [effort, format], others } = members(value, ["effort", "format"]);
    prompt.notes.add_some("output_config_field", others);
    prompt.effort = text(effort).map(|effort| match &*effort {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => Effort::Above,
    });
    format
}

/// The schema of a format: `{type: json_schema, schema}`.
fn schema_of<'d>(format: Value<'d>, notes: &mut Notes) -> Result<Value<'d>, Unsayable> {
    let Members { known: [kind, schema], others } = members(format, ["type", "schema"]);
    notes.add_some("output_format_field", others);
    let schema = schema.filter(|schema| schema.kind() == Kind::Object);
    let is_json = kind.is_some_and(|kind| kind.says("json_schema"));
    schema.filter(|_| is_json).ok_or(Unsayable::new("the format of the answer is of an unknown type"))
}
