//! Knows the sentences in which servers refuse a message of the role `system` in the middle of a conversation, as Claude
//! Code writes them: the templates of many models take one at the beginning alone.

/// The sentences, in lower case.
const SENTENCES: [&str; 3] = [
    // Qwen 3.5 and later, by vLLM with 400 and by llama.cpp with 500: <https://github.com/vllm-project/vllm/issues/41114>
    "system message must be at the beginning",
    // The templates of Gemma and Mistral: <https://github.com/vllm-project/vllm/issues/6862>
    "roles must alternate",
    // Mistral's own server.
    "unexpected role 'system'",
];

/// Claude Code sends the request again without such messages, once, if an error has the words `role "system"` and
/// `not supported`; it has none of them for the rest of its session.
pub(super) const ADVICE: &str = "role \"system\" is not supported behind the first message";

/// Whether an error with this message refuses the role.
pub(super) fn is_refused(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    SENTENCES.iter().any(|sentence| message.contains(sentence))
}
