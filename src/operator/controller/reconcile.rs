//! One turn of one namespace: what its policies, pods and secrets ask for is compared with what is there, and written.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::credentials::{Gathered, gather};
use super::objects::{self, Current, ObjectError, apply, delete};
use super::packing::{Packed, pack, unpack};
use super::publish::{Refusal, is_cluster, publish};
use super::queue::Turn;
use super::report::{Report, Trouble};
use super::watch::Scene;
use super::{Controller, certificate};
use crate::operator::authority::Constraints;
use crate::pod;
use crate::policy::compile::revision;
use crate::policy::document::Document;

/// How long one turn may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a namespace is to have.
#[derive(Debug)]
struct Chosen {
    documents: BTreeMap<String, Document>,
    refused: BTreeMap<String, Refusal>,
    packed: Packed,
    trouble: Option<Trouble>,
}

/// The CA that a namespace has.
#[derive(Debug, Default)]
struct Ca {
    data: BTreeMap<String, Vec<u8>>,
    trouble: Option<Trouble>,
}

impl Controller {
    /// Takes one turn, notes how it ended, and says so.
    pub(super) async fn turn(&self, namespace: String) -> (String, Turn) {
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
        (namespace, Turn::Failed)
    }

    /// Brings a namespace up to date. What was written stays written where a later step fails, in an order in which
    /// that harms nobody: the CA that a revision needs, the credentials, then the revision.
    pub(super) async fn reconcile(&self, namespace: &str, now: SystemTime) -> Result<Turn, ObjectError> {
        let Some(scene) = self.scene(namespace) else {
            self.forget(namespace);
            return Ok(Turn::Gone);
        };
        if scene.leaving || !scene.is_kept() {
            self.forget(namespace);
            if !scene.leaving {
                self.withdraw(namespace).await?;
            }
            return Ok(Turn::Done);
        }
        let current = Current::read(&self.client, namespace).await?;
        let chosen = self.choose(&scene, &current);
        let all: Vec<Document> = chosen.documents.values().cloned().collect();
        let wanted = Constraints::of(&all);
        let ca = self.keep_ca(namespace, &wanted, &current, now).await?;
        let gathered = self.keep_credentials(namespace, &chosen.documents, &current).await?;
        let synced_at = self.keep_policy(namespace, &chosen, current.policy.as_ref(), now).await?;
        self.metrics
            .ca(namespace, ca.data.get(pod::CA_CERTIFICATE_KEY).and_then(|pem| certificate::not_after(pem)));
        let report = Report {
            revision: revision(&all),
            secrets: digest(&[&ca.data, &gathered.data]),
            synced_at,
            left_out: left_out(&wanted, &chosen.documents),
            caveats: wanted.caveats(),
            documents: chosen.documents,
            refused: chosen.refused,
            credentials: gathered.missing,
            sources: gathered.sources,
            trouble: chosen.trouble.or(ca.trouble),
        };
        self.reports.put(namespace, report);
        self.published.notify_one();
        self.outdated();
        Ok(Turn::Done)
    }

    /// A namespace that has no injected pods and wants none has no objects of the operator's.
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

    fn choose(&self, scene: &Scene, current: &Current) -> Chosen {
        let last = current.policy.as_ref().map(unpack).unwrap_or_default();
        let last_good = self.readings.last_good(last.clone(), &scene.labels);
        let published = publish(&scene.candidates, &last_good, &scene.pods);
        let gateway = &self.settings.gateway;
        let others = gateway.settings.len() + gateway.upstream_roots.len() + 1024;
        let (documents, packed, trouble) = match pack(&published.documents, others) {
            Ok(packed) => (published.documents, packed, None),
            Err(error) => {
                let (documents, packed, instead) = fallen_back(&published.documents, last, others);
                let message = format!("{error}; {instead}");
                (documents, packed, Some(Trouble { reason: "TooLarge", message }))
            }
        };
        Chosen { documents, refused: published.refused, packed, trouble }
    }

    /// Issues the namespace's CA where it is due. Without a root nothing is issued and policies are published all the
    /// same: what they tighten holds, and what they inspect that the CA cannot vouch for is denied.
    async fn keep_ca(
        &self,
        namespace: &str,
        wanted: &Constraints,
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
        let gathered = gather(&self.client, namespace, documents).await?;
        if current.credentials.as_ref() != Some(&gathered.data) {
            apply(&self.client, &objects::secret(namespace, pod::CREDENTIALS_SECRET, &gathered.data)).await?;
            let credentials = gathered.data.len();
            tracing::info!(namespace, credentials, "wrote the namespace's credentials");
        }
        Ok(gathered)
    }

    /// Writes the ConfigMap where it is to say something else. Answers when it was vouched for.
    async fn keep_policy(
        &self,
        namespace: &str,
        chosen: &Chosen,
        current: Option<&ConfigMap>,
        now: SystemTime,
    ) -> Result<SystemTime, ObjectError> {
        let all: Vec<Document> = chosen.documents.values().cloned().collect();
        let mut data = chosen.packed.data.clone();
        let gateway = &self.settings.gateway;
        data.insert(pod::SETTINGS_KEY.to_owned(), gateway.settings.clone());
        if !gateway.upstream_roots.is_empty() {
            data.insert(pod::UPSTREAM_ROOTS_KEY.to_owned(), gateway.upstream_roots.clone());
        }
        data.insert(pod::REVISION_KEY.to_owned(), revision(&all));
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
        let (revision, policies) = (revision(&all), all.len());
        tracing::info!(namespace, revision, policies, "published the namespace's policies");
        Ok(now)
    }
}

/// What of each policy the CA has no room for.
fn left_out(wanted: &Constraints, documents: &BTreeMap<String, Document>) -> BTreeMap<String, Vec<String>> {
    let of_each = documents.iter().map(|(key, document)| (key.clone(), wanted.left_out_of(document)));
    of_each.filter(|(_, hosts)| !hosts.is_empty()).collect()
}

/// What is published where not everything fits, and that in words. A namespace's policies, as many as it may have, do not
/// keep a change of the cluster's from being in force.
fn fallen_back(
    wanted: &BTreeMap<String, Document>,
    last: BTreeMap<String, Document>,
    others: usize,
) -> (BTreeMap<String, Document>, Packed, &'static str) {
    let of_cluster = |documents: &BTreeMap<String, Document>| -> BTreeMap<String, Document> {
        documents.iter().filter(|(key, _)| is_cluster(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let cluster = of_cluster(wanted);
    let known =
        |documents: &BTreeMap<String, Document>| revision(&documents.values().cloned().collect::<Vec<_>>());
    if known(&of_cluster(&last)) != known(&cluster)
        && let Ok(packed) = pack(&cluster, others)
    {
        return (cluster, packed, "the cluster's policies alone are in force");
    }
    let packed = pack(&last, others).unwrap_or_default();
    (last, packed, "what was published before stays in force")
}

/// A moment as RFC 3339, whole seconds.
pub(super) fn written(moment: SystemTime) -> String {
    let moment = OffsetDateTime::from(moment);
    moment.replace_nanosecond(0).unwrap_or(moment).format(&Rfc3339).unwrap_or_default()
}

fn moment(text: &str) -> Option<SystemTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(SystemTime::from)
}

/// What tells one content of Secrets from another. The CA's key is among it: from the digest alone nobody can try out
/// what a credential is.
fn digest(secrets: &[&BTreeMap<String, Vec<u8>>]) -> String {
    let mut all = Vec::new();
    for (key, value) in secrets.iter().flat_map(|data| data.iter()) {
        for part in [key.as_bytes(), value] {
            all.extend_from_slice(&(part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
    }
    let mut hex = crate::digest::sha256_hex(&all);
    hex.truncate(16);
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, cluster_policy, policy};
    use super::*;

    fn documents(texts: &[String]) -> BTreeMap<String, Document> {
        let candidates = texts.iter().map(|text| candidate(text));
        candidates.map(|one| (one.key, one.read.unwrap())).collect()
    }

    fn cluster(action: &str) -> String {
        cluster_policy(
            "floor",
            &format!("destinations: [{{name: d, hosts: [one.example], action: {action}}}]"),
        )
    }

    #[test]
    fn what_a_namespace_adds_past_the_bound_does_not_keep_the_cluster_s_change_out() {
        let own = policy("a", "destinations: [{name: d, hosts: [two.example], action: Tunnel}]");
        let last = documents(&[cluster("Tunnel"), own.clone()]);
        let wanted = documents(&[cluster("Deny"), own.clone()]);
        let (published, packed, _) = fallen_back(&wanted, last.clone(), 0);
        assert_eq!(published.keys().collect::<Vec<_>>(), ["cluster-floor.json"]);
        assert!(packed.data["cluster-floor.json"].contains("Deny"));
        let unchanged = documents(&[cluster("Tunnel"), own]);
        let (published, _, said) = fallen_back(&unchanged, last, 0);
        assert_eq!((published.len(), said), (2, "what was published before stays in force"));
    }
}
