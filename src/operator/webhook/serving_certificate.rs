//! Fetches the webhook's serving certificate, stores the next one, and publishes its CAs in the webhook configurations.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use json_patch::Patch as JsonPatch;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch};
use kube::{Api, Client};
use tokio::sync::watch;

use super::bundle;
use super::certificate::{self, CAS, SecretChange};
use crate::drain::Drain;
use crate::operator::controller::metrics::OperatorMetrics;
use crate::operator::objects::{MANAGED_BY, MANAGER, SecretData, byte_strings, data, patching, writing};
use crate::operator::settings::{CertificateSource, Settings};
use crate::tls::serving::Presented;

/// How often the Secret is read, and how often while there is no certificate yet.
const PERIOD: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(1);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// On every replica, keeps the webhook serving the Secret's certificate; on the leader, renews the Secret.
pub struct Keeper {
    client: Client,
    settings: Arc<Settings>,
    presented: Arc<Presented>,
    metrics: Arc<OperatorMetrics>,
    /// Why the last look failed.
    trouble: Mutex<Option<String>>,
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum KeepingError {
    #[error("Secret {0} cannot be read ({1})")]
    Unread(String, kube::Error),
    #[error("Secret {0} cannot be written ({1}): the operator's Role must allow it to create and update it")]
    Unwritten(String, kube::Error),
    #[error(
        "there is no Secret {0}: cert-manager makes it; `kubectl -n {1} describe certificate` says why it has not"
    )]
    Missing(String, String),
    #[error("Secret {0} cannot be served: {1}")]
    Unusable(String, String),
    #[error("webhook configuration {0} cannot be brought up to date ({1})")]
    Unpublished(String, kube::Error),
    #[error("no certificate can be issued ({0})")]
    Unissued(rcgen::Error),
    #[error("the API server did not answer in time")]
    TooSlow,
}

impl Keeper {
    pub fn new(
        client: Client,
        settings: Arc<Settings>,
        presented: Arc<Presented>,
        metrics: Arc<OperatorMetrics>,
    ) -> Self {
        Self { client, settings, presented, metrics, trouble: Mutex::default() }
    }

    /// Looks at the Secret periodically until the drain begins.
    pub async fn run(self: Arc<Self>, mut leads: watch::Receiver<bool>, drain: Drain) {
        loop {
            let leading = *leads.borrow_and_update();
            let look = tokio::time::timeout(PATIENCE, self.look(leading));
            let looked = tokio::select! {
                looked = look => looked.unwrap_or(Err(KeepingError::TooSlow)),
                () = drain.stopping() => return,
            };
            let wait = match (&looked, self.presented.newest()) {
                (Ok(Looked::Changed), _) => Duration::ZERO,
                (_, None) => AGAIN,
                (Ok(Looked::Good) | Err(_), Some(_)) => PERIOD,
            };
            self.remember(looked.err());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // The error is an elector that has ended: then there is no change to wait for.
                Ok(()) = leads.changed() => {}
                () = drain.stopping() => return,
            }
        }
    }

    /// Why the webhook cannot be used, if so.
    pub fn unready(&self) -> Option<String> {
        let trouble = self.trouble().clone();
        match self.presented.newest() {
            None => {
                let why = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
                Some(format!("the webhook has no certificate yet{why}"))
            }
            Some(serving) if SystemTime::now() > serving.not_after => {
                let why = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
                Some(format!("the webhook's certificate has expired{why}"))
            }
            Some(_) => None,
        }
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs an error once, until it changes.
    fn remember(&self, error: Option<KeepingError>) {
        let now = error.map(|error| error.to_string());
        let mut before = self.trouble();
        if let Some(trouble) = now.as_ref().filter(|trouble| before.as_ref() != Some(trouble)) {
            tracing::warn!("the webhook's certificate: {trouble}");
        }
        *before = now;
    }

    async fn look(&self, leads: bool) -> Result<Looked, KeepingError> {
        let secret = self.secrets().get_opt(&self.settings.webhook.certificate).await;
        let secret = secret.map_err(|error| KeepingError::Unread(self.secret_name(), error))?;
        let data = secret.as_ref().map(data);
        if let Some(data) = &data {
            self.present(data)?;
        }
        match self.settings.webhook.source {
            CertificateSource::CertManager if data.is_none() => {
                Err(KeepingError::Missing(self.secret_name(), self.settings.namespace.clone()))
            }
            CertificateSource::CertManager => Ok(Looked::Good),
            CertificateSource::SelfManaged => self.manage(secret, data, leads).await,
        }
    }

    /// Serves the Secret's certificate if it has changed. One that cannot be served leaves the last good one in use.
    fn present(&self, data: &SecretData) -> Result<(), KeepingError> {
        let serving = match certificate::served(data) {
            Ok(serving) => serving,
            // The leader replaces it, and says why.
            Err(_) if self.settings.webhook.source == CertificateSource::SelfManaged => return Ok(()),
            Err(why) => return Err(KeepingError::Unusable(self.secret_name(), why)),
        };
        if self.presented.newest().is_none_or(|newest| newest.fingerprint() != serving.fingerprint()) {
            tracing::info!(fingerprint = serving.fingerprint(), "the webhook presents this certificate");
            self.metrics.webhook_certificate(serving.not_after);
            self.presented.present(serving);
        }
        Ok(())
    }

    /// Publishes the CAs, and only then continues a renewal.
    async fn manage(
        &self,
        secret: Option<Secret>,
        data: Option<SecretData>,
        leads: bool,
    ) -> Result<Looked, KeepingError> {
        if let Some(cas) = data.as_ref().and_then(|data| data.get(CAS)).filter(|cas| leads && !cas.is_empty())
        {
            self.publish(cas).await?;
        }
        let webhook = &self.settings.webhook;
        let names = certificate::names(&webhook.service, &self.settings.namespace);
        let change = certificate::due(data.as_ref(), &names, leads, SystemTime::now());
        match change.map_err(KeepingError::Unissued)? {
            Some(change) => self.store(secret, change).await,
            None => Ok(Looked::Good),
        }
    }

    /// Writes the Secret. If somebody else has written it since it was read, the write fails and the Secret is read
    /// again.
    async fn store(&self, before: Option<Secret>, change: SecretChange) -> Result<Looked, KeepingError> {
        let (secrets, name) = (self.secrets(), &self.settings.webhook.certificate);
        let written = match before {
            Some(mut secret) => {
                secret.data = Some(byte_strings(change.data));
                secrets.replace(name, &writing(), &secret).await
            }
            None => secrets.create(&writing(), &self.new_secret(change.data)).await,
        };
        match written {
            Ok(_) => {
                tracing::info!(secret = self.secret_name(), why = change.why, "the webhook's certificate")
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(KeepingError::Unwritten(self.secret_name(), error)),
        }
        Ok(Looked::Changed)
    }

    fn new_secret(&self, data: SecretData) -> Secret {
        let labels = [(MANAGED_BY, MANAGER), ("app.kubernetes.io/part-of", "postern")];
        Secret {
            metadata: ObjectMeta {
                name: Some(self.settings.webhook.certificate.clone()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(byte_strings(data)),
            ..Secret::default()
        }
    }

    /// Makes both webhook configurations trust these CAs. Skips one that does not exist.
    async fn publish(&self, cas: &[u8]) -> Result<(), KeepingError> {
        let webhook = &self.settings.webhook;
        let unpublished = |error| KeepingError::Unpublished(webhook.mutating.clone(), error);
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        if let Some(current) = mutating.get_opt(&webhook.mutating).await.map_err(unpublished)? {
            let webhooks = current.webhooks.iter().flatten();
            let named = webhooks.map(|each| (each.name.as_str(), each.client_config.ca_bundle.as_ref()));
            apply(&mutating, &webhook.mutating, bundle::patch(named, cas)).await.map_err(unpublished)?;
        }
        let unpublished = |error| KeepingError::Unpublished(webhook.validating.clone(), error);
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        if let Some(current) = validating.get_opt(&webhook.validating).await.map_err(unpublished)? {
            let webhooks = current.webhooks.iter().flatten();
            let named = webhooks.map(|each| (each.name.as_str(), each.client_config.ca_bundle.as_ref()));
            apply(&validating, &webhook.validating, bundle::patch(named, cas)).await.map_err(unpublished)?;
        }
        Ok(())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    fn secret_name(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.webhook.certificate)
    }
}

/// The result of a look.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    Good,
    /// The Secret was written, by us or by somebody else, and must be read again.
    Changed,
}

async fn apply<K>(configurations: &Api<K>, name: &str, patch: Option<JsonPatch>) -> Result<(), kube::Error>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let Some(patch) = patch else { return Ok(()) };
    configurations.patch(name, &patching(), &Patch::<()>::Json(patch)).await?;
    tracing::info!(configuration = name, "the webhook configuration has new CAs");
    Ok(())
}
