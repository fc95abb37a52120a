//! Reads an answer of Converse that came whole.

use crate::provider::answer::member::{present, text};
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate, MessageCalls};
use crate::wire::json::{Document, EditError, Edits, Value};

/// Asks about every call. Returns the edited body; none if nothing is denied.
pub(super) fn read(body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
    let root = body.root();
    let Some(output) = present(root, "output")? else { return Ok(None) };
    let Some(message) = present(output, "message")? else { return Ok(None) };
    let Some(content) = present(message, "content")? else { return Ok(None) };
    let mut edits = Edits::new(body);
    let mut calls = MessageCalls::default();
    for block in content.items().into_iter().flatten() {
        if let Some(duplicate) = block.duplicate() {
            return Err(BrokenAnswer::ambiguous(format!("a block of the answer: {duplicate}")));
        }
        decide(block, &mut calls, gate, &mut edits)?;
    }
    if calls.lost_calls() {
        let reason = present(root, "stopReason")?.filter(|reason| reason.says("tool_use"));
        reason.map_or(Ok(()), |reason| edits.replace(reason, "\"end_turn\"")).map_err(unedited)?;
    }
    Ok((!edits.is_empty()).then(|| edits.apply()))
}

/// Asks about one block, and edits it.
fn decide<'d>(
    block: Value<'d>,
    calls: &mut MessageCalls,
    gate: &mut Gate,
    edits: &mut Edits<'d>,
) -> Result<(), BrokenAnswer> {
    if let Some(result) = present(block, "toolResult")? {
        let id = text(result, "toolUseId")?.unwrap_or_default();
        return if calls.is_replaced(&id) { edits.remove(block).map_err(unedited) } else { Ok(()) };
    }
    let Some(call) = present(block, "toolUse")? else { return Ok(()) };
    if block.entries().into_iter().flatten().filter(|entry| !entry.value.is_null()).count() > 1 {
        return Err(BrokenAnswer::ambiguous("a call of a tool is something else too"));
    }
    let name = text(call, "name")?.ok_or_else(|| BrokenAnswer::ambiguous("a call of a tool has no name"))?;
    let id = text(call, "toolUseId")?.unwrap_or_default();
    let input = present(call, "input")?.map_or("{}", Value::raw);
    let is_hosted = text(call, "type")?.is_some_and(|kind| kind == "server_tool_use");
    let fate = gate.whole(&CallHead { is_hosted, ..CallHead::new(&id, &name) }, input);
    calls.count(is_hosted, fate != CallOutcome::Passes);
    let CallOutcome::Denied(text) = fate else { return Ok(()) };
    if is_hosted {
        calls.remove_result_of(id);
    }
    let text = serde_json::Value::from(text);
    edits.replace(block, format!(r#"{{"text":{text}}}"#)).map_err(unedited)
}

/// An edit failed: the answer is not what it was read as.
fn unedited(error: EditError) -> BrokenAnswer {
    BrokenAnswer::ambiguous(error.to_string())
}
