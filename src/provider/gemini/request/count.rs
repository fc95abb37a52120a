//! Counts what the contents of a request hold, and reads how many tokens it asks for.

use super::fields;
use crate::call::Denial;
use crate::provider::gemini::fields::{MessageFields, repeated};
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// Counts messages, images and results of tools.
///
/// # Errors
/// If a content or a part of one has not one reading.
pub(super) fn read<'d>(editor: &mut RequestEditor<'d>, message: &MessageFields<'d>) -> Result<(), Denial> {
    if let Some(config) = message.at("generationConfig") {
        editor.bounds_tokens(fields(config, "generationConfig")?.at("maxOutputTokens"));
    }
    for content in message.at("contents").into_iter().flat_map(repeated) {
        editor.has_message();
        if content.kind() != Kind::Object {
            continue;
        }
        for part in fields(content, "contents")?.at("parts").into_iter().flat_map(repeated) {
            self::part(editor, part)?;
        }
    }
    Ok(())
}

fn part<'d>(editor: &mut RequestEditor<'d>, part: Value<'d>) -> Result<(), Denial> {
    if part.kind() != Kind::Object {
        return Ok(());
    }
    let part = fields(part, "contents.parts")?;
    if let Some(result) = part.at("functionResponse") {
        editor.has_tool_result();
        // What a tool answers with beside its JSON: images stand here.
        for inner in fields(result, "functionResponse")?.at("parts").into_iter().flat_map(repeated) {
            count_image(editor, &fields(inner, "functionResponse.parts")?)?;
        }
    }
    count_image(editor, &part)
}

fn count_image<'d>(editor: &mut RequestEditor<'d>, part: &MessageFields<'d>) -> Result<(), Denial> {
    for name in ["inlineData", "fileData"] {
        let Some(data) = part.at(name) else { continue };
        if fields(data, name)?.text("mimeType").is_some_and(|kind| kind.starts_with("image/")) {
            editor.has_image();
        }
    }
    Ok(())
}
