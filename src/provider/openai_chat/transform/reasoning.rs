//! `reasoning`: what a server sends as the model's reasoning is thinking, and it takes back, in `reasoning_content`, what the
//! model thought before its calls.

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

// The side of answers.

/// The keys of a delta or a message under which servers send reasoning as a text, the first one first: DeepSeek, Moonshot,
/// GLM and vLLM's older versions write `reasoning_content`, OpenRouter, Groq and vLLM `reasoning`. Where both are there,
/// they say the same.
pub(in crate::provider::openai_chat) const TEXT_KEYS: [&str; 2] = ["reasoning_content", "reasoning"];
