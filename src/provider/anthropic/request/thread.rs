//! Threads: conversations of Anthropic Messages that are kept at the provider.

use super::{MessagesVariant, distinct};
use crate::call::{Denial, DenialForm};
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;

/// From this the official SDKs and Claude Code fall back to sending the whole conversation, and stay with that.
const UNSUPPORTED: DenialForm = DenialForm::Recoverable { status: 400, code: "thread_unsupported_request" };

/// Reads `thread`. Where state may not be kept, one that would begin is taken out, and one that goes on is refused, in
/// the way from which clients recover. Returns whether the provider has more of the conversation than the request.
///
/// # Errors
/// If a thread continues that may not, or the body cannot be understood.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    variant: &MessagesVariant<'_>,
) -> Result<bool, Denial> {
    let Some(thread) = editor.get(body, "thread")?.filter(|thread| !thread.is_null()) else {
        return Ok(false);
    };
    distinct(thread, "thread")?;
    let Some(kind) = editor.get(thread, "type")? else {
        return Err(Denial::unparseable("thread", "it has no type"));
    };
    let begins = kind.says("create") && editor.get(thread, "previous_message_id")?.is_none();
    if editor.may_keep_state() || !begins {
        editor.keeps_state("thread").map_err(|denial| denial.answered(UNSUPPORTED))?;
        return Ok(!begins);
    }
    if variant.subscription {
        // Its body must not be edited; without the thread it need not be.
        editor.keeps_state("thread").map_err(|denial| denial.answered(UNSUPPORTED))?;
    }
    editor.remove(thread)?;
    editor.changed("thread");
    Ok(false)
}
