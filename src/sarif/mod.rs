//! Reports denials and findings, and cases of policy tests that do not hold, as SARIF 2.1.0, the format in which code scanners hand their results to those who show them. Pure.

mod builtin;
mod cases;
mod entry;
mod log;
mod message;
mod place;
mod reported;
mod rule;

use std::collections::{BTreeMap, HashMap};

use crate::event::{Event, Id, Timestamp};

pub(crate) use cases::failed_cases;
use entry::Entry;
pub(crate) use log::SarifLog;
pub(crate) use place::RulePlaces;
use reported::Reported;

/// The most results of a report. GitHub takes as many of one run, and shows 5,000 of them.
pub(crate) const MOST_RESULTS: usize = 25_000;

/// By what entries are ordered and told apart: when it was last, the event, the rule.
type EntryKey = (Timestamp, Id, String);

/// The newest denials and findings of the events that it was given, whatever order they came in.
pub(crate) struct SarifReport {
    groups: bool,
    most: usize,
    /// By time, so that the oldest goes first. An event that two files have is one entry.
    entries: BTreeMap<EntryKey, Entry>,
    /// Where the entry of a fingerprint is; of a report that groups.
    by_fingerprint: HashMap<String, EntryKey>,
    left_out: u64,
}

impl SarifReport {
    /// `groups`: equal denials, those of one fingerprint, become one result that counts them.
    pub(crate) fn new(groups: bool) -> Self {
        Self::with_bound(groups, MOST_RESULTS)
    }

    fn with_bound(groups: bool, most: usize) -> Self {
        Self { groups, most, entries: BTreeMap::new(), by_fingerprint: HashMap::new(), left_out: 0 }
    }

    /// Takes an event; events that deny nothing and in which nothing was found are passed over.
    pub(crate) fn take(&mut self, event: &Event) {
        match Reported::denial(event) {
            Some(denial) => self.add(Entry::of_denial(event, denial)),
            None => {
                let found = Reported::findings(event).into_iter();
                found.for_each(|(finding, reported)| self.add(Entry::of_finding(event, finding, reported)));
            }
        }
    }

    fn add(&mut self, mut entry: Entry) {
        let mut key = entry.key();
        if self.groups {
            let earlier = self.by_fingerprint.get(&entry.fingerprint);
            if let Some(earlier) = earlier.and_then(|key| self.entries.remove(key)) {
                entry = entry.joined_with(earlier);
                key = entry.key();
            }
            self.by_fingerprint.insert(entry.fingerprint.clone(), key.clone());
        }
        self.entries.insert(key, entry);
        if self.entries.len() > self.most
            && let Some((_, oldest)) = self.entries.pop_first()
        {
            self.by_fingerprint.remove(&oldest.fingerprint);
            self.left_out += 1;
        }
    }

    /// How many older results found no place.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The report, the oldest result first.
    pub(crate) fn into_log(self, places: &RulePlaces) -> SarifLog {
        SarifLog::of(self.entries.into_values(), places)
    }
}

#[cfg(test)]
mod tests;
