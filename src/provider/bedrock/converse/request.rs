//! Reads what Converse is sent, and takes out what would act at the provider.

use super::{message, tool_config};
use crate::call::Denial;
use crate::provider::bedrock::additional;
use crate::provider::bedrock::operation::RuntimeTarget;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// The members of a request that matter here.
const MEMBERS: [&str; 5] =
    ["toolConfig", "additionalModelRequestFields", "promptVariables", "messages", "system"];

/// Reads a body of Converse, or the part of it that tokens are counted of.
///
/// # Errors
/// If the request must not go on, or can be read in two ways.
pub(in crate::provider::bedrock) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    target: &RuntimeTarget,
) -> Result<(), Denial> {
    // First, since it says of itself what the request as a whole then says more of.
    if let Some(fields) = editor.get(body, "additionalModelRequestFields")?.filter(|fields| !fields.is_null())
    {
        additional::read(editor, fields, target)?;
    }
    read_tools(editor, body)?;
    if editor.get(body, "promptVariables")?.is_some_and(|variables| !variables.is_null()) {
        editor.keeps_state("promptVariables")?;
    }
    Ok(())
}

/// Reads the members that Nova's own bodies have too: tools and messages.
///
/// # Errors
/// As for [`read`].
pub(in crate::provider::bedrock) fn read_tools<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
) -> Result<(), Denial> {
    check_spelling(body)?;
    if let Some(config) = editor.get(body, "inferenceConfig")? {
        // Nova's own bodies spell it in either way.
        for key in ["maxTokens", "max_new_tokens"] {
            let most = editor.get(config, key)?;
            editor.bounds_tokens(most);
        }
    }
    let offer = tool_config::read(editor, body)?;
    let mut calls = false;
    if let Some(messages) = editor.get(body, "messages")?.and_then(Value::items) {
        for message in messages {
            editor.has_message();
            if let Some(content) = editor.get(message, "content")? {
                calls |= message::read(editor, content, &offer)?;
            }
        }
    }
    if let Some(system) = editor.get(body, "system")? {
        calls |= message::read(editor, system, &offer)?;
    }
    if calls {
        editor.excuse();
    }
    offer.settle(editor, calls)
}

/// Refuses another spelling of a member: whoever takes it for the member would read what was not looked at.
fn check_spelling(body: Value<'_>) -> Result<(), Denial> {
    for entry in body.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
        let member = MEMBERS.iter().find(|member| plain(member) == plain(&key));
        if let Some(member) = member.filter(|member| ***member != *key) {
            return Err(Denial::unparseable(member, "the key is spelled otherwise than in AWS's API"));
        }
    }
    Ok(())
}
