//! Reads a request: what it says of itself, what is kept at the provider, and every door to what the provider runs.

use super::{messages, tools};
use crate::call::Denial;
use crate::provider::adapter::Asked;
use crate::provider::compatible;
use crate::provider::request::Draft;
use crate::wire::json::Value;

/// Reads a request, asks policy about it and makes its edits.
///
/// # Errors
/// Where it must not go on, or can be read in more than one way.
pub(super) fn read(asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<(), Denial> {
    // Nothing in such a request needs a key twice, and which of the two counts differs from server to server.
    if let Some(duplicate) = draft.document().first_duplicate() {
        return Err(Denial::unparseable("", duplicate));
    }
    let vendor = asked.service.vendor;
    draft.facts.models.extend(deployment(asked.path));
    draft.facts.stream = is_true(draft, "stream")?;
    keep_nothing(draft)?;
    compatible::close_doors(draft, vendor)?;
    compatible::models(draft, vendor)?;
    tools::read(draft)?;
    messages::check(draft)
}

/// Azure's deployment, which stands for a model: the body's `model` is not read there.
fn deployment(path: &str) -> Option<String> {
    let mut segments = path.split('/').skip_while(|segment| *segment != "deployments").skip(1);
    segments.next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn is_true(draft: &Draft<'_>, key: &str) -> Result<bool, Denial> {
    Ok(draft.get(draft.root(), key)?.and_then(Value::as_bool) == Some(true))
}

/// `store: true` keeps the conversation at the provider; absent it is not kept. `metadata` belongs to what is kept,
/// and OpenAI refuses the one without the other.
fn keep_nothing(draft: &mut Draft<'_>) -> Result<(), Denial> {
    let root = draft.root();
    let stored = draft.get(root, "store")?.filter(|value| !value.is_null() && value.as_bool() != Some(false));
    let Some(stored) = stored else { return Ok(()) };
    if draft.may_keep_state() {
        return draft.keeps_state("store");
    }
    draft.replace(stored, "false")?;
    draft.changed("store: false");
    if let Some(metadata) = draft.get(root, "metadata")?.filter(|value| !value.is_null()) {
        draft.remove(metadata)?;
        draft.changed("metadata: removed");
    }
    Ok(())
}
