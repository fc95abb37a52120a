//! Has one model answer what was asked of another: translations between dialects, and what is edited where none is
//! needed. Pure.

pub mod estimate;
mod moved;
#[cfg(test)]
mod moved_tests;

pub use super::anthropic::marker::{Marked, marked};
pub use super::anthropic::moved::{MessagesServer, has_own_thinking, moved_messages};
pub use super::anthropic::prompt::prompt;
pub use super::openai_chat::ask::{ChatRequest, ChatTerms, EffortTerms, Images, SentNames, ask};
pub use super::openai_chat::moved::moved_chat;
pub use super::openai_chat::transform::{EXIT_TOOL, Transform, Transforms, UnknownTransform};
pub use super::openai_responses::moved::moved_responses;
pub use moved::{MovedBody, MovedTerms};

pub(in crate::provider) use moved::{Moving, exceeds, unsayable};
