//! Says whose text each part of a request of Converse is.

use crate::call::Role;
use crate::provider::anthropic;
use crate::provider::request::marks::{
    CallNumber, Form, MarkedCall, Marks, entries, items, member, member_text, named,
};
use crate::wire::json::{Kind, Value};

/// Blocks that are attachments.
const ATTACHED: [&str; 4] = ["image", "document", "video", "audio"];

/// Marks a body, or one of Nova's own.
pub(in crate::provider::bedrock) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    for (key, value) in entries(body) {
        match &*key {
            "system" => items(value).for_each(|block| self::block(block, Role::System, marks)),
            "messages" => items(value).for_each(|message| self::message(message, marks)),
            "toolConfig" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "outputConfig" => marks.set(value, Role::Other, Form::Definition),
            "promptVariables" => marks.set(value, Role::User, Form::Text),
            // Fields of the model's own API.
            "additionalModelRequestFields" => anthropic::mark_roles(value, marks),
            _ => {}
        }
    }
}

fn message<'d>(message: Value<'d>, marks: &mut Marks<'d>) {
    let role = match member_text(message, "role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        Some("system") => Role::System,
        Some(_) | None => Role::Other,
    };
    marks.set(message, role, Form::Name);
    for content in named(message, "content") {
        items(content).for_each(|block| self::block(block, role, marks));
    }
}

fn block<'d>(block: Value<'d>, role: Role, marks: &mut Marks<'d>) {
    if block.kind() == Kind::String {
        return marks.text(block, role);
    }
    marks.set(block, role, Form::Name);
    for (key, value) in entries(block) {
        match &*key {
            "text" => marks.text(value, role),
            "toolUse" => call(value, marks),
            "toolResult" => result(value, marks),
            "toolAddition" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "guardContent" | "searchResult" | "citationsContent" => {
                marks.set(value, role, Form::Text);
                for image in named(value, "image") {
                    attachment(image, None, marks);
                }
            }
            "reasoningContent" => reasoning(value, role, marks),
            _ if ATTACHED.contains(&&*key) => attachment(value, None, marks),
            _ => {}
        }
    }
}

fn reasoning<'d>(value: Value<'d>, role: Role, marks: &mut Marks<'d>) {
    for (key, value) in entries(value) {
        match &*key {
            "redactedContent" => marks.set(value, role, Form::Sealed),
            "reasoningText" => {
                for (key, value) in entries(value) {
                    match &*key {
                        "text" => marks.text(value, role),
                        "signature" => marks.set(value, role, Form::Sealed),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn call<'d>(call: Value<'d>, marks: &mut Marks<'d>) {
    let name = member_text(call, "name").unwrap_or_default();
    let input = member(call, "input");
    let id = member_text(call, "toolUseId");
    let number = marks.call(MarkedCall { name, namespace: None, input, id });
    marks.set_of(call, (Role::ToolCall, Form::Name), number);
    for input in named(call, "input") {
        marks.set_of(input, (Role::ToolCall, Form::Text), number);
    }
}

fn result<'d>(result: Value<'d>, marks: &mut Marks<'d>) {
    let call = marks.answers(result, "toolUseId");
    let is_error = member(result, "status").is_some_and(|status| status.says("error"));
    marks.set_of(result, (Role::ToolResult, Form::Name), call);
    for content in named(result, "content") {
        marks.set_of(content, (Role::ToolResult, Form::Text), call);
        marks.result(content, call, is_error);
        for (key, value) in items(content).flat_map(entries) {
            if ATTACHED.contains(&&*key) {
                attachment(value, call, marks);
            }
        }
    }
}

fn attachment<'d>(value: Value<'d>, call: Option<CallNumber>, marks: &mut Marks<'d>) {
    marks.set_of(value, (Role::Attachment, Form::Name), call);
    for (key, value) in entries(value) {
        match &*key {
            "name" => marks.set_of(value, (Role::Attachment, Form::FileName), call),
            "context" => marks.set_of(value, (Role::Attachment, Form::Text), call),
            "source" => {
                for (key, data) in entries(value) {
                    if matches!(&*key, "bytes" | "text" | "content") {
                        marks.set_of(data, (Role::Attachment, Form::Data), call);
                    }
                }
            }
            _ => {}
        }
    }
}
