//! Whether an edit of a namespace's policies could deny something that they allowed before. Pure.
//!
//! What makes a policy stricter is never throttled, so only an edit that can be shown to loosen is: one that takes Deny
//! rules away, or adds rules for exact names that no other rule allowed. Every other edit counts as stricter.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::publish::Candidate;
use crate::decision::Enforcement;
use crate::name::host::Host;
use crate::policy::document::{Action, Destination, Document};
use crate::policy::pattern::Pattern;

/// How many pairs of a new name and an older rule are compared. A larger edit counts as stricter.
const MOST_PAIRS: usize = 1 << 16;

/// What an edit of policies can do to what was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    /// The policies say what they said.
    Nothing,
    /// Everything that was allowed still is.
    Loosens,
    /// Something could be denied that was allowed.
    MayDeny,
}

/// What is kept of a namespace's policies to judge the next edit of them: digests, since the operator has no room for
/// the documents of every namespace. Two texts with one digest would only delay an edit of their own author.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline(BTreeMap<String, Arc<Gist>>);

/// The same of one policy; of one that cannot be read there is nothing in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gist {
    /// Of everything but its destinations.
    rest: u64,
    /// Of each destination, and whether it is a Deny.
    rules: BTreeSet<(u64, bool)>,
}

impl Outline {
    /// Outlines policies.
    pub(super) fn of(candidates: &[Candidate]) -> Self {
        Self(candidates.iter().map(|one| (one.key.clone(), Arc::clone(&one.gist))).collect())
    }

    /// Judges the edit from these policies to the candidates.
    pub(super) fn judge(&self, candidates: &[Candidate]) -> Edit {
        let after = Self::of(candidates);
        if *self == after {
            return Edit::Nothing;
        }
        if !self.0.keys().eq(after.0.keys()) {
            return Edit::MayDeny;
        }
        let mut added = BTreeMap::new();
        for ((key, before), after) in self.0.iter().zip(after.0.values()) {
            let loses_an_allow = before.rules.difference(&after.rules).any(|(_, is_deny)| !is_deny);
            if before.rest != after.rest || loses_an_allow {
                return Edit::MayDeny;
            }
            let new: BTreeSet<u64> =
                after.rules.difference(&before.rules).map(|(digest, _)| *digest).collect();
            if !new.is_empty() {
                added.insert(key.as_str(), new);
            }
        }
        if only_adds(candidates, &added) { Edit::Loosens } else { Edit::MayDeny }
    }
}

impl Gist {
    /// The gist of a document.
    pub(super) fn of(document: &Document) -> Self {
        let mut rest = document.clone();
        rest.spec.destinations = Vec::new();
        let rule = |rule: &Destination| (digest(rule), rule.action == Some(Action::Deny));
        Self { rest: digest(&rest), rules: document.spec.destinations.iter().map(rule).collect() }
    }
}

/// Whether the new rules, by the keys of their policies, allow exact names that no older rule allowed, and so take
/// nothing from anybody.
fn only_adds(candidates: &[Candidate], added: &BTreeMap<&str, BTreeSet<u64>>) -> bool {
    if added.is_empty() {
        return true;
    }
    let (mut names, mut allowed) = (Vec::new(), Vec::new());
    for (candidate, document) in candidates.iter().filter_map(|one| Some((one, one.read.as_ref().ok()?))) {
        let new = added.get(candidate.key.as_str());
        for rule in &document.spec.destinations {
            // Where bytes without a name pass on a port, a rule that needs a name denies some of them.
            let Some(patterns) = allowed_by(rule) else { return false };
            if !new.is_some_and(|new| new.contains(&digest(rule))) {
                allowed.extend(patterns);
                continue;
            }
            // Under an Audit policy alone, what no rule names passes unseen.
            if rule.action == Some(Action::Deny) || document.spec.enforcement == Some(Enforcement::Audit) {
                return false;
            }
            for pattern in patterns {
                let Pattern::Exact(name) = pattern else { return false };
                names.push(Host::Name(name));
            }
        }
    }
    names.len().saturating_mul(allowed.len()) <= MOST_PAIRS
        && !names.iter().any(|name| allowed.iter().any(|pattern| pattern.matches(name)))
}

/// The hosts that a rule allows; `None` where it allows addresses or opaque bytes, which have no name.
fn allowed_by(rule: &Destination) -> Option<Vec<Pattern>> {
    if rule.action == Some(Action::Deny) {
        return Some(Vec::new());
    }
    if rule.cidrs.is_some() || rule.protocol.is_some() {
        return None;
    }
    rule.hosts.iter().flatten().map(|text| Pattern::parse(text).ok()).collect()
}

fn digest(said: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(said).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, policy};
    use super::*;

    fn policies(specs: &[(&str, &str)]) -> Vec<Candidate> {
        specs.iter().map(|(name, spec)| candidate(&policy(name, spec))).collect()
    }

    fn edit(before: &str, after: &str) -> Edit {
        Outline::of(&policies(&[("a", before)])).judge(&policies(&[("a", after)]))
    }

    fn destinations(rules: &[&str]) -> String {
        format!("destinations: [{}]", rules.join(", "))
    }

    const ONE: &str = "{name: one, hosts: [one.example], action: Tunnel}";
    const TWO: &str = "{name: two, hosts: [two.example], action: Inspect}";
    const BELOW: &str = "{name: below, hosts: ['**.example'], action: Tunnel}";
    const NO_ONE: &str = "{name: no-one, hosts: [one.example], action: Deny}";
    const RANGE: &str = "{name: range, cidrs: [10.0.0.0/8], ports: [443], action: Tunnel}";

    #[test]
    fn an_edit_that_only_adds_names_or_takes_denials_away_loosens() {
        assert_eq!(edit(&destinations(&[ONE]), &destinations(&[ONE, TWO])), Edit::Loosens);
        assert_eq!(edit(&destinations(&[ONE, NO_ONE]), &destinations(&[ONE])), Edit::Loosens);
        assert_eq!(edit(&destinations(&[ONE, NO_ONE]), &destinations(&[ONE, TWO])), Edit::Loosens);
        assert_eq!(edit(&destinations(&[ONE, TWO]), &destinations(&[TWO, ONE])), Edit::Nothing);
    }

    #[test]
    fn an_edit_that_could_deny_anything_is_stricter() {
        for (before, after) in [
            (vec![ONE, TWO], vec![ONE]),
            (vec![ONE], vec![ONE, NO_ONE]),
            // Inspected from now on, where it was tunnelled.
            (vec![BELOW], vec![BELOW, TWO]),
            (vec![ONE], vec![ONE, BELOW]),
            // Bytes without a name are read more strictly on a port that a name needs.
            (vec![RANGE], vec![RANGE, TWO]),
            (vec![ONE], vec![ONE, RANGE]),
        ] {
            assert_eq!(edit(&destinations(&before), &destinations(&after)), Edit::MayDeny, "{after:?}");
        }
        let with = |more: &str| format!("{}\n  {more}", destinations(&[ONE]));
        let plain = destinations(&[ONE]);
        assert_eq!(edit(&plain, &with("toolDefault: Deny")), Edit::MayDeny);
        assert_eq!(edit(&with("toolDefault: Deny"), &plain), Edit::MayDeny, "it takes part no more");
        let audit = |rules: &[&str]| format!("enforcement: Audit\n  {}", destinations(rules));
        assert_eq!(edit(&audit(&[ONE]), &audit(&[ONE, TWO])), Edit::MayDeny);
    }

    #[test]
    fn a_policy_that_comes_or_goes_is_stricter() {
        let (one, two) = (destinations(&[ONE]), destinations(&[TWO]));
        let (alone, both) = (policies(&[("a", &one)]), policies(&[("a", &one), ("b", &two)]));
        assert_eq!(Outline::of(&alone).judge(&both), Edit::MayDeny);
        assert_eq!(Outline::of(&both).judge(&alone), Edit::MayDeny);
        assert_eq!(Outline::of(&both).judge(&both), Edit::Nothing);
    }

    #[test]
    fn an_edit_too_large_to_compare_is_stricter() {
        let hosts =
            |tier: &str| (0..300).map(|at| format!("{tier}{at}.example")).collect::<Vec<_>>().join(", ");
        let rule = |tier: &str| format!("{{name: {tier}, hosts: [{}], action: Tunnel}}", hosts(tier));
        let (old, new) = (rule("old"), rule("new"));
        assert_eq!(edit(&destinations(&[&old]), &destinations(&[&old, &new])), Edit::MayDeny);
    }
}
