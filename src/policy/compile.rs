//! From documents to one [`Policy`]: what selects the pod, in the order in which it decides.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use crate::digest::content_name;
use crate::problem::Problem;

use super::conflict::{Claims, Spoken};
use super::credential::Credential;
use super::document::Document;
use super::index::Index;
use super::inspection::Inspection;
use super::lower::{Lowered, lower};
use super::ports::Ports;
use super::rule::Rule;
use super::selector::selects;
use super::settings::Settings;
use super::tool::Rules;
use crate::name::host::DnsName;
use crate::yaml::field;

/// A pod's labels.
pub type Labels = BTreeMap<String, String>;

/// Everything that decides about one pod's traffic: immutable, replaced whole.
#[derive(Debug)]
pub struct Policy {
    revision: String,
    pub(super) mode: Mode,
    /// The cluster's rules first, each tier in the order of its policies' ids.
    pub(super) rules: Vec<Rule>,
    pub(super) index: Index,
    pub(super) ports: Ports,
    pub(super) tools: Rules,
    pub(super) settings: Settings,
    /// Hosts that no rule names and whose refusal is shown inside TLS all the same.
    pub(super) companions: BTreeSet<DnsName>,
    credentials: Vec<Arc<Credential>>,
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

/// Who selects the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No policy was ever loaded.
    Missing,
    /// No policy selects the pod.
    Unselected,
    /// Only Audit policies do.
    AuditOnly,
    /// Enforce policies do; `audits` says whether Audit policies do too.
    Enforced { audits: bool },
}

impl Mode {
    /// The mode of a pod that these policies select, each Audit or not.
    fn of(audits: impl Iterator<Item = bool>) -> Self {
        let (mut audit, mut enforce) = (false, false);
        audits.for_each(|audits| if audits { audit = true } else { enforce = true });
        match (audit, enforce) {
            (false, false) => Self::Unselected,
            (true, false) => Self::AuditOnly,
            (audits, true) => Self::Enforced { audits },
        }
    }

    /// Whether such a policy's credentials are attached: beside an Enforce policy, an Audit policy only records.
    fn heeds(self, audit: bool) -> bool {
        !audit || self == Self::AuditOnly
    }
}

/// A document that was judged, with what it compiled to.
struct Judged<'a> {
    document: &'a Document,
    lowered: Lowered,
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
            rules: Vec::new(),
            index: Index::default(),
            ports: Ports::default(),
            tools: Rules::default(),
            settings: Settings::new(&[], |_| true),
            companions: BTreeSet::new(),
            credentials: Vec::new(),
            selected: Vec::new(),
            synced_at: None,
        }
    }

    fn of(revision: String, judged: Vec<Judged<'_>>) -> Self {
        let selected: Vec<Lowered> =
            judged.into_iter().filter(|one| one.selected).map(|one| one.lowered).collect();
        let names: Vec<Selected> = selected
            .iter()
            .map(|lowered| Selected { id: lowered.scope.policy.clone(), audit: lowered.scope.audit })
            .collect();
        let mode = Mode::of(selected.iter().map(|lowered| lowered.scope.audit));
        let settings = Settings::new(&selected, |scope| mode.heeds(scope.audit));
        let mut rules = Vec::new();
        let mut tools = Vec::new();
        let mut credentials = Vec::new();
        for lowered in selected {
            if mode.heeds(lowered.scope.audit) {
                credentials
                    .extend(lowered.credentials.into_iter().map(|(_, credential)| Arc::new(credential)));
            }
            rules.extend(lowered.rules.into_iter().map(|(_, rule)| rule));
            tools.extend(lowered.tools);
        }
        for rule in &mut rules {
            let audit_only = mode == Mode::AuditOnly;
            rule.alone =
                rule.grant.clone().map(|grant| Arc::new(Inspection::new(vec![vec![grant]], audit_only)));
        }
        let index = Index::new(&rules);
        let ports = Ports::new(&rules);
        Self {
            revision,
            mode,
            rules,
            index,
            ports,
            tools: Rules::new(tools),
            settings,
            companions: BTreeSet::new(),
            credentials,
            selected: names,
            synced_at: None,
        }
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

    /// `failurePolicy`: whether an answer that cannot be understood passes as it came. Of several policies all that
    /// write it must say Open. Where only Audit policies select the pod nothing is refused for it.
    pub fn failure_open(&self) -> bool {
        self.audit_only() || self.settings.failure_open
    }

    /// The credentials of the policies that decide, the cluster's first.
    pub fn credentials(&self) -> &[Arc<Credential>] {
        &self.credentials
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

/// What stands against documents in pods of these labels, each set of labels by itself: what [`Policy::compile`] says,
/// without the policies.
pub fn contradictions(documents: &[Document], pods: &[Labels]) -> Vec<Problem> {
    let (mut judged, mut problems) = judge(documents, |lowered| {
        // All that two policies can contradict each other by, besides credentials: there may be very many others.
        lowered.rules.retain(|(_, rule)| rule.grant.as_ref().is_some_and(|grant| grant.provider.is_some()));
        lowered.rules.shrink_to_fit();
        lowered.tools = Vec::new();
    });
    for labels in pods {
        select(&mut judged, labels);
        problems.extend(conflicts(&judged));
    }
    problems
}

/// Compiles each document by itself, the cluster's first, and tells of those that cannot be; `trim` takes away what is not
/// wanted of each.
fn judge(documents: &[Document], trim: impl Fn(&mut Lowered)) -> (Vec<Judged<'_>>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut judged = Vec::with_capacity(documents.len());
    for document in documents {
        match lower(document) {
            Ok(mut lowered) => {
                trim(&mut lowered);
                judged.push(Judged { document, lowered, selected: false });
            }
            Err(found) => problems.extend(found.into_iter().map(|problem| document.origin.locate(problem))),
        }
    }
    judged.sort_by(|a, b| {
        let key = |judged: &Judged<'_>| (judged.lowered.scope.tier, judged.lowered.scope.policy.clone());
        key(a).cmp(&key(b))
    });
    (judged, problems)
}

fn select(judged: &mut [Judged<'_>], labels: &Labels) {
    for one in judged {
        one.selected = selects(one.document.spec.pod_selector.as_ref(), labels);
    }
}

/// What documents must not share.
fn conflicts(judged: &[Judged<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut policies: HashMap<&str, &Document> = HashMap::new();
    let (mut pod, mut namespaces, mut spoken) = (Claims::default(), Claims::default(), Spoken::default());
    let mode = Mode::of(judged.iter().filter(|one| one.selected).map(|one| one.lowered.scope.audit));
    for Judged { document, lowered, selected } in judged {
        let scope = &lowered.scope;
        let mut say = |path: &str, message: String| {
            let problem = document.origin.locate(Problem::at(path, message));
            // Two checks may say the same of one credential.
            if !problems.iter().any(|told: &Problem| told.path == problem.path && told.file == problem.file) {
                problems.push(problem);
            }
        };
        if let Some(first) = policies.insert(&scope.policy, document) {
            let place = first.origin.place("metadata.name");
            say("metadata.name", format!("the policy {} is already written in {place}", scope.policy));
            continue;
        }
        for (path, credential) in &lowered.credentials {
            let attached = *selected && mode.heeds(scope.audit);
            let of_pod = if attached { pod.within_pod(scope.tier, credential) } else { Vec::new() };
            let of_namespace = namespaces.within_namespace(&scope.namespace, credential);
            of_pod.into_iter().chain(of_namespace).for_each(|message| say(path, message));
        }
        if *selected && mode.heeds(scope.audit) {
            let clashes = lowered.rules.iter().filter_map(|(path, rule)| Some((path, spoken.clash(rule)?)));
            clashes.for_each(|(path, message)| say(&field::key(path, "provider"), message));
        }
    }
    problems
}
