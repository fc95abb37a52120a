//! `forcereasoning`: models without reasoning of their own are asked to write it into their text, between tags.

// The side of answers.

use super::tag::Tag;

/// The tags that the request asks for.
pub(in crate::provider::openai_chat) const REASONING: Tag =
    Tag { open: "<reasoning_content>", close: "</reasoning_content>" };
