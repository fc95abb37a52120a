//! One turn between an agent and a model in no vendor's dialect: plain data over raw JSON.

mod failure;
mod reason;
pub mod said;

pub use failure::{AnswerFailure, ContextNumbers, FailureClass, MOST_RETRY_AFTER, UnknownClass};
pub use reason::clean_reason;
