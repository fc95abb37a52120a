//! What is reported of an event: that something was denied, or would have been, or that something was found in it.

use crate::dlp::Confidence;
use crate::event::{Event, Finding, Kind};

/// Why an event is reported; the first weighs most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reported {
    /// It was stopped.
    Denied,
    /// It went on: the rule's policy is in Audit.
    WouldDeny,
    /// Something in it was replaced before it went on.
    Replaced,
    /// Something in it was found, and it went on as it was.
    Noted,
}

impl Reported {
    /// The denial that an event tells; none of one that denies nothing, and of the gateway's own events.
    pub(super) fn denial(event: &Event) -> Option<Self> {
        if event.kind == Kind::Lifecycle {
            return None;
        }
        if event.decision.denies() {
            Some(Self::Denied)
        } else {
            event.decision.would_deny().then_some(Self::WouldDeny)
        }
    }

    /// What an event that denies nothing found, each detector once.
    pub(super) fn findings(event: &Event) -> Vec<(&Finding, Self)> {
        let mut all: Vec<(&Finding, Self)> = Vec::new();
        for finding in event.dlp.iter().filter(|finding| finding.confidence != Confidence::Low.as_str()) {
            let reported = if finding.action == "Redact" { Self::Replaced } else { Self::Noted };
            match all.iter_mut().find(|(known, _)| known.detector == finding.detector) {
                Some(known) if reported == Self::Replaced => *known = (finding, reported),
                Some(_) => {}
                None => all.push((finding, reported)),
            }
        }
        all
    }

    /// The level of its result (SARIF 3.27.10).
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Denied => "error",
            Self::WouldDeny | Self::Replaced => "warning",
            Self::Noted => "note",
        }
    }

    /// How a message calls it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Denied => "was denied by",
            Self::WouldDeny => "would have been denied by",
            Self::Replaced => "went on without what was found by",
            Self::Noted => "went on with what was found by",
        }
    }
}
