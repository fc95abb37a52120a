//! Chooses the documents of a namespace: which policies are accepted, which go back to their last good version, and why. Pure.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::candidate::{PolicyCandidate, is_cluster};
use crate::policy::compile::{self, Labels};
use crate::policy::document::Document;
use crate::problem::Problem;

/// How many different label sets of pods are compiled for; more hardly find anything new.
const MOST_LABEL_SETS: usize = 128;
/// Why a policy is left out that was not tried.
const UNTRIED: &str = "policies contradict each other, too many of them to find out which go together: mend or delete those that are told first";
/// How many documents are compiled, for one label set each, to find out which go together: about a second's work. Even
/// hundreds of policies that contradict each other need less.
const MOST_WORK: usize = 1 << 20;

/// The documents that are published, and the policies that are not accepted as written.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) refused: BTreeMap<String, PolicyRefusal>,
}

/// Why a policy is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PolicyRefusal {
    pub(super) reason: RefusalReason,
    pub(super) problems: Vec<Problem>,
    pub(super) in_force: FallbackVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// It is wrong by itself.
    Invalid,
    /// It contradicts another policy.
    Conflict,
}

/// The version in force of a policy that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FallbackVersion {
    Nothing,
    LastGood,
    /// It was accepted once, and pods have come since for which it contradicts another policy.
    AsWritten,
}

/// Chooses among the candidates and their last good versions, which are read only if they are needed. `pods` are the
/// label sets of the namespace's pods.
///
/// Policies that were accepted stay: where policies contradict each other, those that have changed are tried one after
/// the other, and each that brings a new contradiction goes back to its last good version or is left out. A namespace's
/// policy that contradicts a cluster's is left out, whichever came first.
pub(super) fn publish(
    candidates: &[PolicyCandidate],
    last_good: impl FnOnce() -> BTreeMap<String, Document>,
    pods: &[Labels],
) -> Published {
    let last_good = LazyCell::new(last_good);
    let mut published = Published::default();
    let mut wanted = BTreeMap::new();
    for PolicyCandidate { key, read, .. } in candidates {
        let problems = match read {
            Ok(document) => {
                wanted.insert(key.clone(), document.clone());
                continue;
            }
            Err(problems) => problems.clone(),
        };
        let last = last_good.get(key);
        let in_force = if last.is_some() { FallbackVersion::LastGood } else { FallbackVersion::Nothing };
        wanted.extend(last.map(|last| (key.clone(), last.clone())));
        published
            .refused
            .insert(key.clone(), PolicyRefusal { reason: RefusalReason::Invalid, problems, in_force });
    }
    let pods = distinguished(&wanted, pods);
    if contradictions(&wanted, &pods).is_empty() {
        published.documents = wanted;
    } else {
        settle(&mut published, &wanted, &last_good, &pods);
    }
    published
}

/// Documents, and the contradictions between them that are tolerated because they were there before.
#[derive(Default, Clone)]
struct Accepted {
    documents: BTreeMap<String, Document>,
    contradictions: Vec<Problem>,
}

impl Accepted {
    /// Adds one document; returns the contradictions that it brings as well.
    fn with(&self, key: &str, document: &Document, pods: &[Labels]) -> (Self, Vec<Problem>) {
        let mut documents = self.documents.clone();
        documents.insert(key.to_owned(), document.clone());
        let contradictions = contradictions(&documents, pods);
        let new = contradictions.iter().filter(|each| !self.contradictions.contains(each)).cloned().collect();
        (Self { documents, contradictions }, new)
    }
}

/// Chooses where the wanted documents contradict each other: first among the cluster's policies, so that no namespace's
/// policy holds one of them up, then among the namespace's.
fn settle(
    published: &mut Published,
    wanted: &BTreeMap<String, Document>,
    last_good: &BTreeMap<String, Document>,
    pods: &[Labels],
) {
    let mut accepted = Accepted::default();
    for cluster in [true, false] {
        let mut budget = CompileBudget(MOST_WORK);
        let of_tier = |(key, _): &(&String, &Document)| is_cluster(key) == cluster;
        let kept = last_good.iter().filter(of_tier).filter(|(key, _)| wanted.contains_key(*key));
        let above = accepted.clone();
        let kept = kept.filter(|(key, document)| {
            cluster || budget.suffices(&above.documents, pods) && above.with(key, document, pods).1.is_empty()
        });
        accepted.documents.extend(kept.map(|(key, document)| (key.clone(), document.clone())));
        accepted.contradictions = contradictions(&accepted.documents, pods);
        let is_new = |(key, document): &(&String, &Document)| {
            accepted.documents.get(*key).is_none_or(|last| text(last) != text(document))
        };
        let waiting = wanted.iter().filter(of_tier).filter(is_new).collect();
        accepted = join(published, accepted, waiting, budget, pods);
    }
    for problem in accepted.contradictions {
        let refusal = published.refused.entry(problem.file.clone()).or_insert_with(|| PolicyRefusal {
            reason: RefusalReason::Conflict,
            problems: Vec::new(),
            in_force: FallbackVersion::AsWritten,
        });
        refusal.problems.push(problem);
    }
    published.documents = accepted.documents;
}

/// Adds the waiting documents that bring no new contradiction, and refuses the others.
fn join(
    published: &mut Published,
    mut accepted: Accepted,
    mut waiting: Vec<(&String, &Document)>,
    mut budget: CompileBudget,
    pods: &[Labels],
) -> Accepted {
    let mut blamed: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    // A document that was refused may go with others that were added since, so all are tried until none is added.
    loop {
        let before = waiting.len();
        waiting.retain(|(key, document)| {
            if !budget.suffices(&accepted.documents, pods) {
                return true;
            }
            let (with, new) = accepted.with(key, document, pods);
            if new.is_empty() {
                accepted = with;
                return false;
            }
            blamed.insert((*key).clone(), new);
            true
        });
        if waiting.len() == before {
            break;
        }
    }
    for (key, _) in waiting {
        let is_kept = accepted.documents.contains_key(key);
        let in_force = if is_kept { FallbackVersion::LastGood } else { FallbackVersion::Nothing };
        let problems = blamed.remove(key).unwrap_or_else(|| vec![Problem::at("", UNTRIED).in_file(key)]);
        published
            .refused
            .insert(key.clone(), PolicyRefusal { reason: RefusalReason::Conflict, problems, in_force });
    }
    accepted
}

/// The work that is left: without a bound, thousands of policies that contradict each other would be tried for hours.
struct CompileBudget(usize);

impl CompileBudget {
    /// Spends what trying one more document beside these takes; returns whether there was enough.
    fn suffices(&mut self, documents: &BTreeMap<String, Document>, pods: &[Labels]) -> bool {
        let left = self.0.checked_sub((documents.len() + 1) * pods.len());
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// The contradictions between these documents for pods with these labels.
fn contradictions(documents: &BTreeMap<String, Document>, pods: &[Labels]) -> Vec<Problem> {
    let unconditional: Vec<Document> = documents.values().map(unconditional).collect();
    let mut problems: Vec<Problem> = Vec::new();
    let found = compile::contradictions(&unconditional, pods).into_iter();
    for mut problem in found.chain(names_used_twice(documents)) {
        problem.position = None;
        // Several label sets meet the same contradiction.
        if !problems.iter().any(|known| known.file == problem.file && known.path == problem.path) {
            problems.push(problem);
        }
    }
    problems
}

/// A document without the conditions of its tool rules: they contradict nobody, each was compiled when it was read, and
/// regular expressions take long.
fn unconditional(document: &Document) -> Document {
    let mut document = document.clone();
    document.spec.tools.iter_mut().for_each(|rule| rule.when = None);
    document
}

/// Credentials, and values that must not leave, with the same name: all of a namespace's are files of one directory, whatever policy they come from.
fn names_used_twice(documents: &BTreeMap<String, Document>) -> Vec<Problem> {
    let mut owners: HashMap<(&str, &str), &str> = HashMap::new();
    let mut problems = Vec::new();
    for (key, document) in documents {
        for (list, number, name) in files(document) {
            let owner = *owners.entry((list, name)).or_insert(key);
            if owner == key {
                continue;
            }
            let other = documents.get(owner).map(Document::id).unwrap_or_default();
            let message = format!(
                "the name `{name}` is taken by {other}; in a namespace each is one file of that name"
            );
            problems.push(Problem::at(format!("{list}[{number}].name"), message).in_file(key));
        }
    }
    problems
}

/// What is a file of the gateway: the list that it stands in, its number and its name.
fn files(document: &Document) -> impl Iterator<Item = (&'static str, usize, &str)> {
    let credentials = document.spec.credentials.iter().map(|credential| credential.name.as_str());
    let values = document.spec.data_loss.iter().flat_map(|section| &section.values);
    let credentials = credentials.enumerate().map(|(number, name)| ("spec.credentials", number, name));
    let values = values.map(|value| value.name.as_str()).enumerate();
    credentials.chain(values.map(|(number, name)| ("spec.dataLoss.values", number, name)))
}

/// The label sets that the policies tell apart, and the empty one.
fn distinguished(documents: &BTreeMap<String, Document>, pods: &[Labels]) -> Vec<Labels> {
    let mut keys = BTreeSet::new();
    for selector in documents.values().filter_map(|document| document.spec.pod_selector.as_ref()) {
        keys.extend(selector.match_labels.keys());
        keys.extend(selector.match_expressions.iter().map(|expression| &expression.key));
    }
    let selected = |labels: &Labels| -> Labels {
        labels.iter().filter(|(key, _)| keys.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let sets: BTreeSet<Labels> = pods.iter().map(selected).chain([Labels::new()]).collect();
    sets.into_iter().take(MOST_LABEL_SETS).collect()
}

/// The text of a document, to compare it.
fn text(document: &Document) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, cluster_policy, labels, policy};
    use super::*;

    /// Everything candidates would be without contradictions.
    fn good(candidates: &[PolicyCandidate]) -> BTreeMap<String, Document> {
        candidates.iter().map(|one| (one.key.clone(), one.read.clone().unwrap())).collect()
    }

    fn hosts(published: &Published, key: &str) -> Vec<String> {
        published.documents[key].spec.destinations[0].hosts.clone().unwrap()
    }

    fn with_credential(name: &str, host: &str) -> PolicyCandidate {
        let credential =
            format!("credentials: [{{name: key, hosts: [{host}], secretKeyRef: {{name: s, key: k}}}}]");
        candidate(&policy(
            name,
            &format!("destinations: [{{name: d, hosts: [{host}], action: Inspect}}]\n  {credential}"),
        ))
    }

    fn tunnel(name: &str, host: &str) -> PolicyCandidate {
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
        assert_eq!((refusal.reason, refusal.in_force), (RefusalReason::Invalid, FallbackVersion::LastGood));
        assert!(refusal.problems.iter().any(|one| one.path == "spec.destinations[0].action"), "{refusal:?}");
    }

    #[test]
    fn a_policy_that_never_compiled_stays_out() {
        let broken =
            candidate(&policy("a", "destinations: [{name: d, hosts: [one.example], action: Permit}]"));
        let published = publish(&[broken], BTreeMap::new, &[]);
        assert!(published.documents.is_empty());
        assert_eq!(published.refused["namespace-a.json"].in_force, FallbackVersion::Nothing);
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
        assert_eq!((refusal.reason, refusal.in_force), (RefusalReason::Conflict, FallbackVersion::Nothing));
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

    fn of_cluster(name: &str, spec: &str) -> PolicyCandidate {
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
        assert_eq!((refusal.reason, refusal.in_force), (RefusalReason::Conflict, FallbackVersion::Nothing));
    }

    #[test]
    fn a_name_that_changes_hands_in_one_go_is_no_contradiction() {
        let last = good(&[with_credential("b", "one.example")]);
        let candidates = [with_credential("a", "one.example"), tunnel("b", "two.example")];
        let published = publish(&candidates, || last, &[]);
        assert!(published.refused.is_empty(), "{:?}", published.refused);
    }

    fn speaks(name: &str, app: &str, provider: &str) -> PolicyCandidate {
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
        assert_eq!(published.refused["namespace-b.json"].in_force, FallbackVersion::AsWritten);
        assert!(!published.refused.contains_key("namespace-c.json"));
    }

    #[test]
    fn policies_that_contradict_each_other_in_crowds_are_not_tried_for_ever() {
        let one = tunnel("a", "one.example").read.unwrap();
        let standing = BTreeMap::from([("namespace-a.json".to_owned(), one)]);
        let pods = vec![Labels::new(); 10];
        let mut effort = CompileBudget(50);
        let tries = (0..9).filter(|_| effort.suffices(&standing, &pods)).count();
        assert_eq!(tries, 2, "each takes two documents for ten label sets");
        let (a, b) = (speaks("a", "one", "Anthropic"), speaks("b", "one", "OpenAIChat"));
        let wanted = good(&[a, b]);
        let mut published = Published::default();
        let waiting = || wanted.iter().collect();
        let accepted = join(&mut published, Accepted::default(), waiting(), CompileBudget(0), &pods);
        assert!(accepted.documents.is_empty());
        let refusal = &published.refused["namespace-b.json"];
        assert_eq!(
            (refusal.reason, refusal.problems[0].message.as_str()),
            (RefusalReason::Conflict, UNTRIED)
        );
    }
}
