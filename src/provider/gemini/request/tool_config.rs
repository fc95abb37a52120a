//! `toolConfig` of a request from which tools were taken out: what is about those goes with them.

use super::fields;
use super::tools::OfferedFunctions;
use crate::call::Denial;
use crate::provider::gemini::fields::{MessageFields, repeated};
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// The provider's tools that `retrievalConfig` is about.
const RETRIEVING: &[&str] = &["googleMaps", "googleSearch", "googleSearchRetrieval", "retrieval"];

/// Corrects `toolConfig`: without declarations the provider refuses a `functionCallingConfig` ("Function calling
/// config is set without function_declarations"), and names in it that nothing declares.
///
/// # Errors
/// If what stands there has not one reading.
pub(super) fn follow<'d>(
    editor: &mut RequestEditor<'d>,
    message: &MessageFields<'d>,
    offered: &OfferedFunctions,
) -> Result<(), Denial> {
    let Some(config) = message.at("toolConfig").filter(|_| offered.stripped) else { return Ok(()) };
    let config_fields = fields(config, "toolConfig")?;
    let goes = |name: &str| match name {
        "functionCallingConfig" => offered.declared.is_empty(),
        "includeServerSideToolInvocations" => offered.hosted.is_empty(),
        "retrievalConfig" => !offered.hosted.iter().any(|hosted| RETRIEVING.contains(&hosted.as_str())),
        _ => false,
    };
    let (gone, left): (Vec<_>, Vec<_>) = config_fields.iter().partition(|field| goes(&field.name));
    if !gone.is_empty() {
        editor.changed("toolConfig");
    }
    if !gone.is_empty() && left.is_empty() {
        return editor.remove(config);
    }
    for field in gone {
        editor.remove(field.value)?;
    }
    match left.iter().find(|field| field.name == "functionCallingConfig") {
        Some(calling) if !offered.predefined => prune(editor, calling.value, offered),
        _ => Ok(()),
    }
}

/// Takes names out of `allowedFunctionNames` that nothing declares, and the list where none is left.
fn prune<'d>(
    editor: &mut RequestEditor<'d>,
    calling: Value<'d>,
    offered: &OfferedFunctions,
) -> Result<(), Denial> {
    let Some(allowed) = fields(calling, "functionCallingConfig")?.at("allowedFunctionNames") else {
        return Ok(());
    };
    let is_declared = |name: &Value<'_>| offered.declared.iter().any(|tool| name.says(&tool.name));
    let (kept, gone): (Vec<_>, Vec<_>) = repeated(allowed).partition(is_declared);
    if gone.is_empty() {
        return Ok(());
    }
    editor.changed("toolConfig");
    if kept.is_empty() {
        return editor.remove(allowed);
    }
    gone.into_iter().try_for_each(|name| editor.remove(name))
}
