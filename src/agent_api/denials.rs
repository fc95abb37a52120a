//! The last denials of this gateway, each with what an agent may know of it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::short;
use crate::decision::Decision;
use crate::event::{Id, Kind};

/// How many are kept.
const MOST: usize = 256;

/// The longest reason that is kept, in characters.
const REASON: usize = 1_024;

/// How many parameters of a rule are named.
const PARAMETERS: usize = 16;

/// One denial: nothing of what the agent sent, and of the rule no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    event: Id,
    kind: Kind,
    verdict: &'static str,
    rule: String,
    reason: String,
    /// The parameters of a tool call that the rule reads; none where it reads none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<String>,
}

impl Denial {
    pub fn new(event: Id, kind: Kind, decision: &Decision, mut parameters: Vec<String>) -> Self {
        parameters.truncate(PARAMETERS);
        Self {
            event,
            kind,
            verdict: decision.verdict.as_str(),
            rule: decision.rule_id().to_owned(),
            reason: short(decision.why(), REASON).into_owned(),
            parameters,
        }
    }
}

/// The last denials, the oldest first.
#[derive(Debug, Default)]
pub struct Denials(Mutex<VecDeque<Denial>>);

impl Denials {
    /// Keeps a denial in the place of the oldest.
    pub fn keep(&self, denial: Denial) {
        let mut kept = self.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(denial);
    }

    /// The denial with the id of an event.
    pub fn find(&self, event: Id) -> Option<Denial> {
        self.lock().iter().rev().find(|denial| denial.event == event).cloned()
    }

    /// A poisoned lock is ignored: the list is consistent after each step.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Denial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::fresh_id;

    fn denial(id: Id, reason: String) -> Denial {
        Denial::new(id, Kind::ToolCall, &Decision::builtin("bound", reason), vec![String::new(); 100])
    }

    #[test]
    fn the_last_256_are_kept_and_older_ones_are_forgotten() {
        let (denials, ids) = (Denials::default(), (0..300).map(|_| fresh_id()).collect::<Vec<_>>());
        ids.iter().for_each(|id| denials.keep(denial(*id, String::new())));
        let kept = ids.iter().filter(|id| denials.find(**id).is_some()).count();
        assert_eq!(kept, MOST);
        assert!(denials.find(ids[43]).is_none() && denials.find(ids[44]).is_some());
    }

    #[test]
    fn one_denial_takes_a_bounded_room() {
        let kept = denial(fresh_id(), "\u{1f980}".repeat(1 << 20));
        assert_eq!((kept.reason.chars().count(), kept.parameters.len()), (REASON + 1, PARAMETERS));
    }
}
