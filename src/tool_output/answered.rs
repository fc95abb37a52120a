//! The calls of answers whose results come alone, as far as a result needs them; bounded.

use std::collections::VecDeque;

use crate::call::recent::LONGEST;
use crate::provider::request::results::KnownCall;

/// What a call takes beside its texts, about: its place in the list with the spare room of that, and its allocations.
const CALL: usize = 200;

/// Calls, the latest last; of more than `most` bytes the oldest go.
#[derive(Debug, Clone)]
pub(super) struct AnsweredCalls {
    calls: VecDeque<KnownCall>,
    bytes: usize,
    most: usize,
}

impl AnsweredCalls {
    /// None yet, and never more than so many bytes of them.
    pub(super) fn within(most: usize) -> Self {
        Self { calls: VecDeque::new(), bytes: 0, most }
    }

    /// Adds a call, in the place of an earlier one with its id. Skips one whose names no provider makes.
    pub(super) fn add(&mut self, id: &str, (name, namespace): (&str, Option<&str>), reads_evidence: bool) {
        if id.is_empty() || [id, name, namespace.unwrap_or_default()].iter().any(|text| text.len() > LONGEST)
        {
            return;
        }
        if let Some(place) = self.calls.iter().position(|call| call.id == id) {
            self.forget(place);
        }
        let (id, name, namespace) = (id.to_owned(), name.to_owned(), namespace.map(str::to_owned));
        let call = KnownCall { id, name, namespace, reads_evidence };
        self.bytes += bytes(&call);
        self.calls.push_back(call);
        while self.bytes > self.most {
            self.forget(0);
        }
    }

    /// The calls, the oldest first.
    pub(super) fn to_vec(&self) -> Vec<KnownCall> {
        self.calls.iter().cloned().collect()
    }

    fn forget(&mut self, place: usize) {
        self.bytes -= self.calls.remove(place).as_ref().map_or(0, bytes);
    }
}

fn bytes(call: &KnownCall) -> usize {
    CALL + call.id.len() + call.name.len() + call.namespace.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_remembered_once_and_the_oldest_goes() {
        let mut calls = AnsweredCalls::within(4 << 10);
        calls.add("a", ("Read", None), false);
        calls.add("b", ("Bash", Some("s")), false);
        calls.add("a", ("Bash", None), true);
        let ids = |calls: &AnsweredCalls| calls.to_vec().into_iter().map(|call| call.id).collect::<Vec<_>>();
        assert_eq!(ids(&calls), ["b", "a"]);
        assert!(calls.to_vec()[1].reads_evidence);
        for number in 0..10_000 {
            calls.add(&format!("call_{number}"), ("Bash", None), false);
        }
        assert!((16..=20).contains(&calls.calls.len()), "{}", calls.calls.len());
        assert_eq!(ids(&calls).last().map(String::as_str), Some("call_9999"));
    }

    #[test]
    fn names_that_no_provider_makes_are_not_remembered() {
        let (mut calls, long) = (AnsweredCalls::within(4 << 10), "x".repeat(257));
        calls.add(&long, ("Bash", None), false);
        calls.add("a", (&long, None), false);
        calls.add("a", ("Bash", Some(&long)), false);
        calls.add("", ("Bash", None), false);
        assert!(calls.to_vec().is_empty());
    }
}
