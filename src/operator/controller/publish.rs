//! Which documents a namespace gets: what is accepted, what goes back to its last good version, and why. Pure.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::edit::Gist;
use crate::policy::compile::{self, Labels};
use crate::policy::document::{Document, Kind};
use crate::problem::Problem;

/// The longest name of a key of a ConfigMap.
const LONGEST_KEY: usize = 253;
/// How many different label sets of pods are compiled for; more than these tell nothing new.
const MOST_LABEL_SETS: usize = 128;
/// Why a policy stays out that was not tried.
const UNTRIED: &str = "policies contradict each other, too many of them to find out which go together: mend or delete those that are told first";
/// How many documents are compiled, each time for one label set, to find out which go together: a second's work, which
/// hundreds of policies stay below that contradict each other.
const MOST_WORK: usize = 1 << 20;

/// A policy that could select pods of the namespace, as it stands in the cluster now.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its key in the ConfigMap, and the file of its problems.
    pub(super) key: String,
    pub(super) read: Result<Document, Vec<Problem>>,
    /// What the next version of it is compared with.
    pub(super) gist: Arc<Gist>,
}

/// What is published, and what is not as it was written.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) refused: BTreeMap<String, Refusal>,
}

/// Why a policy is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) problems: Vec<Problem>,
    pub(super) in_force: InForce,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is wrong by itself.
    Invalid,
    /// It contradicts another policy.
    Conflict,
}

/// What is in force of a policy that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InForce {
    Nothing,
    LastGood,
    /// It was accepted once, and pods have come since for which it contradicts another.
    AsWritten,
}

/// The key of a policy in the ConfigMap. A name that is too long for one is cut, and told apart by its digest.
pub(super) fn key(kind: Kind, name: &str) -> String {
    let tier = match kind {
        Kind::EgressPolicy => "namespace",
        Kind::ClusterEgressPolicy => "cluster",
    };
    let key = format!("{tier}-{name}.json");
    if key.len() <= LONGEST_KEY {
        return key;
    }
    let digest = crate::digest::sha256_hex(name.as_bytes());
    let start: String = name.chars().take(150).collect();
    format!("{tier}-{start}.{digest}.json")
}

/// Chooses among the candidates and their last good versions, which are asked for where they are needed. `pods` are the
/// label sets of the namespace's pods.
///
/// What was accepted before is not disturbed: where policies contradict each other, those that have changed are tried
/// one after the other, and each that brings a new contradiction goes back to its last good version or stays out. A
/// namespace's own that contradicts the cluster's stays out whichever came first.
pub(super) fn publish(
    candidates: &[Candidate],
    last_good: impl FnOnce() -> BTreeMap<String, Document>,
    pods: &[Labels],
) -> Published {
    let last_good = LazyCell::new(last_good);
    let mut published = Published::default();
    let mut wanted = BTreeMap::new();
    for Candidate { key, read, .. } in candidates {
        let problems = match read {
            Ok(document) => {
                wanted.insert(key.clone(), document.clone());
                continue;
            }
            Err(problems) => problems.clone(),
        };
        let last = last_good.get(key);
        let in_force = if last.is_some() { InForce::LastGood } else { InForce::Nothing };
        wanted.extend(last.map(|last| (key.clone(), last.clone())));
        published.refused.insert(key.clone(), Refusal { reason: Reason::Invalid, problems, in_force });
    }
    let pods = distinguished(&wanted, pods);
    if contradictions(&wanted, &pods).is_empty() {
        published.documents = wanted;
    } else {
        settle(&mut published, &wanted, &last_good, &pods);
    }
    published
}

/// Chooses where not all that is wanted goes together: first among the cluster's policies, so that no namespace's holds one
/// of them up, and then among the namespace's beside those.
fn settle(
    published: &mut Published,
    wanted: &BTreeMap<String, Document>,
    last_good: &BTreeMap<String, Document>,
    pods: &[Labels],
) {
    let (mut standing, mut known) = (BTreeMap::new(), Vec::new());
    for cluster in [true, false] {
        let mut effort = Effort(MOST_WORK);
        let of_tier = |(key, _): &(&String, &Document)| is_cluster(key) == cluster;
        let kept = last_good.iter().filter(of_tier).filter(|(key, _)| wanted.contains_key(*key));
        let above = standing.clone();
        let kept = kept.filter(|(key, document)| {
            cluster
                || effort.suffices(&above, pods) && added(&above, &known, (key, document), pods).2.is_empty()
        });
        standing.extend(kept.map(|(key, document)| (key.clone(), document.clone())));
        known = contradictions(&standing, pods);
        let new = |(key, document): &(&String, &Document)| {
            standing.get(*key).is_none_or(|last| text(last) != text(document))
        };
        let waiting = wanted.iter().filter(of_tier).filter(new).collect();
        (standing, known) = join(published, (standing, known), (waiting, effort), pods);
    }
    for problem in known {
        let refusal = published.refused.entry(problem.file.clone()).or_insert_with(|| Refusal {
            reason: Reason::Conflict,
            problems: Vec::new(),
            in_force: InForce::AsWritten,
        });
        refusal.problems.push(problem);
    }
    published.documents = standing;
}

/// Adds to what stands whatever of the waiting brings no new contradiction, and refuses the rest.
fn join(
    published: &mut Published,
    (mut standing, mut known): (BTreeMap<String, Document>, Vec<Problem>),
    (mut waiting, mut effort): (Vec<(&String, &Document)>, Effort),
    pods: &[Labels],
) -> (BTreeMap<String, Document>, Vec<Problem>) {
    let mut blamed: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    loop {
        let before = waiting.len();
        waiting.retain(|(key, document)| {
            if !effort.suffices(&standing, pods) {
                return true;
            }
            let (with, found, fresh) = added(&standing, &known, (key, document), pods);
            if fresh.is_empty() {
                (standing, known) = (with, found);
                return false;
            }
            blamed.insert((*key).clone(), fresh);
            true
        });
        if waiting.len() == before {
            break;
        }
    }
    for (key, _) in waiting {
        let in_force = if standing.contains_key(key) { InForce::LastGood } else { InForce::Nothing };
        let problems = blamed.remove(key).unwrap_or_else(|| vec![Problem::at("", UNTRIED).in_file(key)]);
        published.refused.insert(key.clone(), Refusal { reason: Reason::Conflict, problems, in_force });
    }
    (standing, known)
}

/// What stands with one more document, how that contradicts itself, and which of it is new.
fn added(
    standing: &BTreeMap<String, Document>,
    known: &[Problem],
    (key, document): (&str, &Document),
    pods: &[Labels],
) -> (BTreeMap<String, Document>, Vec<Problem>, Vec<Problem>) {
    let mut with = standing.clone();
    with.insert(key.to_owned(), document.clone());
    let found = contradictions(&with, pods);
    let fresh = found.iter().filter(|one| !known.contains(one)).cloned().collect();
    (with, found, fresh)
}

/// What work is left: without a bound, thousands of policies that contradict each other would be tried for hours.
struct Effort(usize);

impl Effort {
    /// Whether one more document may be tried beside those that stand; what that takes is spent.
    fn suffices(&mut self, standing: &BTreeMap<String, Document>, pods: &[Labels]) -> bool {
        let left = self.0.checked_sub((standing.len() + 1) * pods.len());
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// Whether a key of the ConfigMap is that of a policy of the cluster.
pub(super) fn is_cluster(key: &str) -> bool {
    key.starts_with("cluster-")
}

/// How these documents contradict each other for pods of these labels; nothing where they do not.
fn contradictions(documents: &BTreeMap<String, Document>, pods: &[Labels]) -> Vec<Problem> {
    let all: Vec<Document> = documents.values().map(unconditional).collect();
    let mut problems: Vec<Problem> = Vec::new();
    for mut problem in compile::contradictions(&all, pods).into_iter().chain(names_used_twice(documents)) {
        problem.position = None;
        // Several label sets meet the same contradiction.
        if !problems.iter().any(|told| told.file == problem.file && told.path == problem.path) {
            problems.push(problem);
        }
    }
    problems
}

/// A document without the conditions of its tool rules, which contradict nobody: each was compiled when it was read, and
/// regular expressions take long.
fn unconditional(document: &Document) -> Document {
    let mut document = document.clone();
    document.spec.tools.iter_mut().for_each(|rule| rule.when = None);
    document
}

/// A namespace's credentials are files of one directory, whatever policy they come from.
fn names_used_twice(documents: &BTreeMap<String, Document>) -> Vec<Problem> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut problems = Vec::new();
    for (key, document) in documents {
        for (number, credential) in document.spec.credentials.iter().enumerate() {
            let owner = *owners.entry(&credential.name).or_insert(key);
            if owner == key {
                continue;
            }
            let other = documents.get(owner).map(Document::id).unwrap_or_default();
            let message = format!(
                "the name `{}` is taken by {other}; in a namespace each credential is one file of that name",
                credential.name
            );
            problems.push(Problem::at(format!("spec.credentials[{number}].name"), message).in_file(key));
        }
    }
    problems
}

/// The label sets that policies tell apart, the empty one among them.
fn distinguished(documents: &BTreeMap<String, Document>, pods: &[Labels]) -> Vec<Labels> {
    let mut keys = BTreeSet::new();
    for selector in documents.values().filter_map(|document| document.spec.pod_selector.as_ref()) {
        keys.extend(selector.match_labels.keys());
        keys.extend(selector.match_expressions.iter().map(|expression| &expression.key));
    }
    let seen = |labels: &Labels| -> Labels {
        labels.iter().filter(|(key, _)| keys.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let sets: BTreeSet<Labels> = pods.iter().map(seen).chain([Labels::new()]).collect();
    sets.into_iter().take(MOST_LABEL_SETS).collect()
}

/// What a document says, to compare it.
fn text(document: &Document) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, cluster_policy, labels, policy};
    use super::*;

    /// Everything candidates would be without contradictions.
    fn good(candidates: &[Candidate]) -> BTreeMap<String, Document> {
        candidates.iter().map(|one| (one.key.clone(), one.read.clone().unwrap())).collect()
    }

    fn hosts(published: &Published, key: &str) -> Vec<String> {
        published.documents[key].spec.destinations[0].hosts.clone().unwrap()
    }

    fn with_credential(name: &str, host: &str) -> Candidate {
        let credential =
            format!("credentials: [{{name: key, hosts: [{host}], secretKeyRef: {{name: s, key: k}}}}]");
        candidate(&policy(
            name,
            &format!("destinations: [{{name: d, hosts: [{host}], action: Inspect}}]\n  {credential}"),
        ))
    }

    fn tunnel(name: &str, host: &str) -> Candidate {
        candidate(&policy(name, &format!("destinations: [{{name: d, hosts: [{host}], action: Tunnel}}]")))
    }

    #[test]
    fn policies_that_go_together_are_all_published() {
        let candidates = [tunnel("a", "one.example"), tunnel("b", "two.example")];
        let published = publish(&candidates, BTreeMap::new, &[]);
        assert_eq!(published.documents.len(), 2);
        assert!(published.refused.is_empty());
    }

    #[test]
    fn a_policy_that_does_not_compile_leaves_the_last_good_one_in_force() {
        let last = good(&[tunnel("a", "one.example")]);
        let broken =
            candidate(&policy("a", "destinations: [{name: d, hosts: [one.example], action: Permit}]"));
        let published = publish(&[broken, tunnel("b", "two.example")], || last, &[]);
        assert_eq!(hosts(&published, "namespace-a.json"), ["one.example"]);
        assert_eq!(hosts(&published, "namespace-b.json"), ["two.example"], "the others go on");
        let refusal = &published.refused["namespace-a.json"];
        assert_eq!((refusal.reason, refusal.in_force), (Reason::Invalid, InForce::LastGood));
        assert!(refusal.problems.iter().any(|one| one.path == "spec.destinations[0].action"), "{refusal:?}");
    }

    #[test]
    fn a_policy_that_never_compiled_stays_out() {
        let broken =
            candidate(&policy("a", "destinations: [{name: d, hosts: [one.example], action: Permit}]"));
        let published = publish(&[broken], BTreeMap::new, &[]);
        assert!(published.documents.is_empty());
        assert_eq!(published.refused["namespace-a.json"].in_force, InForce::Nothing);
    }

    #[test]
    fn a_policy_that_is_gone_is_gone() {
        let last = good(&[tunnel("a", "one.example")]);
        assert!(publish(&[], || last, &[]).documents.is_empty());
    }

    #[test]
    fn the_one_that_comes_later_with_a_credential_s_name_stays_out_and_not_the_one_in_force() {
        let standing = with_credential("z", "one.example");
        let last = good(std::slice::from_ref(&standing));
        let published = publish(&[with_credential("a", "two.example"), standing], || last, &[]);
        assert!(published.documents.contains_key("namespace-z.json"));
        assert!(!published.documents.contains_key("namespace-a.json"));
        let refusal = &published.refused["namespace-a.json"];
        assert_eq!((refusal.reason, refusal.in_force), (Reason::Conflict, InForce::Nothing));
        assert!(!refusal.problems.is_empty());
        assert!(!published.refused.contains_key("namespace-z.json"));
    }

    #[test]
    fn a_credential_s_name_is_used_once_in_a_namespace_whatever_tier() {
        let cluster = policy("c", "destinations: [{name: d, hosts: [one.example], action: Inspect}]\n  credentials: [{name: key, hosts: [one.example], secretKeyRef: {name: s, key: k}}]")
            .replace("kind: EgressPolicy", "kind: ClusterEgressPolicy")
            .replace(", namespace: agents", "");
        let candidates = [candidate(&cluster), with_credential("a", "two.example")];
        let published = publish(&candidates, BTreeMap::new, &[]);
        assert!(published.documents.contains_key("cluster-c.json"));
        let refusal = &published.refused["namespace-a.json"];
        assert!(refusal.problems[0].path.starts_with("spec.credentials[0]"));
        assert!(refusal.problems[0].message.contains("-/c"), "{refusal:?}");
    }

    fn of_cluster(name: &str, spec: &str) -> Candidate {
        candidate(&cluster_policy(name, spec))
    }

    #[test]
    fn no_credential_of_a_namespace_keeps_a_policy_of_the_cluster_out() {
        let squatting = with_credential("a", "two.example");
        let last = good(std::slice::from_ref(&squatting));
        let floor = of_cluster(
            "floor",
            "destinations: [{name: d, hosts: [one.example], action: Inspect}, {name: evil, hosts: [evil.example], action: Deny}]\n  credentials: [{name: key, hosts: [one.example], secretKeyRef: {name: s, key: k}}]",
        );
        let published = publish(&[floor, squatting], || last, &[]);
        assert_eq!(published.documents.keys().collect::<Vec<_>>(), ["cluster-floor.json"]);
        let refusal = &published.refused["namespace-a.json"];
        assert_eq!((refusal.reason, refusal.in_force), (Reason::Conflict, InForce::Nothing));
    }

    #[test]
    fn a_name_that_changes_hands_in_one_go_is_no_contradiction() {
        let last = good(&[with_credential("b", "one.example")]);
        let candidates = [with_credential("a", "one.example"), tunnel("b", "two.example")];
        let published = publish(&candidates, || last, &[]);
        assert!(published.refused.is_empty(), "{:?}", published.refused);
    }

    fn speaks(name: &str, app: &str, provider: &str) -> Candidate {
        candidate(&policy(
            name,
            &format!(
                "podSelector: {{matchLabels: {{{app}: \"1\"}}}}\n  destinations: [{{name: d, hosts: [llm.example], action: Inspect, provider: {provider}}}]"
            ),
        ))
    }

    #[test]
    fn what_no_pod_meets_together_contradicts_nobody() {
        let candidates = [speaks("a", "one", "Anthropic"), speaks("b", "two", "OpenAIChat")];
        let pods = [labels(&[("one", "1")]), labels(&[("two", "1")])];
        assert!(publish(&candidates, BTreeMap::new, &pods).refused.is_empty());
    }

    #[test]
    fn a_pod_that_two_policies_contradict_over_does_not_stop_what_comes_after() {
        let (a, b) = (speaks("a", "one", "Anthropic"), speaks("b", "two", "OpenAIChat"));
        let last = good(&[a.clone(), b.clone()]);
        let both = [labels(&[("one", "1"), ("two", "1")])];
        let published = publish(&[a, b, tunnel("c", "new.example")], || last, &both);
        assert_eq!(published.documents.len(), 3, "{:?}", published.refused);
        assert_eq!(published.refused["namespace-b.json"].in_force, InForce::AsWritten);
        assert!(!published.refused.contains_key("namespace-c.json"));
    }

    #[test]
    fn a_name_too_long_for_a_key_is_cut_and_stays_its_own() {
        let (a, b) = ("a".repeat(250), format!("{}b", "a".repeat(249)));
        let (a, b) = (key(Kind::EgressPolicy, &a), key(Kind::EgressPolicy, &b));
        assert!(a.len() <= LONGEST_KEY && a != b);
    }

    #[test]
    fn policies_that_contradict_each_other_in_crowds_are_not_tried_for_ever() {
        let one = tunnel("a", "one.example").read.unwrap();
        let standing = BTreeMap::from([("namespace-a.json".to_owned(), one)]);
        let pods = vec![Labels::new(); 10];
        let mut effort = Effort(50);
        let tries = (0..9).filter(|_| effort.suffices(&standing, &pods)).count();
        assert_eq!(tries, 2, "each takes two documents for ten label sets");
        let (a, b) = (speaks("a", "one", "Anthropic"), speaks("b", "one", "OpenAIChat"));
        let wanted = good(&[a, b]);
        let mut published = Published::default();
        let waiting = || wanted.iter().collect();
        let (standing, _) =
            join(&mut published, (BTreeMap::new(), Vec::new()), (waiting(), Effort(0)), &pods);
        assert!(standing.is_empty());
        let refusal = &published.refused["namespace-b.json"];
        assert_eq!((refusal.reason, refusal.problems[0].message.as_str()), (Reason::Conflict, UNTRIED));
    }
}
