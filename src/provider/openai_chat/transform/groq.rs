//! `groq`: usage and errors come in an object of Groq's own.

// The side of answers.

use crate::wire::json::Value;

/// The key of that object in a chunk. <https://console.groq.com/docs/api-reference#chat-create>
pub(in crate::provider::openai_chat) const KEY: &str = "x_groq";

/// What the object says.
pub(in crate::provider::openai_chat) struct GroqPart<'d> {
    /// As `usage` of a chunk.
    pub(in crate::provider::openai_chat) usage: Option<Value<'d>>,
    /// A text, or an object as `error` of a chunk.
    pub(in crate::provider::openai_chat) error: Option<Value<'d>>,
}

/// Reads the object.
pub(in crate::provider::openai_chat) fn part(own: Value<'_>) -> GroqPart<'_> {
    let of = |key: &str| own.get(key).ok().flatten().filter(|value| !value.is_null());
    GroqPart { usage: of("usage"), error: of("error") }
}
