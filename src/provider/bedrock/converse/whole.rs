//! Reads an answer of Converse that came whole.

use std::collections::BTreeSet;

use crate::provider::answer::member::{present, text};
use crate::provider::answer::{Broken, Fate, Form, Gate};
use crate::wire::json::{Document, EditError, Edits, Value};

/// What was found in the blocks of an answer.
#[derive(Default)]
struct Found {
    /// Whether the agent gets a call.
    calls: bool,
    denied: bool,
    /// Ids of hosted calls that are gone, whose results go with them.
    results: BTreeSet<String>,
}

/// Asks about every call, and answers the edited body; none where nothing is denied.
pub(super) fn read(body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, Broken> {
    let root = body.root();
    let Some(output) = present(root, "output")? else { return Ok(None) };
    let Some(message) = present(output, "message")? else { return Ok(None) };
    let Some(content) = present(message, "content")? else { return Ok(None) };
    let mut edits = Edits::new(body);
    let mut found = Found::default();
    for block in content.items().into_iter().flatten() {
        if let Some(duplicate) = block.duplicate() {
            return Err(Broken::ambiguous(format!("a block of the answer: {duplicate}")));
        }
        found.block(block, gate, &mut edits)?;
    }
    if found.denied && !found.calls {
        let reason = present(root, "stopReason")?.filter(|reason| reason.says("tool_use"));
        reason.map_or(Ok(()), |reason| edits.replace(reason, "\"end_turn\"")).map_err(unedited)?;
    }
    Ok((!edits.is_empty()).then(|| edits.apply()))
}

impl Found {
    fn block<'d>(&mut self, block: Value<'d>, gate: &mut Gate, edits: &mut Edits<'d>) -> Result<(), Broken> {
        if let Some(result) = present(block, "toolResult")? {
            let id = text(result, "toolUseId")?.unwrap_or_default();
            return if self.results.contains(&*id) { edits.remove(block).map_err(unedited) } else { Ok(()) };
        }
        let Some(call) = present(block, "toolUse")? else { return Ok(()) };
        if block.entries().into_iter().flatten().filter(|entry| !entry.value.is_null()).count() > 1 {
            return Err(Broken::ambiguous("a call of a tool is something else too"));
        }
        let name = text(call, "name")?.ok_or_else(|| Broken::ambiguous("a call of a tool has no name"))?;
        let id = text(call, "toolUseId")?.unwrap_or_default();
        let input = (Form::Json, present(call, "input")?.map_or("{}", Value::raw));
        let is_hosted = text(call, "type")?.is_some_and(|kind| kind == "server_tool_use");
        let fate =
            if is_hosted { gate.hosted(&id, &name, input) } else { gate.whole(&id, &name, None, input) };
        match fate {
            Fate::Passes => self.calls |= !is_hosted,
            Fate::Denied(said) => {
                self.denied = true;
                let text = serde_json::Value::from(said);
                edits.replace(block, format!(r#"{{"text":{text}}}"#)).map_err(unedited)?;
                if is_hosted {
                    self.results.insert(id.into_owned());
                }
            }
        }
        Ok(())
    }
}

/// An edit of our own that is not taken: the answer is not what it was read as.
fn unedited(error: EditError) -> Broken {
    Broken::ambiguous(error.to_string())
}
