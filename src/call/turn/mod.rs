//! A turn between an agent and a model in no vendor's words: plain data over raw JSON.
//!
//! The agent's dialect reads its request into a [`prompt::Prompt`], and the model's dialect writes that. The model's dialect
//! tells its answer in [`said::Said`], and the agent's writes those.

mod failure;
mod notes;
pub mod prompt;
mod reason;
pub mod said;
mod text;

pub use failure::{AnswerFailure, ContextNumbers, MOST_RETRY_AFTER};
pub use notes::Notes;
pub use reason::clean_reason;
pub use text::{Text, escape};
