//! `groq`: Groq's server takes no `$schema` in schemas, which `schema` sees to, and tells usage and errors in an object of its own.

use crate::provider::openai_chat::ask::draft::Draft;
use crate::wire::json::Value;

// The request.

/// Takes back what `reasoning` added: the server answers 400 "property 'reasoning_content' is unsupported".
pub(super) fn request(draft: &mut Draft<'_>) {
    draft.forget_reasoning();
}

// The side of answers.

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
