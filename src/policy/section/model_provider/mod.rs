//! `modelProviders`: the servers of models that routes send requests to.

mod endpoint;
mod lower;
pub(in crate::policy) mod written;

use std::sync::Arc;

use serde::Serialize;

use super::page::{Heading, Page};
use super::{Lowering, Owner, PolicySection};
use crate::call::Dialect;
use crate::policy::Policy;
use crate::policy::routing::{ModelProvider, Param};
use crate::policy::scope::{Mode, PolicyScope};
use written::KeyIn;

/// A provider with what its models have where they do not write it themselves.
#[derive(Debug)]
pub(in crate::policy) struct LoweredProvider {
    pub(super) provider: Arc<ModelProvider>,
    pub(super) defaults: Defaults,
}

/// What a provider says for its models.
#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) params: Vec<Param>,
    pub(super) transforms: Option<Vec<&'static str>>,
}

/// The providers of the policies that decide, the cluster's first.
#[derive(Debug)]
pub(in crate::policy) struct ModelProviders(Vec<Arc<ModelProvider>>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct ModelProvidersListed {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    model_providers: Vec<ModelProviderListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelProviderListed {
    name: String,
    rule: String,
    endpoint: String,
    dialect: Dialect,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_in: Option<KeyIn>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allow_addresses: Vec<String>,
}

impl PolicySection for ModelProviders {
    type Written = Vec<written::WrittenModelProvider>;
    type Lowered = Vec<Arc<LoweredProvider>>;
    type Listed = ModelProvidersListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        Self(deciding.flat_map(|(_, providers)| providers).map(|one| Arc::clone(&one.provider)).collect())
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        let listed = self.0.iter().map(|provider| ModelProviderListed {
            name: provider.name.clone(),
            rule: provider.id.to_string(),
            endpoint: provider.endpoint.to_string(),
            dialect: provider.dialect,
            credential: provider.credential.as_ref().map(|credential| credential.name.clone()),
            key_in: provider.credential.as_ref().map(|_| provider.key_in),
            allow_addresses: provider.allow_addresses.iter().map(ToString::to_string).collect(),
        });
        ModelProvidersListed { model_providers: listed.collect() }
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        for provider in &listed.model_providers {
            let ModelProviderListed { endpoint, dialect, credential, .. } = provider;
            let key = credential.as_ref().map_or_else(|| "no key".to_owned(), |name| format!("key {name}"));
            let ranges = &provider.allow_addresses;
            let also =
                if ranges.is_empty() { String::new() } else { format!(", also in {}", ranges.join(", ")) };
            let right = format!("{endpoint}, speaks {}, {key}{also}  [{}]", dialect.as_str(), provider.rule);
            page.add(Heading::ModelProviders, [provider.name.clone(), right]);
        }
    }
}

impl Policy {
    /// The providers of models of the policies that decide, the cluster's first.
    pub fn model_providers(&self) -> &[Arc<ModelProvider>] {
        &self.sections.model_providers.0
    }
}

#[cfg(test)]
mod tests;
