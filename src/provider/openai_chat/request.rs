//! Reads a request: what it says of itself, what is kept at the provider, and everything by which the provider runs tools.

use super::{messages, tools};
use crate::call::Denial;
use crate::provider::adapter::ModelRequestHead;
use crate::provider::compatible;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// Reads a request, asks policy about it and makes its edits.
///
/// # Errors
/// If it must not go on, or can be read in more than one way.
pub(super) fn read(head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    // Nothing in such a request needs a key twice, and which of the two counts differs from server to server.
    if let Some(duplicate) = editor.document().first_duplicate() {
        return Err(Denial::unparseable("", duplicate));
    }
    let vendor = head.service.vendor;
    editor.facts.models.extend(deployment(head.path));
    editor.facts.stream = is_true(editor, "stream")?;
    for key in ["max_completion_tokens", "max_tokens"] {
        let most = editor.get(editor.root(), key)?;
        editor.bounds_tokens(most);
    }
    keep_nothing(editor)?;
    compatible::close_extensions(editor, vendor)?;
    compatible::models(editor, vendor)?;
    tools::read(editor)?;
    messages::check(editor)
}

/// Azure's deployment, which stands for a model: the body's `model` is not read there.
fn deployment(path: &str) -> Option<String> {
    let mut segments = path.split('/').skip_while(|segment| *segment != "deployments").skip(1);
    segments.next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn is_true(editor: &RequestEditor<'_>, key: &str) -> Result<bool, Denial> {
    Ok(editor.get(editor.root(), key)?.and_then(Value::as_bool) == Some(true))
}

/// `store: true` keeps the conversation at the provider; absent it is not kept. `metadata` belongs to what is kept,
/// and OpenAI refuses the one without the other.
fn keep_nothing(editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    let root = editor.root();
    let stored =
        editor.get(root, "store")?.filter(|value| !value.is_null() && value.as_bool() != Some(false));
    let Some(stored) = stored else { return Ok(()) };
    if editor.may_keep_state() {
        return editor.keeps_state("store");
    }
    editor.replace(stored, "false")?;
    editor.changed("store: false");
    if let Some(metadata) = editor.get(root, "metadata")?.filter(|value| !value.is_null()) {
        editor.remove(metadata)?;
        editor.changed("metadata: removed");
    }
    Ok(())
}
