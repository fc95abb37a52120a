//! What is reported of an event: that something was denied, or would have been.

use crate::event::{Event, Kind};

/// A denial, and whether it was enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// It was stopped.
    Enforced,
    /// It went on: the rule's policy is in Audit.
    Recorded,
}

impl Denial {
    /// None of an event that denies nothing, and of the gateway's own events.
    pub(super) fn of(event: &Event) -> Option<Self> {
        if event.kind == Kind::Lifecycle {
            return None;
        }
        if event.decision.denies() {
            Some(Self::Enforced)
        } else {
            event.decision.would_deny().then_some(Self::Recorded)
        }
    }

    /// The level of its result (SARIF 3.27.10).
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Enforced => "error",
            Self::Recorded => "warning",
        }
    }

    /// How a message calls it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Enforced => "was denied by",
            Self::Recorded => "would have been denied by",
        }
    }
}
