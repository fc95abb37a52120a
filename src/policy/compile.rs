//! From documents to one [`Policy`]: what selects the pod, in the order in which it decides.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use crate::digest::content_name;
use crate::problem::Problem;

use super::document::Document;
use super::lower::{LoweredPolicy, lower};
use super::scope::{Mode, PolicyScope};
use super::section::Sections;
use super::section::credential::CredentialClaims;
use super::section::destination::SpokenProviders;
use super::section::model::LabelClaims;
use super::section::shell::DirectoryClaims;
use super::section::tool_outputs::OutputsClaims;
use super::selector::selects;
use crate::yaml::field;

/// A pod's labels.
pub type Labels = BTreeMap<String, String>;

/// Everything that decides about one pod's traffic: immutable, replaced whole.
#[derive(Debug)]
pub struct Policy {
    revision: String,
    pub(super) mode: Mode,
    pub(super) sections: Sections,
    /// The policies that select the pod, the cluster's first.
    selected: Vec<Selected>,
    synced_at: Option<SystemTime>,
}

/// A policy that selects the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// `namespace/policy` or `-/policy`.
    pub id: String,
    /// Whether it only records.
    pub audit: bool,
}

/// A document with its compiled form.
struct Judged<'a> {
    document: &'a Document,
    lowered: LoweredPolicy,
    selected: bool,
}

impl Policy {
    /// Judges all documents, also those that do not select the pod, and keeps what selects it. Without a cluster
    /// only pod labels are compared: neither a policy's namespace nor a `namespaceSelector` is.
    pub fn compile(documents: &[Document], labels: &Labels) -> Result<Self, Vec<Problem>> {
        let (mut judged, mut problems) = judge(documents, |_| {});
        select(&mut judged, labels);
        problems.extend(conflicts(&judged));
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self::of(revision(documents), judged))
    }

    /// Never had a good one: denies everything.
    pub fn none() -> Self {
        Self {
            revision: "none".to_owned(),
            mode: Mode::Missing,
            sections: Sections::new(Vec::new(), Mode::Missing),
            selected: Vec::new(),
            synced_at: None,
        }
    }

    fn of(revision: String, judged: Vec<Judged<'_>>) -> Self {
        let selecting = judged.into_iter().filter(|judged| judged.selected);
        let policies: Vec<_> =
            selecting.map(|judged| (judged.lowered.owner, judged.lowered.sections)).collect();
        let selected: Vec<Selected> = policies
            .iter()
            .map(|(owner, _)| Selected { id: owner.policy.clone(), audit: owner.audit })
            .collect();
        let mode = Mode::of(selected.iter().map(|policy| policy.audit));
        Self { revision, mode, sections: Sections::new(policies, mode), selected, synced_at: None }
    }

    /// How many policies select the pod.
    pub fn count(&self) -> usize {
        self.selected.len()
    }

    /// The policies that select the pod, the cluster's first.
    pub fn selected(&self) -> &[Selected] {
        &self.selected
    }

    /// `sha256:` and 32 hex digits of what the documents say: comments, order and files do not matter.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Whether only Audit policies select the pod.
    pub fn audit_only(&self) -> bool {
        self.mode == Mode::AuditOnly
    }

    /// The policies that decide for the pod: Audit policies too where only such select it.
    pub(super) fn scope(&self) -> PolicyScope {
        if self.mode == Mode::AuditOnly { PolicyScope::All } else { PolicyScope::Enforced }
    }

    /// When the operator last vouched for these documents; none for files on a laptop.
    pub fn synced_at(&self) -> Option<SystemTime> {
        self.synced_at
    }

    /// The same policy, with the operator's `syncedAt`.
    #[must_use]
    pub fn with_synced_at(self, synced_at: Option<SystemTime>) -> Self {
        Self { synced_at, ..self }
    }
}

/// A digest over the documents as they were understood, so that whoever holds the same documents in another
/// form (the operator, from the cluster) comes to the same revision.
pub fn revision(documents: &[Document]) -> String {
    let mut texts: Vec<String> =
        documents.iter().map(|document| serde_json::to_string(document).unwrap_or_default()).collect();
    texts.sort();
    content_name(texts.join("\n").as_bytes())
}

/// Finds the problems of documents in pods of these labels, each set of labels by itself, as [`Policy::compile`] does, but
/// makes no policy.
pub fn contradictions(documents: &[Document], pods: &[Labels]) -> Vec<Problem> {
    let (mut judged, mut problems) = judge(documents, |lowered| {
        // Besides credentials and routes, two policies contradict each other only by rules with a provider. The others are dropped,
        // since there may be very many.
        let sections = &mut lowered.sections;
        sections.destinations.retain(|(_, rule)| rule.names_provider());
        sections.destinations.shrink_to_fit();
        sections.tools = Vec::new();
        sections.rules = Vec::new();
    });
    for labels in pods {
        select(&mut judged, labels);
        problems.extend(conflicts(&judged));
    }
    problems
}

/// Compiles each document by itself, the cluster's first, and gathers the problems; `trim` removes unneeded parts of each.
fn judge(documents: &[Document], trim: impl Fn(&mut LoweredPolicy)) -> (Vec<Judged<'_>>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut judged = Vec::with_capacity(documents.len());
    for document in documents {
        match lower(document) {
            Ok(mut lowered) => {
                trim(&mut lowered);
                judged.push(Judged { document, lowered, selected: false });
            }
            Err(mistakes) => {
                problems.extend(mistakes.into_iter().map(|problem| document.origin.locate(problem)))
            }
        }
    }
    judged.sort_by(|a, b| {
        let key = |judged: &Judged<'_>| (judged.lowered.owner.tier, judged.lowered.owner.policy.clone());
        key(a).cmp(&key(b))
    });
    (judged, problems)
}

fn select(judged: &mut [Judged<'_>], labels: &Labels) {
    for one in judged {
        one.selected = selects(one.document.spec.pod_selector.as_ref(), labels);
    }
}

/// Finds contradictions between documents.
fn conflicts(judged: &[Judged<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut policies: HashMap<&str, &Document> = HashMap::new();
    let (mut pod, mut namespaces, mut spoken) =
        (CredentialClaims::default(), CredentialClaims::default(), SpokenProviders::default());
    let (mut directories, mut outputs) = (DirectoryClaims::default(), OutputsClaims::default());
    let mode = Mode::of(judged.iter().filter(|one| one.selected).map(|one| one.lowered.owner.audit));
    let mut labels = LabelClaims::default();
    judged.iter().for_each(|one| labels.note(&one.lowered.owner, one.selected, &one.lowered.sections.models));
    for Judged { document, lowered, selected } in judged {
        let LoweredPolicy { owner, sections } = lowered;
        let mut say = |path: &str, message: String| {
            let problem = document.origin.locate(Problem::at(path, message));
            // Two checks may say the same of one credential.
            if !problems
                .iter()
                .any(|noted: &Problem| noted.path == problem.path && noted.file == problem.file)
            {
                problems.push(problem);
            }
        };
        if let Some(first) = policies.insert(&owner.policy, document) {
            let place = first.origin.place("metadata.name");
            say("metadata.name", format!("the policy {} is already written in {place}", owner.policy));
            continue;
        }
        for (path, credential) in &sections.credentials {
            let attached = *selected && mode.heeds(owner.audit);
            let of_pod = if attached { pod.within_pod(owner.tier, credential) } else { Vec::new() };
            let of_namespace = namespaces.within_namespace(&owner.namespace, credential);
            of_pod.into_iter().chain(of_namespace).for_each(|message| say(path, message));
        }
        for (path, value) in sections.data_loss.iter().flat_map(|section| &section.values) {
            let is_of_pod = *selected && mode.heeds(owner.audit);
            let clash = pod.value(&owner.namespace, value, is_of_pod);
            clash.into_iter().for_each(|message| say(path, message));
        }
        let unknown = labels.unknown((owner, *selected), mode, &sections.routes);
        unknown.into_iter().for_each(|(path, message)| say(&path, message));
        if *selected && mode.heeds(owner.audit) {
            let clashes =
                sections.models.iter().filter_map(|(path, model)| Some((path, labels.clash(model)?)));
            clashes.for_each(|(path, message)| say(&field::key(path, "name"), message));
            let clashes =
                sections.destinations.iter().filter_map(|(path, rule)| Some((path, spoken.clash(rule)?)));
            clashes.for_each(|(path, message)| say(&field::key(path, "provider"), message));
            let place = |path: &str| document.origin.place(path);
            let clash = directories.clash(owner.tier, &sections.shell, place);
            let clash =
                clash.into_iter().chain(outputs.clash(owner.tier, sections.tool_outputs.as_ref(), place));
            clash.for_each(|(path, message)| say(path, message));
        }
    }
    problems
}
