//! Files that a request has by their URI: the provider fetches them, unless it keeps them itself.

use crate::call::Denial;
use crate::provider::gemini::fields::{MessageFields, camel};
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// Asks about URIs that the provider would fetch: of the web, of YouTube, of Cloud Storage.
///
/// A file of the Files API (`https://generativelanguage.googleapis.com/v1beta/files/ID`) is one that was uploaded to
/// the provider before: to name it fetches nothing and tells nobody anything, and the endpoints by which files come
/// and go have rules of their own. It passes.
///
/// # Errors
/// If policy does not allow it.
pub(super) fn ask<'d>(editor: &mut RequestEditor<'d>, message: &MessageFields<'d>) -> Result<(), Denial> {
    let places = ["contents", "systemInstruction", "instances"];
    if places.iter().filter_map(|name| message.at(name)).any(fetches) {
        editor.fetches("fileData.fileUri")?;
    }
    Ok(())
}

/// Whether a URI stands anywhere in this value that the provider would fetch. What the model or a tool wrote as
/// free-form arguments and results is no field of the API.
fn fetches(value: Value<'_>) -> bool {
    if let Some(mut items) = value.items() {
        return items.any(fetches);
    }
    value.entries().into_iter().flatten().any(|entry| {
        let name = entry.key.text().map(camel).unwrap_or_default();
        match &*name {
            "fileUri" => !entry.value.is_null() && !is_kept(entry.value),
            "args" | "response" => false,
            _ => fetches(entry.value),
        }
    })
}

/// Whether a URI is exactly that of a file of the Files API.
fn is_kept(uri: Value<'_>) -> bool {
    let uri = uri.text().unwrap_or_default();
    let id = uri
        .strip_prefix("https://generativelanguage.googleapis.com/")
        .and_then(|path| ["v1/", "v1beta/", "v1alpha/"].iter().find_map(|version| path.strip_prefix(version)))
        .and_then(|path| path.strip_prefix("files/"));
    id.is_some_and(|id| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    })
}
