//! Why a model gave no answer, as plain data: the words of a route's `on`, of events and of metrics.

use serde::{Deserialize, Serialize};

/// The class of a failed attempt at a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum FailureClass {
    /// The name, the connection, TLS, or a denied address.
    Connect,
    /// No head or first piece in time; 408 and 504.
    Timeout,
    /// 429.
    RateLimited,
    /// 402, or an error that says that nothing is left to spend.
    Quota,
    /// Any other 5xx, or an error before the first block.
    Unavailable,
    /// The request cannot be said in the model's dialect, or its answer cannot be read.
    Translate,
    /// The conversation is too long for the model.
    ContextLength,
    /// Any other 4xx, and 3xx.
    Rejected,
}

impl FailureClass {
    /// Every class, in order.
    pub const ALL: [Self; 8] = [
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

    /// Whether the next model of a chain is asked where the route does not write `on`. What is wrong with the request
    /// itself is wrong at the next model, too.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_written_as_it_is_read() {
        for class in FailureClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
            assert_eq!(serde_json::from_value::<FailureClass>(class.as_str().into()).unwrap(), class);
        }
        assert_eq!(FailureClass::ALL.into_iter().filter(|class| class.falls_through()).count(), 6);
    }
}
