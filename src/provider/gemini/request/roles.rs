//! Says whose text each part of a request of generateContent is. Each field may be spelled in either way.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::call::Role;
use crate::provider::gemini::fields::{camel, repeated};
use crate::provider::request::marks::{CallNumber, Form, MarkedCall, Marks};
use crate::wire::json::{Kind, Value};

/// Members of a response that hold what a tool said.
const SAID: [&str; 4] = ["output", "result", "content", "error"];

/// Marks a body: a request, or what has one in itself.
pub(in crate::provider) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    for (key, value) in fields(body) {
        match &*key {
            "systemInstruction" => Turns::new(marks).content(value, Some(Role::System)),
            "contents" => {
                let mut turns = Turns::new(marks);
                repeated(value).for_each(|content| turns.content(content, None));
            }
            "tools" => marks.set(value, Role::ToolDefinition, Form::Definition),
            "generationConfig" => marks.set(value, Role::Other, Form::Definition),
            "request" | "generateContentRequest" => mark(value, marks),
            // A body of Vertex AI's own prediction.
            "instances" => marks.set(value, Role::User, Form::Text),
            _ => {}
        }
    }
}

/// The contents of a request, in their order.
struct Turns<'m, 'd> {
    marks: &'m mut Marks<'d>,
    /// Calls without an id that no result followed yet, by name, the first one last.
    open: HashMap<Cow<'d, str>, Vec<CallNumber>>,
}

impl<'m, 'd> Turns<'m, 'd> {
    fn new(marks: &'m mut Marks<'d>) -> Self {
        Self { marks, open: HashMap::new() }
    }

    fn content(&mut self, content: Value<'d>, role: Option<Role>) {
        if content.kind() == Kind::String {
            return self.marks.text(content, role.unwrap_or(Role::User));
        }
        let role = role.unwrap_or_else(|| match field_text(content, "role").as_deref() {
            Some("model") => Role::Assistant,
            Some("user" | "") | None => Role::User,
            Some("function") => Role::ToolResult,
            Some("system") => Role::System,
            Some(_) => Role::Other,
        });
        self.marks.set(content, role, Form::Name);
        for (_, parts) in fields(content).filter(|(key, _)| key == "parts") {
            repeated(parts).for_each(|part| self.part(part, role));
        }
    }

    fn part(&mut self, part: Value<'d>, role: Role) {
        if part.kind() == Kind::String {
            return self.marks.text(part, role);
        }
        self.marks.set(part, role, Form::Name);
        for (key, value) in fields(part) {
            match &*key {
                "text" => self.marks.text(value, role),
                "thoughtSignature" => self.marks.set(value, role, Form::Sealed),
                "inlineData" | "fileData" => self.attachment(value, None),
                "functionCall" | "toolCall" => self.call(value),
                "functionResponse" => self.result(value, true),
                "toolResponse" => self.result(value, false),
                "executableCode" => self.inside(value, "code", Role::ToolCall),
                "codeExecutionResult" => self.inside(value, "output", Role::ToolResult),
                _ => {}
            }
        }
    }

    fn inside(&mut self, value: Value<'d>, name: &str, role: Role) {
        self.marks.set(value, role, Form::Name);
        for (_, text) in fields(value).filter(|(key, _)| key == name) {
            self.marks.text(text, role);
        }
    }

    fn call(&mut self, call: Value<'d>) {
        let (id, name) = (field_text(call, "id"), field_text(call, "name").unwrap_or_default());
        let input = fields(call).find(|(key, _)| key == "args").map(|(_, value)| value);
        let is_named = id.is_some();
        let number = self.marks.call(MarkedCall { name: name.clone(), namespace: None, input, id });
        if let Some(number) = number.filter(|_| !is_named) {
            self.open.entry(name).or_default().insert(0, number);
        }
        self.marks.set_of(call, (Role::ToolCall, Form::Name), number);
        for (_, args) in fields(call).filter(|(key, _)| key == "args" || key == "partialArgs") {
            self.marks.set_of(args, (Role::ToolCall, Form::Text), number);
        }
    }

    /// `is_client`: the tool is the agent's, not one that ran at the provider.
    fn result(&mut self, result: Value<'d>, is_client: bool) {
        let by_id = field_text(result, "id").and_then(|id| self.marks.called(&id));
        let call = by_id.or_else(|| self.open.get_mut(&field_text(result, "name")?).and_then(Vec::pop));
        self.marks.set_of(result, (Role::ToolResult, Form::Name), call);
        for (key, value) in fields(result) {
            match &*key {
                "response" => {
                    self.marks.set_of(value, (Role::ToolResult, Form::Text), call);
                    for (key, said) in fields(value).filter(|(key, _)| is_client && SAID.contains(&&**key)) {
                        self.marks.result(said, call, key == "error");
                    }
                }
                "parts" => {
                    for (_, data) in repeated(value).flat_map(fields) {
                        self.attachment(data, call);
                    }
                }
                _ => {}
            }
        }
    }

    fn attachment(&mut self, value: Value<'d>, call: Option<CallNumber>) {
        self.marks.set_of(value, (Role::Attachment, Form::Name), call);
        for (key, value) in fields(value) {
            let form = match &*key {
                "data" => Form::Data,
                "displayName" => Form::FileName,
                _ => continue,
            };
            self.marks.set_of(value, (Role::Attachment, form), call);
        }
    }
}

fn fields<'d>(value: Value<'d>) -> impl Iterator<Item = (Cow<'d, str>, Value<'d>)> {
    let entries = value.entries().into_iter().flatten();
    entries.filter_map(|entry| Some((camel(entry.key.text()?), entry.value)))
}

fn field_text<'d>(value: Value<'d>, name: &str) -> Option<Cow<'d, str>> {
    fields(value).find(|(key, _)| key == name)?.1.text()
}
