//! `forcereasoning`: a model that does not reason by itself is asked to think in tags, and what stands in them is thinking.

use super::tag::Tag;
use crate::call::turn::Text;
use crate::provider::openai_chat::ask::draft::{Draft, Message, Part, Role};

/// What the model is told, behind the last text of the user.
const PROMPT: &str = "Think first, inside <reasoning_content></reasoning_content>. Then answer.";

/// How many turns of the model keep their thinking.
const TURNS: usize = 10;

// The request.

/// Asks for thinking, and shows the model its earlier thinking in the same tags.
pub(super) fn request(draft: &mut Draft<'_>) {
    let turns = draft.messages.iter_mut().rev().filter(|message| message.role == Role::Assistant);
    turns.take(TURNS).for_each(show_thinking);
    let is_speech = |message: &&mut Message<'_>| message.role != Role::System;
    let last = draft.messages.iter_mut().rev().find(is_speech);
    match last.filter(|message| message.role == Role::User) {
        Some(message) => prompt(&mut message.parts),
        None => draft.messages.push(Message::new(Role::User, vec![Part::fixed(PROMPT)])),
    }
}

/// Puts the prompt behind the last text, as a paragraph of its own.
fn prompt(parts: &mut Vec<Part<'_>>) {
    let last = parts.iter_mut().rev().find_map(|part| match part {
        Part::Text { text, .. } => Some(text),
        Part::ResultOf(_) | Part::Image(_) | Part::File(_) => None,
    });
    match last {
        Some(text) => *text = Text::joined(&[text.escaped(), "\\n\\n", PROMPT]),
        None => parts.push(Part::fixed(PROMPT)),
    }
}

fn show_thinking(message: &mut Message<'_>) {
    let mut shown = String::new();
    for past in message.thinking.iter_mut().filter(|past| past.thinking.signer().is_some()) {
        past.in_text = true;
        shown.push_str(past.thinking.text.escaped());
    }
    if !shown.is_empty() {
        let text = Text::joined(&["<reasoning_content>", &shown, "</reasoning_content>"]);
        message.parts.insert(0, Part::text(text));
    }
}

// The side of answers.

/// The tags that the request asks for.
pub(in crate::provider::openai_chat) const REASONING: Tag =
    Tag { open: "<reasoning_content>", close: "</reasoning_content>" };
