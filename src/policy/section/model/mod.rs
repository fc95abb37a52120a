//! `models`: the models of providers that routes name by their labels.

mod claims;
mod lower;
pub(super) mod params;
pub(super) mod transforms;
pub(in crate::policy) mod written;

use std::sync::Arc;

use serde::Serialize;

use super::page::{Heading, Page};
use super::{Lowering, Owner, PolicySection};
use crate::policy::Policy;
use crate::policy::routing::Model;
use crate::policy::scope::{Mode, PolicyScope};
use written::{Effort, Images};

pub(in crate::policy) use claims::LabelClaims;

/// The models of the policies that decide, the cluster's first.
#[derive(Debug)]
pub(in crate::policy) struct Models(Vec<Arc<Model>>);

#[derive(Serialize)]
pub(in crate::policy) struct ModelsListed {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<ModelListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelListed {
    name: String,
    rule: String,
    provider: String,
    /// None: as the agent asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    images: Images,
    effort: Effort,
    /// None: by the provider's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    transforms: Option<Vec<&'static str>>,
    /// The names of the fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    params: Vec<String>,
}

impl PolicySection for Models {
    type Written = Vec<written::WrittenModel>;
    /// With the field each stands in.
    type Lowered = Vec<(String, Arc<Model>)>;
    type Listed = ModelsListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        Self(deciding.flat_map(|(_, models)| models).map(|(_, model)| model).collect())
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        let listed = self.0.iter().map(|model| ModelListed {
            name: model.label.to_string(),
            rule: model.id.to_string(),
            provider: model.provider.name.clone(),
            model: model.model.as_deref().map(str::to_owned),
            max_tokens: model.max_tokens,
            images: model.images,
            effort: model.effort,
            transforms: model.transforms.clone(),
            params: model.params.iter().map(|param| param.name.clone()).collect(),
        });
        ModelsListed { models: listed.collect() }
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        for model in &listed.models {
            let name = model.model.as_deref().unwrap_or("the model that was asked");
            let most = model.max_tokens.map(|most| format!(", at most {most} tokens")).unwrap_or_default();
            let images = if model.images == Images::Omit { ", no images" } else { "" };
            let effort = if model.effort == Effort::Map { ", with effort" } else { "" };
            let transforms =
                model.transforms.as_ref().map(|names| format!(", transforms {}", names.join(" ")));
            let fields = &model.params;
            let params =
                if fields.is_empty() { String::new() } else { format!(", params {}", fields.join(" ")) };
            let right = format!(
                "{name} at {}{most}{images}{effort}{}{params}  [{}]",
                model.provider,
                transforms.unwrap_or_default(),
                model.rule
            );
            page.add(Heading::Models, [model.name.clone(), right]);
        }
    }
}

impl Policy {
    /// The models of the policies that decide, the cluster's first.
    pub fn models(&self) -> &[Arc<Model>] {
        &self.sections.models.0
    }
}

#[cfg(test)]
mod tests;
