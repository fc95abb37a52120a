//! Finds labels that two policies of a pod have, and labels that no policy of it has.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::route::LoweredRoutes;
use crate::decision::RuleId;
use crate::policy::routing::{Model, ORIGIN};
use crate::policy::scope::{Mode, Owner, Tier};
use crate::yaml::field;

/// The labels of the policies that are judged together.
#[derive(Default)]
pub(in crate::policy) struct LabelClaims {
    /// Of a pod, with the model that has each.
    taken: HashMap<Arc<str>, RuleId>,
    /// The labels of the cluster's policies.
    of_cluster: HashMap<Arc<str>, Vec<ClusterLabel>>,
}

/// Which policy of the cluster has a label.
struct ClusterLabel {
    is_selected: bool,
    is_audit: bool,
}

impl LabelClaims {
    /// Notes the labels of a policy, before any of its routes or those of others are judged.
    pub(in crate::policy) fn note(
        &mut self,
        owner: &Owner,
        is_selected: bool,
        models: &[(String, Arc<Model>)],
    ) {
        if owner.tier == Tier::Cluster {
            for (_, model) in models {
                let label = ClusterLabel { is_selected, is_audit: owner.audit };
                self.of_cluster.entry(Arc::clone(&model.label)).or_default().push(label);
            }
        }
    }

    /// Returns a message where another policy of the pod has the label.
    pub(in crate::policy) fn clash(&mut self, model: &Model) -> Option<String> {
        let owner = self.taken.entry(Arc::clone(&model.label)).or_insert_with(|| model.id.clone());
        (*owner != model.id).then(|| {
            format!("the label `{}` is taken by {owner}; for a pod each label is one model", model.label)
        })
    }

    /// The labels of a policy's routes that are none of its own and none of a cluster policy that applies beside it, each
    /// with its field and a message.
    pub(in crate::policy) fn unknown(
        &self,
        (owner, is_selected): (&Owner, bool),
        mode: Mode,
        routes: &LoweredRoutes,
    ) -> Vec<(String, String)> {
        let mut unknown = Vec::new();
        for (path, label) in routes.labels() {
            if label == ORIGIN || routes.own(label).is_some() {
                continue;
            }
            let others = self.of_cluster.get(label).map(Vec::as_slice).unwrap_or_default();
            let applies = |other: &&ClusterLabel| {
                let is_heeded = owner.audit || !other.is_audit || mode == Mode::AuditOnly;
                !is_selected || (other.is_selected && is_heeded)
            };
            if !others.iter().any(|other| applies(&other)) {
                let why = match others.first() {
                    None => "no model of this policy or of a cluster policy has this label",
                    Some(other) if other.is_selected => {
                        "the cluster policy with this label only records (Audit), and this one is enforced"
                    }
                    Some(_) => "the cluster policy with this label does not select this pod",
                };
                unknown.push((path.to_owned(), format!("{}: {why}", field::quoted(label))));
            }
        }
        unknown
    }
}
