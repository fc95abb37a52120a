//! Why a model gave no answer, or broke one off: the class that decides about the next model, and what people read.

use std::str::FromStr;

use super::reason::clean_reason;

/// The most seconds that an agent is told to wait: one hour.
pub const MOST_RETRY_AFTER: u64 = 3600;

/// What kept a model from answering; the words of a route's `on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// The name, the dial, TLS, a denied address, a missing key.
    Connect,
    /// No head or no first piece in time; statuses 408 and 504.
    Timeout,
    /// Status 429.
    RateLimited,
    /// Status 402, and 4xx that speak of an exhausted quota.
    Quota,
    /// Other 5xx, and an error before the first block.
    Unavailable,
    /// The request cannot be said in the model's dialect, or the answer cannot be read.
    Translate,
    /// The conversation is longer than the model's context.
    ContextLength,
    /// Other 4xx, and 3xx.
    Rejected,
}

impl FailureClass {
    /// Every class, in order.
    pub const ALL: &'static [Self] = &[
        Self::Connect,
        Self::Timeout,
        Self::RateLimited,
        Self::Quota,
        Self::Unavailable,
        Self::Translate,
        Self::ContextLength,
        Self::Rejected,
    ];

    /// The word in policies, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "Connect",
            Self::Timeout => "Timeout",
            Self::RateLimited => "RateLimited",
            Self::Quota => "Quota",
            Self::Unavailable => "Unavailable",
            Self::Translate => "Translate",
            Self::ContextLength => "ContextLength",
            Self::Rejected => "Rejected",
        }
    }

    /// Whether the next model is tried where a route does not say.
    pub fn falls_through(self) -> bool {
        match self {
            Self::Connect
            | Self::Timeout
            | Self::RateLimited
            | Self::Quota
            | Self::Unavailable
            | Self::Translate => true,
            Self::ContextLength | Self::Rejected => false,
        }
    }

    /// Whether the same request may be answered later.
    pub fn retry_may_help(self) -> bool {
        match self {
            Self::Connect | Self::Timeout | Self::RateLimited | Self::Unavailable => true,
            Self::Quota | Self::Translate | Self::ContextLength | Self::Rejected => false,
        }
    }
}

/// The word is none of [`FailureClass::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no class of failure has this name")]
pub struct UnknownClass;

impl FromStr for FailureClass {
    type Err = UnknownClass;

    fn from_str(word: &str) -> Result<Self, UnknownClass> {
        Self::ALL.iter().copied().find(|class| class.as_str() == word).ok_or(UnknownClass)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_by_its_word() {
        for class in FailureClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(*class));
        }
        assert_eq!("connect".parse::<FailureClass>(), Err(UnknownClass));
    }

    #[test]
    fn a_request_that_is_too_long_or_refused_is_not_given_to_the_next_model() {
        let stays: Vec<_> = FailureClass::ALL.iter().filter(|class| !class.falls_through()).collect();
        assert_eq!(stays, [&FailureClass::ContextLength, &FailureClass::Rejected]);
    }
}
