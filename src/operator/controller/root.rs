//! Keeps the Secret of the root CA: creates it, reads it periodically, and advances its rotation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::Api;

use super::{Controller, certificate, every};
use crate::operator::authority::RootCa;
use crate::operator::objects::{self, SecretData, reason, writing};
use crate::operator::settings::RootSource;

/// How often the Secret is read.
const PERIOD: Duration = Duration::from_secs(5);
/// The annotation by which an administrator asks for a new root: the time of the request, RFC 3339.
const ROTATE: &str = "postern.dev/rotate";
/// Kubernetes' type of a Secret with `tls.crt` and `tls.key`.
const TLS: &str = "kubernetes.io/tls";

/// The root as it was read last.
#[derive(Debug, Default)]
pub(super) struct KeptRoot(Mutex<RootState>);

#[derive(Debug, Default)]
struct RootState {
    data: Option<SecretData>,
    root: Option<Result<Arc<RootCa>, String>>,
}

impl KeptRoot {
    /// The root, or why there is none; `None` before the first look.
    pub(super) fn now(&self) -> Option<Result<Arc<RootCa>, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).root.clone()
    }

    /// Takes the Secret's data as it was read. Returns whether it has changed.
    fn take(&self, data: Option<SecretData>, missing: &str, now: SystemTime) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.root.is_some() && state.data == data {
            return false;
        }
        let loaded = match &data {
            Some(data) => RootCa::load(data, now).map(Arc::new).map_err(|error| error.to_string()),
            None => Err(missing.to_owned()),
        };
        if let Err(why) = &loaded {
            tracing::error!(why, "no CA can be issued");
        }
        (state.data, state.root) = (data, Some(loaded));
        true
    }
}

impl Controller {
    /// Keeps the root, forever.
    pub(super) async fn keep_root(&self) {
        let mut period = every(PERIOD);
        loop {
            period.tick().await;
            if let Err(error) = self.look_at_root(SystemTime::now()).await {
                tracing::warn!(error = reason(&error), "the root's Secret cannot be read or written");
            }
        }
    }

    /// Reads the root's Secret once. If the operator generates the root, also creates it or advances its rotation.
    pub(super) async fn look_at_root(&self, now: SystemTime) -> Result<(), kube::Error> {
        let settings = &self.settings.root;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let mut secret = secrets.get_opt(&settings.secret).await?;
        if settings.source == RootSource::Generated {
            secret = match secret {
                Some(secret) => self.advance(&secrets, secret, now).await?,
                None => self.create_root(&secrets, now).await?,
            };
        }
        let data = secret.as_ref().map(objects::data);
        let place = format!("{}/{}", self.settings.namespace, settings.secret);
        let missing = match settings.source {
            RootSource::Generated => format!("the Secret {place} of the root CA cannot be made"),
            RootSource::Given => {
                format!("there is no Secret {place}: create it with tls.crt and tls.key, the root CA")
            }
        };
        self.metrics.root(data.as_ref().and_then(|data| certificate::not_after(data.get("tls.crt")?)));
        if self.root.take(data, &missing, now) {
            self.touch_all();
            self.rooted.notify_waiters();
        }
        Ok(())
    }

    /// Creates the Secret. If somebody else was faster, theirs is the root.
    async fn create_root(
        &self,
        secrets: &Api<Secret>,
        now: SystemTime,
    ) -> Result<Option<Secret>, kube::Error> {
        let data = match RootCa::generate(now) {
            Ok(data) => data,
            Err(error) => {
                tracing::error!(%error, "a root CA cannot be made");
                return Ok(None);
            }
        };
        let name = &self.settings.root.secret;
        let mut secret = objects::secret(&self.settings.namespace, name, &data);
        secret.type_ = Some(TLS.to_owned());
        match secrets.create(&writing(), &secret).await {
            Ok(created) => {
                tracing::info!(secret = name.as_str(), "made a root CA");
                Ok(Some(created))
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => secrets.get_opt(name).await,
            Err(error) => Err(error),
        }
    }

    /// Writes the next step of the rotation, if one is due or requested. The resource version makes one of two
    /// concurrent writers fail; it reads again.
    async fn advance(
        &self,
        secrets: &Api<Secret>,
        secret: Secret,
        now: SystemTime,
    ) -> Result<Option<Secret>, kube::Error> {
        let wish = secret.annotations().get(ROTATE).cloned();
        let next = RootCa::load(&objects::data(&secret), now).and_then(|root| {
            let asked = wish.as_ref().is_some_and(|wish| root.is_asked(wish, now));
            root.distributing(self.settings.root.distribution).advanced(asked, now)
        });
        let data = match next {
            Ok(Some(data)) => data,
            Ok(None) => return Ok(Some(secret)),
            Err(error) => {
                tracing::error!(%error, "the root CA cannot be read or rotated");
                return Ok(Some(secret));
            }
        };
        let mut written = secret.clone();
        written.data = Some(objects::byte_strings(data));
        let name = written.name_any();
        match secrets.replace(&name, &writing(), &written).await {
            Ok(replaced) => {
                tracing::info!(secret = name.as_str(), "the root CA's rotation goes on");
                Ok(Some(replaced))
            }
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(Some(secret)),
            Err(error) => Err(error),
        }
    }
}
