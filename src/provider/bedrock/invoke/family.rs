//! Which vendor's API the body of InvokeModel speaks, by the model's name and by what is in the body.

use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InvokeFamily {
    /// Anthropic Messages.
    Anthropic,
    /// Converse without its frame.
    Nova,
    /// Chat Completions, or one of which no tools are known.
    Other,
}

/// Keys that may carry tools in one API or another, with the family in which each is read.
const CARRIERS: [(&str, Option<InvokeFamily>); 8] = [
    ("toolConfig", Some(InvokeFamily::Nova)),
    ("mcp_servers", Some(InvokeFamily::Anthropic)),
    ("container", Some(InvokeFamily::Anthropic)),
    ("tools", None),
    ("tool_config", Some(InvokeFamily::Other)),
    ("functions", Some(InvokeFamily::Other)),
    ("connectors", Some(InvokeFamily::Other)),
    ("web_search_options", Some(InvokeFamily::Other)),
];

impl InvokeFamily {
    /// The family of a model, by its name where that tells, else by the body: an ARN may hide the name.
    pub(super) fn of<'d>(editor: &RequestEditor<'d>, model: &str, body: Value<'d>) -> Result<Self, Denial> {
        let mut words = model.split(['.', '/', ':']);
        while let Some(word) = words.next() {
            if word == "anthropic" {
                return Ok(Self::Anthropic);
            }
            if word == "amazon" && words.clone().next().is_some_and(|next| next.starts_with("nova")) {
                return Ok(Self::Nova);
            }
        }
        if editor.get(body, "anthropic_version")?.is_some() {
            return Ok(Self::Anthropic);
        }
        let is_nova =
            editor.get(body, "schemaVersion")?.is_some() || editor.get(body, "toolConfig")?.is_some();
        Ok(if is_nova { Self::Nova } else { Self::Other })
    }

    /// Refuses what carries tools in an API of another family: a model whose name is hidden might take it.
    pub(super) fn check<'d>(self, editor: &RequestEditor<'d>, body: Value<'d>) -> Result<(), Denial> {
        for (key, family) in CARRIERS {
            let is_foreign = match family {
                Some(family) => family != self,
                None => self == Self::Nova,
            };
            if is_foreign && editor.get(body, key)?.is_some_and(|value| !value.is_null()) {
                return Err(Denial::unparseable(key, "models of this vendor have no such field"));
            }
        }
        Ok(())
    }
}
