//! `additionalModelRequestFields` of Converse: fields of the model's own API, which AWS hands on unread.

use super::operation::Target;
use crate::call::Denial;
use crate::provider::anthropic::{Door, messages_request};
use crate::provider::request::Draft;
use crate::wire::json::{Kind, Value};

/// What other APIs than Anthropic's call the doors to what a provider would run.
const DOORS: [&str; 4] = ["web_search_options", "plugins", "connectors", "skills"];

/// Closes the doors of Anthropic Messages in it, `tools` among them, and those of other APIs. What is no door stays.
///
/// # Errors
/// Where the request must not go on, or can be read in two ways.
pub(super) fn read<'d>(draft: &mut Draft<'d>, fields: Value<'d>, target: &Target) -> Result<(), Denial> {
    if fields.kind() != Kind::Object {
        return Err(Denial::unparseable("additionalModelRequestFields", "it is no object"));
    }
    let door = Door { model: Some(&target.model), stream: target.stream, subscription: false };
    messages_request(draft, fields, &door)?;
    for name in DOORS {
        let value = draft.get(fields, name)?.filter(|value| !value.is_null());
        if let Some(value) = value
            && draft.strips(name)?
        {
            draft.remove(value)?;
        }
    }
    Ok(())
}
