//! `additionalModelRequestFields` of Converse: fields of the model's own API, which AWS hands on unread.

use super::operation::RuntimeTarget;
use crate::call::Denial;
use crate::provider::anthropic::{MessagesVariant, messages_request};
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// Parameters of other APIs than Anthropic's by which a provider would run tools.
const EXTENSIONS: [&str; 4] = ["web_search_options", "plugins", "connectors", "skills"];

/// Removes hosted tools from it, as Anthropic Messages and other APIs name them. Every other parameter stays.
///
/// # Errors
/// If the request must not go on, or can be read in two ways.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    fields: Value<'d>,
    target: &RuntimeTarget,
) -> Result<(), Denial> {
    if fields.kind() != Kind::Object {
        return Err(Denial::unparseable("additionalModelRequestFields", "it is no object"));
    }
    let variant = MessagesVariant { model: Some(&target.model), stream: target.stream, subscription: false };
    messages_request(editor, fields, &variant)?;
    for name in EXTENSIONS {
        let value = editor.get(fields, name)?.filter(|value| !value.is_null());
        if let Some(value) = value
            && editor.strips(name)?
        {
            editor.remove(value)?;
        }
    }
    Ok(())
}
