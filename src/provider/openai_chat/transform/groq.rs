//! `groq`: Groq's server. It takes no `$schema` in schemas, which `schema` sees to.

use crate::provider::openai_chat::ask::draft::Draft;

// The request.

/// Takes back what `reasoning` added: the server answers 400 "property 'reasoning_content' is unsupported".
pub(super) fn request(draft: &mut Draft<'_>) {
    draft.forget_reasoning();
}
