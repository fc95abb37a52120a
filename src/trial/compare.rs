//! Replays events under two policies, and counts what would be decided otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::replay::{Replayed, replay};
use crate::event::{Event, Id, Kind};
use crate::policy::Policy;
use crate::policy::document::Document;
use crate::policy::explain::ShownDecision;
use crate::policy::rule::Place;
use crate::provider::answer::GuardLimits;

/// How many groups are kept; events beyond are counted without one.
const MOST: usize = 10_000;

/// Two policies, and what they make of events so far.
pub struct Comparison {
    policies: [Arc<Policy>; 2],
    bounds: GuardLimits,
    /// Both judge tool calls alike; and all else.
    judges_calls_alike: bool,
    judges_rest_alike: bool,
    counts: Counts,
    groups: BTreeMap<(Outcome, String, String), Group>,
}

/// How many decisions of events differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub decisions: u64,
    pub same: u64,
    pub denied: u64,
    pub allowed: u64,
    pub unknown: u64,
}

/// What would be otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Denied,
    Allowed,
    /// It cannot be said.
    Unknown,
}

/// Events that would be decided otherwise, alike.
#[derive(Debug, Serialize)]
pub struct Group {
    pub outcome: Outcome,
    pub events: u64,
    /// The rule, or why it cannot be said.
    pub by: String,
    /// The tool, or the method and the host.
    pub about: String,
    /// The first of the events.
    pub example: Id,
}

impl Comparison {
    /// Compares what two policies of one pod decide. The documents are those that each was compiled of.
    pub fn new(policies: [Arc<Policy>; 2], documents: [&[Document]; 2], bounds: GuardLimits) -> Self {
        let of = |documents: &[Document], is_about_calls: bool| -> Vec<String> {
            let mut texts: Vec<String> =
                documents.iter().map(|document| part(document, is_about_calls)).collect();
            texts.sort();
            texts
        };
        let alike = |is_about_calls| {
            let [old, new] = documents.map(|documents| of(documents, is_about_calls));
            old == new
        };
        Self {
            policies,
            bounds,
            judges_calls_alike: alike(true),
            judges_rest_alike: alike(false),
            counts: Counts::default(),
            groups: BTreeMap::new(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event, line: &str) {
        let is_call = event.kind == Kind::ToolCall;
        let has_answer_rules = || self.policies.iter().any(|policy| policy.has_rules_at(Place::Answer));
        match event.kind {
            Kind::Connection | Kind::Request | Kind::ToolCall => {}
            Kind::Response if has_answer_rules() => {}
            Kind::Response | Kind::Transform | Kind::Policy | Kind::Lifecycle | Kind::Unknown => return,
        }
        self.counts.decisions += 1;
        if if is_call { self.judges_calls_alike } else { self.judges_rest_alike } {
            self.counts.same += 1;
            return;
        }
        let [old, new] = [0, 1].map(|which: usize| {
            let policy = self.policies.get(which)?;
            replay(policy, self.bounds, event, line)
        });
        let (outcome, by) = match (old, new) {
            (Some(Replayed::Decided(old)), Some(Replayed::Decided(new))) => {
                match (denies(&old), denies(&new)) {
                    (false, true) => (Outcome::Denied, new.rule.unwrap_or_default()),
                    (true, false) => (Outcome::Allowed, new.rule.or(old.rule).unwrap_or_default()),
                    (true, true) | (false, false) => {
                        self.counts.same += 1;
                        return;
                    }
                }
            }
            (Some(Replayed::Unknown(why)), _) | (_, Some(Replayed::Unknown(why))) => (Outcome::Unknown, why),
            (None, _) | (_, None) => return,
        };
        match outcome {
            Outcome::Denied => self.counts.denied += 1,
            Outcome::Allowed => self.counts.allowed += 1,
            Outcome::Unknown => self.counts.unknown += 1,
        }
        self.group(outcome, by, event);
    }

    fn group(&mut self, outcome: Outcome, by: String, event: &Event) {
        let about = match (&event.tool_call, &event.http, &event.destination) {
            (Some(call), _, _) => call.name.clone(),
            (None, Some(http), Some(to)) => format!("{} {}:{}", http.method, to.host, to.port),
            (None, _, Some(to)) => format!("{}:{}", to.host, to.port),
            (None, _, None) => String::new(),
        };
        let key = (outcome, by.clone(), about.clone());
        if self.groups.len() >= MOST && !self.groups.contains_key(&key) {
            return;
        }
        let group =
            self.groups.entry(key).or_insert(Group { outcome, events: 0, by, about, example: event.id });
        group.events += 1;
        group.example = group.example.min(event.id);
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What would be otherwise, the most frequent first.
    pub fn into_groups(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.groups.into_values().collect();
        groups.sort_by_key(|group| (group.outcome, std::cmp::Reverse(group.events)));
        groups
    }
}

fn denies(decision: &ShownDecision) -> bool {
    decision.verdict == "Deny"
}

/// The part of a document that is about tool calls, or the rest of it. Selectors and enforcement are in both.
fn part(document: &Document, is_about_calls: bool) -> String {
    let mut spec = serde_json::to_value(&document.spec).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        let of_calls = ["tools", "toolDefault", "shell", "edits", "limits"];
        let both = ["podSelector", "namespaceSelector", "enforcement", "failurePolicy", "rules"];
        fields.retain(|name, _| {
            both.contains(&name.as_str()) || of_calls.contains(&name.as_str()) == is_about_calls
        });
    }
    format!("{} {spec}", document.id())
}
