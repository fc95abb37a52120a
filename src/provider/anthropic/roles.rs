//! Says whose text each part of a request of Anthropic Messages is.

use crate::call::Role;
use crate::provider::request::marks::{
    CallNumber, Form, MarkedCall, Marks, entries, items, member, member_text, named,
};
use crate::wire::json::{Kind, Value};

/// Members that the provider made and takes unchanged alone.
const SEALED: [&str; 4] = ["signature", "encrypted_content", "encrypted_index", "encrypted_stdout"];

/// Members of blocks that hold what somebody said.
const SPEECH: [&str; 8] =
    ["text", "thinking", "content", "summary", "cited_text", "context", "error_message", "citations"];

/// Blocks of which the content is an attachment.
const ATTACHED: [&str; 5] = ["image", "document", "video", "audio", "container_upload"];

/// Marks a body, or the object of another one that has its fields.
pub(in crate::provider) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    for (key, value) in entries(body) {
        match &*key {
            "system" => said(value, Role::System, marks),
            "messages" => items(value).for_each(|message| self::message(message, marks)),
            "tools" => marks.set(value, Role::ToolDefinition, Form::Definition),
            // A schema of what the model is to answer.
            "output_config" | "output_format" => marks.set(value, Role::Other, Form::Definition),
            _ => {}
        }
    }
}

fn message<'d>(message: Value<'d>, marks: &mut Marks<'d>) {
    let role = match member_text(message, "role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some(_) | None => Role::Other,
    };
    marks.set(message, role, Form::Name);
    for content in named(message, "content") {
        said(content, role, marks);
    }
}

/// A text, blocks, or one block.
fn said<'d>(content: Value<'d>, role: Role, marks: &mut Marks<'d>) {
    match content.kind() {
        Kind::String => marks.text(content, role),
        Kind::Array | Kind::Object | Kind::Null | Kind::Bool | Kind::Number => {
            items(content).for_each(|block| self::block(block, role, marks));
        }
    }
}

fn block<'d>(block: Value<'d>, role: Role, marks: &mut Marks<'d>) {
    let kind = member_text(block, "type").unwrap_or_default();
    if ATTACHED.contains(&&*kind) {
        return attachment(block, None, marks);
    }
    if kind.ends_with("tool_use") {
        return call(block, marks);
    }
    if kind.ends_with("tool_result") {
        return result(block, &kind, marks);
    }
    marks.set(block, role, Form::Name);
    for (key, value) in entries(block) {
        match &*key {
            "data" if kind == "redacted_thinking" => marks.set(value, role, Form::Sealed),
            // The changes of tools that a summary repeats, and those inside of a conversation.
            "tool" | "tool_changes" => marks.set(value, Role::ToolDefinition, Form::Definition),
            _ if SEALED.contains(&&*key) => marks.set(value, role, Form::Sealed),
            "title" | "source" if kind == "search_result" => marks.text(value, role),
            _ if SPEECH.contains(&&*key) => spoken(value, role, marks),
            _ => {}
        }
    }
}

/// What a block says: a text, blocks, or citations of them.
fn spoken<'d>(value: Value<'d>, role: Role, marks: &mut Marks<'d>) {
    let is_block = |item: Value<'d>| member(item, "type").is_some();
    if value.kind() != Kind::String && items(value).all(is_block) {
        return items(value).for_each(|block| self::block(block, role, marks));
    }
    marks.text(value, role);
    seal(value, role, None, marks);
}

fn call<'d>(block: Value<'d>, marks: &mut Marks<'d>) {
    let name = member_text(block, "name").unwrap_or_default();
    let (input, namespace) = (member(block, "input"), member_text(block, "server_name"));
    let number = marks.call(MarkedCall { name, namespace, input, id: member_text(block, "id") });
    marks.set_of(block, (Role::ToolCall, Form::Name), number);
    for input in named(block, "input") {
        marks.set_of(input, (Role::ToolCall, Form::Text), number);
    }
}

fn result<'d>(block: Value<'d>, kind: &str, marks: &mut Marks<'d>) {
    let call = marks.answers(block, "tool_use_id");
    let is_error = member(block, "is_error").and_then(Value::as_bool) == Some(true);
    marks.set_of(block, (Role::ToolResult, Form::Name), call);
    for content in named(block, "content") {
        if kind == "tool_result" {
            // All other results are of tools that ran at the provider.
            marks.result(content, call, is_error);
        }
        marks.set_of(content, (Role::ToolResult, Form::Text), call);
        for part in items(content).filter(|part| part.kind() == Kind::Object) {
            let kind = member_text(part, "type").unwrap_or_default();
            if ATTACHED.contains(&&*kind) {
                attachment(part, call, marks);
            } else {
                seal(part, Role::ToolResult, call, marks);
            }
        }
    }
}

/// A picture or a document: its content, its name, what is said about it.
fn attachment<'d>(block: Value<'d>, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    marks.set_of(block, (Role::Attachment, Form::Name), call);
    for (key, value) in entries(block) {
        match &*key {
            "title" | "filename" => marks.set_of(value, (Role::Attachment, Form::FileName), call),
            "context" => marks.set_of(value, (Role::Attachment, Form::Text), call),
            "source" => {
                for (_, data) in entries(value).filter(|(key, _)| key == "data" || key == "content") {
                    marks.set_of(data, (Role::Attachment, Form::Data), call);
                }
            }
            _ => {}
        }
    }
}

/// Marks what the provider encrypted or signed, at any depth.
fn seal<'d>(value: Value<'d>, role: Role, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    for item in value.items().into_iter().flatten() {
        seal(item, role, call, marks);
    }
    for (key, value) in entries(value) {
        if SEALED.contains(&&*key) {
            marks.set_of(value, (role, Form::Sealed), call);
        } else {
            seal(value, role, call, marks);
        }
    }
}
