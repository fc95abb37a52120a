//! Threads: conversations of Anthropic Messages that are kept at the provider.

use super::{Door, distinct};
use crate::call::{Answer, Denial};
use crate::provider::request::Draft;
use crate::wire::json::Value;

/// From this the official SDKs and Claude Code fall back to sending the whole conversation, and stay with that.
const UNSUPPORTED: Answer = Answer::Recoverable { status: 400, code: "thread_unsupported_request" };

/// Reads `thread`. Where state may not be kept, one that would begin is taken out, and one that goes on is refused, in
/// the way from which clients recover. Answers whether the provider has more of the conversation than the request.
///
/// # Errors
/// Where a thread goes on that may not, and where what is written cannot be understood.
pub(super) fn read<'d>(draft: &mut Draft<'d>, body: Value<'d>, door: &Door<'_>) -> Result<bool, Denial> {
    let Some(thread) = draft.get(body, "thread")?.filter(|thread| !thread.is_null()) else {
        return Ok(false);
    };
    distinct(thread, "thread")?;
    let Some(kind) = draft.get(thread, "type")? else {
        return Err(Denial::unparseable("thread", "it has no type"));
    };
    let begins = kind.says("create") && draft.get(thread, "previous_message_id")?.is_none();
    if draft.may_keep_state() || !begins {
        draft.keeps_state("thread").map_err(|denial| denial.answered(UNSUPPORTED))?;
        return Ok(!begins);
    }
    if door.subscription {
        // Its body must not be edited; without the thread it need not be.
        draft.keeps_state("thread").map_err(|denial| denial.answered(UNSUPPORTED))?;
    }
    draft.remove(thread)?;
    draft.changed("thread");
    Ok(false)
}
