//! `reasoning`: the model's server takes back what the model thought before its calls, in `reasoning_content`.

use crate::call::turn::Text;
use crate::provider::openai_chat::ask::draft::{Draft, Role};

// The request.

/// Gives each message with calls the thinking that this model had in it. A server of DeepSeek, Kimi or GLM refuses calls
/// without the field, so it is empty where the thinking was another model's:
/// <https://api-docs.deepseek.com/guides/thinking_mode>
pub(super) fn request(draft: &mut Draft<'_>, label: &str) {
    let messages = draft.messages.iter_mut();
    for message in messages.filter(|message| message.role == Role::Assistant && !message.calls.is_empty()) {
        let mut reasoning = Text::fixed("");
        for past in message.thinking.iter_mut().filter(|past| past.thinking.signer() == Some(label)) {
            past.in_reasoning = true;
            let text = &past.thinking.text;
            let joined = || Text::joined(&[reasoning.escaped(), text.escaped()]);
            reasoning = if reasoning.is_empty() { text.clone() } else { joined() };
        }
        message.reasoning = Some(reasoning);
    }
}
