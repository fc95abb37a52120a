//! Reads a block of an answer: a call of a tool, the result of one, or anything else.

use std::borrow::Cow;

use crate::fold::is_other_case;
use crate::provider::answer::member::{get, text};
use crate::provider::answer::{BrokenAnswer, CallHead};
use crate::wire::json::{Entry, Kind, Value};

/// A block, or the start of one.
#[derive(Debug)]
pub(super) enum ContentBlock<'d> {
    /// The client is to execute it.
    Call(NamedCall<'d>),
    /// The provider has executed it, or does now.
    Hosted(NamedCall<'d>),
    /// The result of a call that the provider executed.
    Result {
        id: Cow<'d, str>,
    },
    Text,
    Thinking,
    /// Another model answers from here on.
    Fallback {
        model: Option<String>,
    },
    Other,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct NamedCall<'d> {
    pub id: Cow<'d, str>,
    pub name: Cow<'d, str>,
    /// The toolset, or the MCP server.
    pub namespace: Option<Cow<'d, str>>,
    /// Its input, where it says more than `{}`; a stream has it in what follows.
    pub input: Option<&'d str>,
}

impl NamedCall<'_> {
    pub(super) fn head(&self, is_hosted: bool) -> CallHead<'_> {
        CallHead { namespace: self.namespace.as_deref(), is_hosted, ..CallHead::new(&self.id, &self.name) }
    }
}

/// Reads a block.
///
/// # Errors
/// If it may be read in two ways, or is a call without a name.
pub(super) fn read<'d>(block: Value<'d>) -> Result<ContentBlock<'d>, BrokenAnswer> {
    if block.kind() != Kind::Object {
        return Err(BrokenAnswer::malformed("a block of the answer is no JSON object"));
    }
    distinct(block)?;
    let kind = text(block, "type")?.unwrap_or_default();
    Ok(match &*kind {
        "tool_use" => ContentBlock::Call(named(block, "toolset_name")?),
        "server_tool_use" => ContentBlock::Hosted(named(block, "toolset_name")?),
        "mcp_tool_use" => ContentBlock::Hosted(named(block, "server_name")?),
        "text" => ContentBlock::Text,
        "thinking" => ContentBlock::Thinking,
        "fallback" => {
            ContentBlock::Fallback { model: get(block, "to")?.map_or(Ok(None), |to| owned(to, "model"))? }
        }
        // Every hosted tool has a type of result of its own, and all of them end alike.
        other if other.ends_with("_tool_result") => {
            ContentBlock::Result { id: text(block, "tool_use_id")?.unwrap_or_default() }
        }
        // A client that is newer than this catalogue may execute it.
        _ if is_shaped_as_call(block) => ContentBlock::Call(named(block, "toolset_name")?),
        _ => ContentBlock::Other,
    })
}

/// Whether there is, anywhere in this value, something that a client may take for a call of a tool.
pub(super) fn holds_call(value: Value<'_>) -> bool {
    let is_type = |key: &str| key == "type" || is_other_case(key, "type");
    let is_call =
        |entry: Entry<'_>| entry.value.says("tool_use") && entry.key.text().is_some_and(|key| is_type(&key));
    value.entries().into_iter().flatten().any(is_call)
        || is_shaped_as_call(value)
        || value.items().into_iter().flatten().any(holds_call)
        || value.entries().into_iter().flatten().any(|entry| holds_call(entry.value))
}

fn is_shaped_as_call(value: Value<'_>) -> bool {
    let has = |name: &str| {
        let mut keys = value.entries().into_iter().flatten().filter_map(|entry| entry.key.text());
        keys.any(|key| key == name || is_other_case(&key, name))
    };
    has("name") && has("input")
}

fn named<'d>(block: Value<'d>, namespace: &str) -> Result<NamedCall<'d>, BrokenAnswer> {
    let name = text(block, "name")?.ok_or_else(|| BrokenAnswer::ambiguous("a tool call has no name"))?;
    // A stream starts a call with `{}` and sends the input in deltas; a whole answer has it here.
    let says_more = |input: &Value<'_>| match input.entries() {
        Some(mut entries) => entries.next().is_some(),
        None => !input.is_null(),
    };
    Ok(NamedCall {
        id: text(block, "id")?.unwrap_or_default(),
        name,
        namespace: text(block, namespace)?,
        input: get(block, "input")?.filter(says_more).map(Value::raw),
    })
}

/// The text of a member, to be kept.
///
/// # Errors
/// As for [`text`].
pub(super) fn owned(object: Value<'_>, key: &str) -> Result<Option<String>, BrokenAnswer> {
    Ok(text(object, key)?.map(Cow::into_owned))
}

/// Refuses an object with a duplicate key.
///
/// # Errors
/// If there is one.
pub(super) fn distinct(object: Value<'_>) -> Result<(), BrokenAnswer> {
    object.duplicate().map_or(Ok(()), |duplicate| Err(BrokenAnswer::ambiguous(duplicate.to_string())))
}
