//! Reconciles one namespace: computes what its policies, pods and Secrets require, compares it with what exists, and writes it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::task::JoinError;

use super::credentials::{Gathered, SecretNamespaces, gather};
use super::desired::{DesiredState, choose};
use super::edit::{Edit, Outline};
use super::queue::TurnOutcome;
use super::report::{NamespaceReport, Trouble};
use super::watch::NamespaceInputs;
use super::{Controller, certificate};
use crate::digest::content_name;
use crate::operator::authority::CaConstraints;
use crate::operator::objects::{self, Current, ObjectError, apply, delete};
use crate::pod;
use crate::policy::document::Document;

/// How long one turn may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("its policies cannot be judged: the judge panicked, or was stopped")]
    Judging(#[from] JoinError),
}

/// The CA that a namespace has.
#[derive(Debug, Default)]
struct Ca {
    data: BTreeMap<String, Vec<u8>>,
    trouble: Option<Trouble>,
}

impl Controller {
    /// Takes one turn, and records how it ended.
    pub(super) async fn turn(&self, namespace: String) -> (String, TurnOutcome) {
        let reconciled = tokio::time::timeout(PATIENCE, self.reconcile(&namespace, SystemTime::now())).await;
        let error = match reconciled {
            Ok(Ok(turn)) => {
                self.metrics.reconciled(true);
                return (namespace, turn);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the API server took longer than {} s", PATIENCE.as_secs()),
        };
        tracing::warn!(namespace, error, "a namespace could not be brought up to date");
        self.metrics.reconciled(false);
        self.reports.failed(&namespace, error);
        self.outdated();
        (namespace, TurnOutcome::Failed)
    }

    /// Brings a namespace up to date. If a step fails, earlier writes stay; their order makes that harmless: the CA
    /// that a revision needs, the credentials, then the revision.
    pub(super) async fn reconcile(&self, namespace: &str, now: SystemTime) -> Result<TurnOutcome, TurnError> {
        let Some(scene) = self.scene(namespace) else {
            self.forget(namespace);
            return Ok(TurnOutcome::Gone);
        };
        if scene.leaving || !scene.is_kept() {
            self.forget(namespace);
            if !scene.leaving {
                self.withdraw(namespace).await?;
            }
            return Ok(TurnOutcome::Done);
        }
        let outline = Outline::of(&scene.candidates);
        let before = self.reports.of(namespace);
        let edit = before.map_or(Edit::Nothing, |report| report.outline.judge(&scene.candidates));
        let current = Current::read(&self.client, namespace).await?;
        let chosen = self.choose(scene, current.policy.clone()).await?;
        // The CA comes first: a revision whose hosts no CA vouches for would only be denied.
        let ca = self.keep_ca(namespace, &chosen.constraints, &current, now).await?;
        let gathered = self.keep_credentials(namespace, &chosen.documents, &current).await?;
        let synced_at = self.keep_policy(namespace, &chosen, current.policy.as_ref(), now).await?;
        self.metrics
            .ca(namespace, ca.data.get(pod::CA_CERTIFICATE_KEY).and_then(|pem| certificate::not_after(pem)));
        let report = NamespaceReport {
            left_out: chosen.left_out(),
            in_force: chosen.in_force(),
            revision: chosen.revision,
            secrets: digest(&[&ca.data, &gathered.data]),
            settings: self.settings.gateway.revision(),
            synced_at,
            caveats: chosen.constraints.caveats(),
            refused: chosen.refused,
            credentials: gathered.missing,
            sources: gathered.sources,
            trouble: chosen.trouble.or(ca.trouble),
            older_revision: chosen.older_revision,
            beyond: chosen.beyond,
            outline,
        };
        self.reports.put(namespace, report);
        self.stamps.edited(namespace, edit);
        self.published.notify_one();
        self.outdated();
        Ok(TurnOutcome::Done)
    }

    /// Deletes the operator's objects of a namespace that has no injected pods and wants none.
    async fn withdraw(&self, namespace: &str) -> Result<(), ObjectError> {
        for (kind, name) in self.watched.kept(namespace) {
            tracing::info!(namespace, name, "the namespace is not injected any more");
            if kind == "ConfigMap" {
                delete::<ConfigMap>(&self.client, namespace, name).await?;
            } else {
                delete::<Secret>(&self.client, namespace, name).await?;
            }
        }
        Ok(())
    }

    fn forget(&self, namespace: &str) {
        self.reports.forget(namespace);
        self.metrics.ca(namespace, None);
        self.outdated();
    }

    /// Computes on a thread of its own: for thousands of policies this takes a while, and no other namespace shall
    /// wait.
    async fn choose(
        &self,
        scene: NamespaceInputs,
        current: Option<ConfigMap>,
    ) -> Result<DesiredState, JoinError> {
        let gateway = &self.settings.gateway;
        let others = gateway.settings.len() + gateway.upstream_roots.len() + 1024;
        let floors = self.readings.floors();
        let known = self.last_release;
        tokio::task::spawn_blocking(move || choose(&scene, current.as_ref(), floors, others, known)).await
    }

    /// Issues the namespace's CA if it is due. Without a root nothing is issued, and policies are still published: what
    /// they tighten holds, and hosts that the CA does not vouch for are denied.
    async fn keep_ca(
        &self,
        namespace: &str,
        wanted: &CaConstraints,
        current: &Current,
        now: SystemTime,
    ) -> Result<Ca, ObjectError> {
        let issued = current.ca.as_ref();
        let trouble = |reason, message| Ca {
            data: issued.cloned().unwrap_or_default(),
            trouble: Some(Trouble { reason, message }),
        };
        let missing = || Err("the root CA has not been read yet".to_owned());
        let root = match self.root.now().unwrap_or_else(missing) {
            Ok(root) => root,
            Err(why) => return Ok(trouble("RootUnavailable", format!("no CA can be issued: {why}"))),
        };
        let Some(due) = root.due(issued, wanted, now) else {
            let data = issued.cloned().unwrap_or_default();
            return Ok(Ca { data, trouble: None });
        };
        let data = match root.issue(namespace, wanted, issued, now) {
            Ok(data) => data,
            Err(error) => {
                return Ok(trouble("CaNotIssued", format!("the namespace's CA cannot be issued: {error}")));
            }
        };
        apply(&self.client, &objects::secret(namespace, pod::CA_SECRET, &data)).await?;
        tracing::info!(namespace, ?due, "issued the namespace's CA");
        Ok(Ca { data, trouble: None })
    }

    async fn keep_credentials(
        &self,
        namespace: &str,
        documents: &BTreeMap<String, Document>,
        current: &Current,
    ) -> Result<Gathered, ObjectError> {
        let places = SecretNamespaces { namespace, sources: &self.settings.credentials.source_namespaces };
        let gathered = gather(&self.client, places, documents).await?;
        if current.credentials.as_ref() != Some(&gathered.data) {
            apply(&self.client, &objects::secret(namespace, pod::CREDENTIALS_SECRET, &gathered.data)).await?;
            let credentials = gathered.data.len();
            tracing::info!(namespace, credentials, "wrote the namespace's credentials");
        }
        Ok(gathered)
    }

    /// Writes the ConfigMap if its content changes. Returns its `syncedAt`.
    async fn keep_policy(
        &self,
        namespace: &str,
        chosen: &DesiredState,
        current: Option<&ConfigMap>,
        now: SystemTime,
    ) -> Result<SystemTime, ObjectError> {
        let mut data = chosen.packed.data.clone();
        let gateway = &self.settings.gateway;
        data.insert(pod::SETTINGS_KEY.to_owned(), gateway.settings.clone());
        if !gateway.upstream_roots.is_empty() {
            data.insert(pod::UPSTREAM_ROOTS_KEY.to_owned(), gateway.upstream_roots.clone());
        }
        // Older gateways read REVISION_KEY alone, so it names the form that they can read.
        if let Some(older) = &chosen.older_revision {
            data.insert(pod::REVISION_KEY.to_owned(), older.clone());
            data.insert(pod::NEWEST_REVISION_KEY.to_owned(), chosen.revision.clone());
        } else {
            data.insert(pod::REVISION_KEY.to_owned(), chosen.revision.clone());
        }
        let binary = &chosen.packed.binary_data;
        if let Some(map) = current {
            let mut there = map.data.clone().unwrap_or_default();
            let synced = there.remove(pod::SYNCED_AT_KEY);
            let same = there == data && map.binary_data.as_ref().unwrap_or(&BTreeMap::new()) == binary;
            if let Some(synced_at) = synced.as_deref().and_then(moment).filter(|_| same) {
                return Ok(synced_at);
            }
        }
        data.insert(pod::SYNCED_AT_KEY.to_owned(), written(now));
        let map = ConfigMap {
            metadata: objects::metadata(namespace, pod::POLICY_CONFIG_MAP),
            data: Some(data),
            binary_data: (!binary.is_empty()).then(|| binary.clone()),
            ..ConfigMap::default()
        };
        apply(&self.client, &map).await?;
        let (revision, policies) = (chosen.revision.as_str(), chosen.documents.len());
        tracing::info!(namespace, revision, policies, "published the namespace's policies");
        Ok(now)
    }
}

/// A moment as RFC 3339, whole seconds.
pub(super) fn written(moment: SystemTime) -> String {
    let moment = OffsetDateTime::from(moment);
    moment.replace_nanosecond(0).unwrap_or(moment).format(&Rfc3339).unwrap_or_default()
}

fn moment(text: &str) -> Option<SystemTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(SystemTime::from)
}

/// A digest of the content of Secrets. The CA's key is part of it, so that nobody can guess a credential and check the
/// guess against the digest.
fn digest(secrets: &[&BTreeMap<String, Vec<u8>>]) -> String {
    let mut content = Vec::new();
    for (key, value) in secrets.iter().flat_map(|data| data.iter()) {
        for part in [key.as_bytes(), value] {
            content.extend_from_slice(&(part.len() as u64).to_be_bytes());
            content.extend_from_slice(part);
        }
    }
    content_name(&content)
}
