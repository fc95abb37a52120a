//! Copies the keys that a namespace's policies refer to into its one Secret of credentials, each under its name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;

use super::candidate::is_cluster;
use super::report::SecretId;
use crate::operator::objects::{self, ObjectError};
use crate::pod;
use crate::policy::data_loss::NamedValue;
use crate::policy::document::{Document, SecretKeyRef};
use crate::secret::GREATEST;

/// The most Secrets that are read for one namespace: more would keep its policies waiting.
const MOST_SECRETS: usize = 256;
/// A Secret of this type gives the rights of its ServiceAccount: a policy's author must not get them by naming it.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// The most bytes of values that the API server accepts in one Secret.
const BOUND: usize = 1 << 20;

/// The credentials of a namespace, as far as they were found.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// By credential name.
    pub(super) data: BTreeMap<String, Vec<u8>>,
    /// What is missing and how to mend it, by the key of the policy.
    pub(super) missing: BTreeMap<String, Vec<String>>,
    /// Which Secrets were read, and the version of each.
    pub(super) sources: BTreeMap<SecretId, Option<String>>,
}

/// The namespaces in which the Secrets of a namespace's policies may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecretNamespaces<'a> {
    /// The namespace of the pods.
    pub(super) namespace: &'a str,
    /// The namespaces of keys that the cluster's policies may name besides.
    pub(super) sources: &'a [String],
}

/// A Secret as it was read (none if it does not exist), or why it may not be read.
type SecretLookup = Result<Option<Secret>, String>;

/// Reads the Secrets that the documents of a namespace refer to: in that namespace, and, for policies of the cluster,
/// in the source namespaces that the chart lists. Without that list, authors of the cluster's policies could read any
/// Secret with the operator's rights (threat H8). Leaves out missing ones; the gateway then denies what needs them.
///
/// # Errors
/// Fails if the API server does not answer: no Secret may be taken for missing then.
pub(super) async fn gather(
    client: &Client,
    places: SecretNamespaces<'_>,
    documents: &BTreeMap<String, Document>,
) -> Result<Gathered, ObjectError> {
    let mut found: BTreeMap<SecretId, SecretLookup> = BTreeMap::new();
    for Referred { key, reference, .. } in references(documents) {
        let Ok(source) = places.source(key, reference) else { continue };
        if found.contains_key(&source) {
            continue;
        }
        if found.len() >= MOST_SECRETS {
            break;
        }
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &source.namespace);
        let secret = match secrets.get_opt(&source.name).await {
            Ok(secret) => Ok(secret),
            Err(kube::Error::Api(status)) if status.is_forbidden() => Err(status.message.clone()),
            Err(error) => return Err(objects::failed("read", &source.namespace, &source.name, error)),
        };
        found.insert(source, secret);
    }
    let (mut gathered, mut taken) = (Gathered::default(), 0);
    for Referred { key, file, what, reference } in references(documents) {
        let value = places
            .source(key, reference)
            .and_then(|source| value(&source, &reference.key, found.get(&source)));
        // Keys are sorted, so the cluster's policies come first.
        match value.and_then(|bytes| within(&mut taken, bytes)) {
            Ok(bytes) => drop(gathered.data.insert(file, bytes)),
            Err(why) => {
                gathered.missing.entry(key.clone()).or_default().push(what.is_missing(&why));
            }
        }
    }
    for (source, secret) in found {
        let version = secret.ok().flatten().and_then(|secret| secret.metadata.resource_version);
        gathered.sources.insert(source, version);
    }
    Ok(gathered)
}

impl SecretNamespaces<'_> {
    /// The Secret that a policy means, by its key in the ConfigMap.
    ///
    /// # Errors
    /// Why it may not mean that one.
    fn source(&self, key: &str, reference: &SecretKeyRef) -> Result<SecretId, String> {
        let name = reference.name.clone();
        if is_own(&name) {
            return Err(format!("the Secret {name} is Postern's own: name another one"));
        }
        let namespace = reference.namespace.as_deref().unwrap_or(self.namespace);
        // Also for the last good version of a policy, the chart's present list counts.
        let allowed = reference.namespace.is_none()
            || is_cluster(key) && self.sources.iter().any(|listed| listed == namespace);
        if !allowed {
            return Err(format!(
                "secretKeyRef.namespace is {namespace}, which the chart's rbac.sourceNamespaces does not list: have it \
                 listed, or leave it out for a Secret of the pod's namespace"
            ));
        }
        Ok(SecretId { namespace: namespace.to_owned(), name })
    }
}

/// The value, where it still fits. Without the bound one Secret too many would stop everything of the namespace.
fn within(taken: &mut usize, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    *taken += bytes.len();
    if *taken > BOUND {
        return Err("the namespace's credentials are longer than 1 MiB together: refer to fewer".to_owned());
    }
    Ok(bytes)
}

/// A reference to a Secret.
struct Referred<'a> {
    /// Of the policy.
    key: &'a String,
    /// The file that the gateway reads.
    file: String,
    what: What<'a>,
    reference: &'a SecretKeyRef,
}

/// What a Secret is referred to for.
enum What<'a> {
    Credential(&'a str),
    /// A value that must not leave.
    Value(&'a str),
}

impl What<'_> {
    fn is_missing(&self, why: &str) -> String {
        match self {
            Self::Credential(name) => format!("credential `{name}`: {why}; requests that need it are denied"),
            Self::Value(name) => {
                format!(
                    "value `{name}`: {why}; until then, every request that would be searched for it is denied"
                )
            }
        }
    }
}

/// Every reference, and the key of its policy.
fn references(documents: &BTreeMap<String, Document>) -> impl Iterator<Item = Referred<'_>> {
    documents.iter().flat_map(|(key, document)| {
        let credentials = document.spec.credentials.iter().filter_map(move |credential| {
            let reference = credential.secret_key_ref.as_ref()?;
            let what = What::Credential(&credential.name);
            Some(Referred { key, file: credential.name.clone(), what, reference })
        });
        let values = document.spec.data_loss.iter().flat_map(|section| &section.values);
        let values = values.filter_map(move |value| {
            let (file, what) = (NamedValue::file_name(&value.name), What::Value(&value.name));
            Some(Referred { key, file, what, reference: value.secret_key_ref.as_ref()? })
        });
        credentials.chain(values)
    })
}

/// Whether it is one of Postern's own Secrets: as a credential, the CA's key would be sent to a host of the author's
/// choice.
fn is_own(name: &str) -> bool {
    name == pod::CA_SECRET || name == pod::CREDENTIALS_SECRET
}

fn value(source: &SecretId, key: &str, found: Option<&SecretLookup>) -> Result<Vec<u8>, String> {
    let SecretId { namespace, name } = source;
    let secret = match found {
        None => {
            let most = "the namespace's policies refer to more than 256 Secrets";
            return Err(format!("{most}: put several keys into one, and refer to fewer"));
        }
        Some(Err(why)) => {
            return Err(format!("the operator may not read the Secret {namespace}/{name}: {why}"));
        }
        Some(Ok(None)) => {
            return Err(format!("there is no Secret {namespace}/{name}: create it with the key {key}"));
        }
        Some(Ok(Some(secret))) => secret,
    };
    if secret.type_.as_deref() == Some(TOKEN_TYPE) {
        return Err(format!(
            "the Secret {namespace}/{name} is the token of a ServiceAccount, which is for the API server alone: name \
             another one"
        ));
    }
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    match value {
        None => Err(format!("the Secret {namespace}/{name} has no key {key}: add it")),
        Some(value) if value.0.is_empty() => {
            Err(format!("the key {key} of the Secret {namespace}/{name} is empty: put the credential there"))
        }
        Some(value) if value.0.len() > GREATEST => Err(format!(
            "the key {key} of the Secret {namespace}/{name} is longer than {GREATEST} bytes, which no credential is"
        )),
        // Copied as it is, with a newline at its end: the gateway trims it as it does with files.
        Some(value) => Ok(value.0.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_one_secret_is_left_out_and_said() {
        let mut taken = 0;
        for _ in 0..BOUND / GREATEST {
            assert!(within(&mut taken, vec![b'x'; GREATEST]).is_ok());
        }
        assert!(within(&mut taken, b"x".to_vec()).unwrap_err().contains("longer than 1 MiB together"));
    }
}
