//! Says whose text each part of a request of Responses is, and of a message over its WebSocket.

use crate::call::Role;
use crate::provider::request::marks::{
    CallNumber, Form, MarkedCall, Marks, entries, items, member, member_text, named,
};
use crate::wire::json::{Kind, Value};

/// Members that hold what somebody said.
const SPEECH: [&str; 6] = ["content", "text", "summary", "refusal", "reasoning", "annotations"];

/// Members of a call that are its input.
const INPUT: [&str; 8] =
    ["arguments", "input", "action", "actions", "operation", "code", "queries", "pending_safety_checks"];

/// Members of a call that ran at the provider which are its result.
const OUTPUT: [&str; 4] = ["output", "outputs", "results", "error"];

/// Parts that are attachments.
const ATTACHED: [&str; 5] =
    ["input_image", "input_file", "input_audio", "input_video", "computer_screenshot"];

/// Items whose output may be a list of parts; that of a shell is an object of its own, all of which is text.
const IN_PARTS: [&str; 3] = ["function_call_output", "custom_tool_call_output", "computer_call_output"];

/// Marks a body.
pub(in crate::provider) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    for (key, value) in entries(body) {
        match &*key {
            "instructions" => said(value, Role::System, None, marks),
            "input" => items(value).for_each(|item| self::item(item, marks)),
            "tools" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "text" => marks.set(value, Role::Other, Form::Definition),
            "prompt" => {
                for variables in named(value, "variables") {
                    entries(variables).for_each(|(_, variable)| said(variable, Role::User, None, marks));
                }
            }
            _ => {}
        }
    }
}

/// Whether the answer to this request is kept: it is, unless the request says otherwise.
pub(in crate::provider) fn keeps_answer(body: Value<'_>) -> bool {
    member(body, "store").and_then(Value::as_bool) != Some(false)
}

/// Marks the item that a message of an answer has whole.
pub(in crate::provider) fn mark_answer<'d>(message: Value<'d>, marks: &mut Marks<'d>) {
    let is_whole = member_text(message, "type").is_some_and(|kind| kind == "response.output_item.done");
    if let Some(item) = member(message, "item").filter(|_| is_whole) {
        self::item(item, marks);
    }
}

fn item<'d>(item: Value<'d>, marks: &mut Marks<'d>) {
    if item.kind() == Kind::String {
        return marks.text(item, Role::User);
    }
    let kind = member_text(item, "type").unwrap_or_default();
    if kind.ends_with("_output") {
        return output(item, &kind, marks);
    }
    if kind.ends_with("_call") || kind == "mcp_approval_request" {
        return call(item, &kind, marks);
    }
    let role = match (&*kind, member_text(item, "role").as_deref()) {
        ("reasoning", _) | (_, Some("assistant")) => Role::Assistant,
        (_, Some("user")) => Role::User,
        (_, Some("system" | "developer")) => Role::System,
        (kind, _) if kind.starts_with("compaction") => Role::Assistant,
        (_, Some(_) | None) => Role::Other,
    };
    marks.set(item, role, Form::Name);
    for (key, value) in entries(item) {
        match &*key {
            "encrypted_content" => marks.set(value, role, Form::Sealed),
            "tools" => marks.set(value, Role::ToolDefinition, Form::Definition),
            _ if SPEECH.contains(&&*key) => said(value, role, None, marks),
            _ => {}
        }
    }
}

/// A text, or parts of one.
fn said<'d>(content: Value<'d>, role: Role, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    for part in items(content) {
        if part.kind() == Kind::String {
            marks.set_of(part, (role, Form::Text), call);
            continue;
        }
        let kind = member_text(part, "type").unwrap_or_default();
        if ATTACHED.contains(&&*kind) {
            attachment(part, call, marks);
            continue;
        }
        marks.set_of(part, (role, Form::Name), call);
        for (key, value) in entries(part) {
            match &*key {
                "encrypted_content" => marks.set_of(value, (role, Form::Sealed), call),
                _ if SPEECH.contains(&&*key) => said(value, role, call, marks),
                _ => {}
            }
        }
    }
}

fn attachment<'d>(part: Value<'d>, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    marks.set_of(part, (Role::Attachment, Form::Name), call);
    for (key, value) in entries(part) {
        match &*key {
            "image_url" | "file_data" | "data" => {
                marks.set_of(value, (Role::Attachment, Form::Data), call);
            }
            "filename" | "title" => marks.set_of(value, (Role::Attachment, Form::FileName), call),
            "input_audio" => attachment(value, call, marks),
            _ => {}
        }
    }
}

fn call<'d>(item: Value<'d>, kind: &str, marks: &mut Marks<'d>) {
    let name = member_text(item, "name").unwrap_or_else(|| kind.trim_end_matches("_call").to_owned().into());
    let namespace = member_text(item, "namespace").or_else(|| member_text(item, "server_label"));
    let input = INPUT.iter().find_map(|key| member(item, key));
    let id = member_text(item, "call_id").or_else(|| member_text(item, "id"));
    let number = marks.call(MarkedCall { name, namespace, input, id });
    marks.set_of(item, (Role::ToolCall, Form::Name), number);
    for (key, value) in entries(item) {
        if INPUT.contains(&&*key) {
            marks.set_of(value, (Role::ToolCall, Form::Text), number);
        } else if OUTPUT.contains(&&*key) {
            marks.set_of(value, (Role::ToolResult, Form::Text), number);
        } else if key == "result" {
            // The picture that the provider made.
            marks.set_of(value, (Role::Attachment, Form::Data), number);
        }
    }
}

/// The texts of an output: itself, its parts, or what a shell wrote to its two outputs.
fn result<'d>(output: Value<'d>, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    marks.result(output, call, false);
    for (key, written) in items(output).flat_map(entries) {
        if matches!(&*key, "stdout" | "stderr") && written.kind() == Kind::String {
            marks.result(written, call, false);
        }
    }
}

fn output<'d>(item: Value<'d>, kind: &str, marks: &mut Marks<'d>) {
    // That of a local shell may name its call by `id` alone.
    let by_id = || marks.answers(item, "id").filter(|_| kind == "local_shell_call_output");
    let call = marks.answers(item, "call_id").or_else(by_id);
    marks.set_of(item, (Role::ToolResult, Form::Name), call);
    for (key, value) in entries(item) {
        match &*key {
            "tools" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "output" | "error" | "acknowledged_safety_checks" => {
                marks.set_of(value, (Role::ToolResult, Form::Text), call);
                if key == "output" {
                    result(value, call, marks);
                }
                if IN_PARTS.contains(&kind) && value.kind() != Kind::String {
                    said(value, Role::ToolResult, call, marks);
                }
            }
            _ => {}
        }
    }
}
