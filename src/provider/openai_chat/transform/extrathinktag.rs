//! `extrathinktag`: models write their reasoning into their text, between tags.

// The side of answers.

use super::tag::Tag;

/// The tags of DeepSeek's and Qwen's templates, which servers without a parser of reasoning leave in the text.
pub(in crate::provider::openai_chat) const THINK: Tag = Tag { open: "<think>", close: "</think>" };
