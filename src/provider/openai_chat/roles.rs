//! Says whose text each part of a request of Chat Completions is, vendors' own fields among them.

use std::borrow::Cow;

use crate::call::Role;
use crate::provider::request::marks::{
    CallNumber, Form, MarkedCall, Marks, entries, items, member, member_text, named,
};
use crate::wire::json::{Kind, Value};

/// Members of a body that are a text for the model, in APIs that have no messages.
const PROMPTS: [&str; 8] =
    ["prompt", "suffix", "inputText", "input_text", "inputs", "input", "system", "preamble"];

/// Members of a message, or of a part of one, that hold what somebody said.
const SPEECH: [&str; 9] = [
    "content",
    "text",
    "refusal",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking",
    "summary",
    "annotations",
];

/// Members that the provider made and takes unchanged alone.
const SEALED: [&str; 4] = ["signature", "encrypted_content", "data", "thought_signature"];

/// Marks a body.
pub(in crate::provider) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    for (key, value) in entries(body) {
        match &*key {
            "messages" => items(value).for_each(|message| self::message(message, marks)),
            "tools" | "functions" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "response_format" => marks.set(value, Role::Other, Form::Definition),
            // What the model is expected to repeat: the agent's own text.
            "prediction" => {
                for content in named(value, "content") {
                    said(content, Role::User, None, marks);
                }
            }
            _ if PROMPTS.contains(&&*key) => said(value, Role::User, None, marks),
            _ => {}
        }
    }
}

fn message<'d>(message: Value<'d>, marks: &mut Marks<'d>) {
    let role = match member_text(message, "role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::ToolResult,
        Some(_) | None => Role::Other,
    };
    let named = || marks.answers(message, "tool_call_id").or_else(|| marks.answers(message, "name"));
    let call = if role == Role::ToolResult { named() } else { None };
    marks.set_of(message, (role, Form::Name), call);
    for (key, value) in entries(message) {
        if role == Role::ToolResult && key == "content" {
            marks.result(value, call, false);
        }
        match &*key {
            "tool_calls" => items(value).for_each(|call| self::call(call, marks)),
            "function_call" => function(value, None, marks),
            _ if SPEECH.contains(&&*key) => said(value, role, call, marks),
            _ => {}
        }
    }
}

/// A text, or parts of one.
fn said<'d>(content: Value<'d>, role: Role, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    for part in items(content) {
        if part.kind() == Kind::String {
            marks.set_of(part, (role, Form::Text), call);
        } else {
            self::part(part, role, call, marks);
        }
    }
}

fn part<'d>(part: Value<'d>, role: Role, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    marks.set_of(part, (role, Form::Name), call);
    for (key, value) in entries(part) {
        match &*key {
            "image_url" | "input_audio" | "file" | "video_url" | "audio_url" | "document_url"
            | "document" | "image" => attachment(value, call, marks),
            _ if SEALED.contains(&&*key) => marks.set_of(value, (role, Form::Sealed), call),
            _ if SPEECH.contains(&&*key) => said(value, role, call, marks),
            _ => {}
        }
    }
}

/// A picture, a recording or a file: a `data:` URL, or an object with its content and its name.
fn attachment<'d>(value: Value<'d>, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    if value.kind() == Kind::String {
        return marks.set_of(value, (Role::Attachment, Form::Data), call);
    }
    marks.set_of(value, (Role::Attachment, Form::Name), call);
    for (key, value) in entries(value) {
        let form = match &*key {
            "url" | "data" | "file_data" => Form::Data,
            "filename" | "name" | "title" => Form::FileName,
            _ => continue,
        };
        marks.set_of(value, (Role::Attachment, form), call);
    }
}

fn call<'d>(call: Value<'d>, marks: &mut Marks<'d>) {
    marks.set(call, Role::ToolCall, Form::Name);
    let id = member_text(call, "id");
    match member(call, "function").or_else(|| member(call, "custom")) {
        Some(called) => function(called, id, marks),
        None => function(call, id, marks),
    }
}

/// The name and the input of a call; without an id, a result names the tool.
fn function<'d>(called: Value<'d>, id: Option<Cow<'d, str>>, marks: &mut Marks<'d>) {
    let name = member_text(called, "name").unwrap_or_default();
    let input = member(called, "arguments").or_else(|| member(called, "input"));
    let id = id.or_else(|| Some(name.clone()));
    let number = marks.call(MarkedCall { name, namespace: None, input, id });
    marks.set_of(called, (Role::ToolCall, Form::Name), number);
    for (_, input) in entries(called).filter(|(key, _)| key == "arguments" || key == "input") {
        marks.set_of(input, (Role::ToolCall, Form::Text), number);
    }
}
