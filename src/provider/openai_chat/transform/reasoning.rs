//! `reasoning`: what servers send as a model's reasoning is thinking.

// The side of answers.

/// The keys of a delta or a message under which servers send reasoning as a text, the first one first: DeepSeek, Moonshot,
/// GLM and vLLM's older versions write `reasoning_content`, OpenRouter, Groq and vLLM `reasoning`. Where both are there,
/// they say the same.
pub(in crate::provider::openai_chat) const TEXT_KEYS: [&str; 2] = ["reasoning_content", "reasoning"];
