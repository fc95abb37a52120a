//! Why a model gave no answer, or broke one off: the class that decides about the next model, and what people read.

use super::reason::clean_reason;
use crate::call::FailureClass;

/// The most seconds that an agent is told to wait: one hour.
pub const MOST_RETRY_AFTER: u64 = 3600;

/// A failure of one model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", class.as_str())]
pub struct AnswerFailure {
    pub class: FailureClass,
    /// One line of at most 512 characters without keys, fit for the agent's eyes.
    pub message: String,
    /// The status of the model's server, where that makes the class.
    pub status: Option<u16>,
    /// In how many seconds the model's server wants to be asked again; at most [`MOST_RETRY_AFTER`].
    pub retry_after: Option<u64>,
    /// Of [`FailureClass::ContextLength`], if the numbers are known.
    pub context: Option<ContextNumbers>,
    /// Of [`FailureClass::Translate`]: it is the request that cannot be said, and not the answer that cannot be read.
    pub is_of_request: bool,
}

/// By how much a request is too long for a model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextNumbers {
    /// The tokens of the conversation.
    pub prompt: u64,
    /// The tokens that the answer may have, if the conversation alone would fit.
    pub output: Option<u64>,
    /// What the model takes.
    pub maximum: u64,
}

impl AnswerFailure {
    /// A failure with this message, of which line ends, keys and what is too long are taken out.
    pub fn new(class: FailureClass, message: &str) -> Self {
        let message = clean_reason(message);
        Self { class, message, status: None, retry_after: None, context: None, is_of_request: false }
    }

    /// The answer cannot be read.
    pub fn unreadable(message: &str) -> Self {
        Self::new(FailureClass::Translate, message)
    }

    /// The request cannot be said in the model's dialect.
    pub fn unsayable(message: &str) -> Self {
        Self { is_of_request: true, ..Self::new(FailureClass::Translate, message) }
    }

    /// Whether the same request may be answered later.
    pub fn retry_may_help(&self) -> bool {
        self.class.retry_may_help()
    }

    /// What the agent reads as the class: `HTTP_500` where a status makes it, else the class's word.
    pub fn class_word(&self) -> String {
        self.status.map_or_else(|| self.class.as_str().to_owned(), |status| format!("HTTP_{status}"))
    }
}
