//! Remembers the texts that could not be kept: a text that was sent uncut once is sent uncut from then on. Pure.

use std::collections::{HashMap, VecDeque};

use foldhash::quality::RandomState;

use super::NotKept;
use crate::tool_output::evidence_id::EvidenceId;

/// How many are remembered; then the oldest is forgotten.
const MOST: usize = 65_536;

/// The texts, each with the reason.
#[derive(Debug, Default)]
pub(super) struct Refused {
    reasons: HashMap<EvidenceId, NotKept, RandomState>,
    order: VecDeque<EvidenceId>,
}

impl Refused {
    pub(super) fn reason(&self, id: EvidenceId) -> Option<NotKept> {
        self.reasons.get(&id).copied()
    }

    /// Remembers a text; the first reason stays.
    pub(super) fn add(&mut self, id: EvidenceId, reason: NotKept) {
        if self.reasons.contains_key(&id) {
            return;
        }
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.reasons.remove(&oldest);
        }
        self.order.push_back(id);
        self.reasons.insert(id, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_the_oldest_text_is_forgotten_first() {
        let id = |n: usize| EvidenceId::of(&n.to_string());
        let mut refused = Refused::default();
        refused.add(id(0), NotKept::Full);
        refused.add(id(0), NotKept::TooLarge);
        assert_eq!(refused.reason(id(0)), Some(NotKept::Full));
        (1..=MOST).for_each(|n| refused.add(id(n), NotKept::Full));
        assert_eq!((refused.reason(id(0)), refused.reason(id(1))), (None, Some(NotKept::Full)));
        assert_eq!(refused.order.len(), refused.reasons.len());
    }
}
