//! `mistral`: Mistral's server is strict about ids and about who speaks after whom.

use crate::call::turn::Text;
use crate::digest::sha256_hex;
use crate::provider::openai_chat::ask::draft::{Draft, Message, Part, Role};

/// The length of an id: "Tool call id must be a-z, A-Z, 0-9, with a length of 9".
const DIGITS: usize = 9;

// The request.

/// Renames the calls, joins what one side says in a row, and takes out what the server answers with 422 "Extra inputs
/// are not permitted": `stream_options` (it tells the usage unasked) and what `reasoning` added.
pub(super) fn request(draft: &mut Draft<'_>) {
    draft.asks_for_usage = false;
    draft.forget_reasoning();
    let mut joined: Vec<Message<'_>> = Vec::with_capacity(draft.messages.len());
    for mut message in draft.messages.drain(..).filter(|message| !message.is_void()) {
        rename(&mut message);
        match joined.last_mut().filter(|last| joins(last, &message)) {
            Some(last) => {
                last.parts.append(&mut message.parts);
                last.calls.append(&mut message.calls);
                last.thinking.append(&mut message.thinking);
            }
            None => joined.push(message),
        }
    }
    draft.messages = joined;
}

/// Whether a message becomes a part of the one before it. A user may not speak right behind results.
fn joins(last: &Message<'_>, next: &Message<'_>) -> bool {
    match (last.role, next.role) {
        (Role::System, Role::System) | (Role::User, Role::User) | (Role::Tool, Role::User) => true,
        (Role::Assistant, Role::Assistant) => last.calls.is_empty(),
        (Role::System | Role::User | Role::Assistant | Role::Tool, _) => false,
    }
}

fn rename(message: &mut Message<'_>) {
    let parts = message.parts.iter_mut().filter_map(|part| match part {
        Part::ResultOf(call) => Some(call),
        Part::Text { .. } | Part::Image(_) | Part::File(_) => None,
    });
    let calls = message.calls.iter_mut().map(|call| &mut call.id);
    parts.chain(calls).chain(&mut message.call).for_each(|id| *id = renamed(id));
}

fn renamed(id: &Text<'_>) -> Text<'static> {
    let mut digits = sha256_hex(id.decoded().as_bytes());
    digits.truncate(DIGITS);
    Text::plain(&digits)
}
