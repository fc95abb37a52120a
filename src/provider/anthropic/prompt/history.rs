//! Reads the conversation of a request of Anthropic Messages, and the changes of tools in it.

use super::members::{Members, kind, members, text};
use super::tools::{ToolSet, changes};
use super::{content, hosted};
use crate::call::turn::prompt::UserPart;
use crate::call::turn::prompt::{
    AssistantPart, Call, Content, TextPart, Thinking, ToolResult, Turn, Unsayable,
};
use crate::call::turn::{Notes, Text};
use crate::wire::json::{Kind, Value};

/// Reads `messages`.
pub(super) fn read<'d>(
    messages: Value<'d>,
    tools: &mut ToolSet<'d>,
    notes: &mut Notes,
) -> Result<Vec<Turn<'d>>, Unsayable> {
    let messages = messages.items().ok_or(Unsayable::new("messages is no list"))?;
    let mut reader = Reader { tools, notes };
    messages.map(|message| reader.message(message)).collect()
}

struct Reader<'r, 'd> {
    tools: &'r mut ToolSet<'d>,
    notes: &'r mut Notes,
}

impl<'d> Reader<'_, 'd> {
    fn message(&mut self, message: Value<'d>) -> Result<Turn<'d>, Unsayable> {
        let Members { known: [role, content], others } = members(message, ["role", "content"]);
        self.notes.add_some("message_field", others);
        let content = content.ok_or(Unsayable::new("a message without content"));
        match text(role).as_deref() {
            Some("user") => self.user(content?).map(Turn::User),
            Some("assistant") => self.assistant(content?).map(Turn::Assistant),
            // One may change nothing but parameters of what follows.
            Some("system") => {
                content.map_or(Ok(Vec::new()), |content| self.system(content)).map(Turn::System)
            }
            Some(_) | None => Err(Unsayable::new("a message of an unknown role")),
        }
    }

    fn system(&mut self, value: Value<'d>) -> Result<Vec<TextPart<'d>>, Unsayable> {
        let mut parts = Vec::new();
        if let Some(whole) = Text::of(value) {
            parts.extend(content::unless_empty(TextPart::of(whole), self.notes));
            return Ok(parts);
        }
        for block in value.items().into_iter().flatten() {
            match content::text(block, self.notes)? {
                Some(part) => parts.extend(content::unless_empty(part, self.notes)),
                None => self.tools.change(block, self.notes)?,
            }
        }
        Ok(parts)
    }

    fn user(&mut self, value: Value<'d>) -> Result<Vec<UserPart<'d>>, Unsayable> {
        let mut parts = Vec::new();
        let mut shown = Vec::new();
        if value.kind() == Kind::String {
            content::read(value, self.notes, &mut shown)?;
            return Ok(shown.into_iter().map(UserPart::Content).collect());
        }
        for block in value.items().ok_or(Unsayable::new("content is neither text nor blocks"))? {
            match &*kind(block) {
                "tool_result" => parts.push(UserPart::Result(self.result(block)?)),
                "tool_addition" | "tool_removal" => self.tools.change(block, self.notes)?,
                hosted if hosted::is_hosted(hosted) => {
                    let said = self.hosted(block)?;
                    parts.extend(said.into_iter().map(UserPart::Content));
                }
                _ => {
                    content::block(block, self.notes, &mut shown)?;
                    self.refer(&shown);
                    parts.extend(shown.drain(..).map(UserPart::Content));
                }
            }
        }
        Ok(parts)
    }

    fn result(&mut self, block: Value<'d>) -> Result<ToolResult<'d>, Unsayable> {
        let Members { known: [_, call, content, is_error, cache], others } =
            members(block, ["type", "tool_use_id", "content", "is_error", "cache_control"]);
        self.notes.add_some("block_field", others);
        self.notes.add_some("cache_control", usize::from(cache.is_some()));
        let call = call.and_then(Text::of).ok_or(Unsayable::new("a result that names no call"))?;
        let mut shown = Vec::new();
        if let Some(content) = content {
            content::read(content, self.notes, &mut shown)?;
        }
        self.refer(&shown);
        let is_error = is_error.and_then(Value::as_bool) == Some(true);
        Ok(ToolResult { call, is_error, content: shown })
    }

    fn assistant(&mut self, value: Value<'d>) -> Result<Vec<AssistantPart<'d>>, Unsayable> {
        let mut parts = Vec::new();
        if let Some(whole) = Text::of(value) {
            let part = content::unless_empty(TextPart::of(whole), self.notes);
            return Ok(part.map(AssistantPart::Text).into_iter().collect());
        }
        for block in value.items().ok_or(Unsayable::new("content is neither text nor blocks"))? {
            match &*kind(block) {
                "thinking" => parts.push(AssistantPart::Thinking(self.thinking(block)?)),
                "redacted_thinking" => self.notes.add("redacted_thinking"),
                "tool_use" => parts.push(AssistantPart::Call(self.call(block)?)),
                hosted if hosted::is_hosted(hosted) => {
                    parts.extend(self.hosted(block)?.into_iter().map(assistant));
                }
                _ => {
                    let mut shown = Vec::new();
                    content::block(block, self.notes, &mut shown)?;
                    self.refer(&shown);
                    parts.extend(shown.into_iter().map(assistant));
                }
            }
        }
        Ok(parts)
    }

    fn thinking(&mut self, block: Value<'d>) -> Result<Thinking<'d>, Unsayable> {
        let Members { known: [_, thinking, signature], others } =
            members(block, ["type", "thinking", "signature"]);
        self.notes.add_some("block_field", others);
        let thinking = thinking.and_then(Text::of).ok_or(Unsayable::new("thinking without a text"))?;
        Ok(Thinking { text: thinking, signature: text(signature) })
    }

    fn call(&mut self, block: Value<'d>) -> Result<Call<'d>, Unsayable> {
        // Who called is always the model itself by the time that a call is sent on.
        let Members { known: [_, id, name, input, _caller, cache], others } =
            members(block, ["type", "id", "name", "input", "caller", "cache_control"]);
        self.notes.add_some("block_field", others);
        self.notes.add_some("cache_control", usize::from(cache.is_some()));
        let id = id.and_then(Text::of).ok_or(Unsayable::new("a call without an id"))?;
        let name = text(name).ok_or(Unsayable::new("a call without a name"))?;
        let input = match input {
            None => "{}",
            Some(input) if input.kind() == Kind::Object => input.raw(),
            Some(_) => return Err(Unsayable::new("a call whose input is no object")),
        };
        Ok(Call { id, name, input })
    }

    fn hosted(&mut self, block: Value<'d>) -> Result<Vec<Content<'d>>, Unsayable> {
        let said = hosted::read(block, self.notes);
        self.refer(&said);
        for change in changes(block) {
            self.tools.change(change, self.notes)?;
        }
        Ok(said)
    }

    /// Tools that are named have been found by a search.
    fn refer(&mut self, shown: &[Content<'d>]) {
        for content in shown {
            match content {
                Content::Available(name) => self.tools.refer(name),
                Content::Text(_) | Content::Image(_) | Content::Pdf(_) => {}
            }
        }
    }
}

/// What a model is said to have shown. Only its texts have a place there.
fn assistant(content: Content<'_>) -> AssistantPart<'_> {
    match content {
        Content::Text(part) => AssistantPart::Text(part),
        Content::Available(name) => AssistantPart::Available(name),
        Content::Image(_) => AssistantPart::Text(TextPart::of(Text::fixed("[image omitted]"))),
        Content::Pdf(_) => AssistantPart::Text(TextPart::of(Text::fixed("[document omitted]"))),
    }
}
