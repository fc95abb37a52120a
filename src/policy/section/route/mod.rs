//! `routes`: which model answers a request, whatever was asked.

mod explain;
mod listed;
mod lower;
pub(in crate::policy) mod written;

use std::sync::Arc;

use super::page::Page;
use super::{Lowering, Owner, PolicySection};
use crate::call::FailureClass;
use crate::decision::RuleId;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::routing::{Hop, Model, ORIGIN, Route, RouteMatch, Routing};
use crate::policy::scope::{Mode, PolicyScope, Tier};

pub use explain::KnownRequest;

/// The routes of one policy, with the models that they may name in it.
pub(in crate::policy) struct LoweredRoutes {
    models: Vec<Arc<Model>>,
    routes: Vec<LoweredRoute>,
}

/// A route whose labels are not looked up yet: other policies may have them.
struct LoweredRoute {
    /// The field it stands in.
    path: String,
    id: RuleId,
    matching: RouteMatch,
    hosts: Vec<Host>,
    to: Vec<String>,
    fallback: Vec<String>,
    on: Vec<FailureClass>,
}

/// The routes of all policies that select a pod; none where there are none.
#[derive(Debug)]
pub(in crate::policy) struct Routes(Option<Routing>);

impl PolicySection for Routes {
    type Written = Vec<written::WrittenRoute>;
    type Lowered = LoweredRoutes;
    type Listed = listed::RoutesListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> LoweredRoutes {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, LoweredRoutes)>, mode: Mode) -> Self {
        let of_cluster: Vec<(bool, Arc<Model>)> = policies
            .iter()
            .filter(|(owner, _)| owner.tier == Tier::Cluster)
            .flat_map(|(owner, lowered)| lowered.models.iter().map(|model| (owner.audit, Arc::clone(model))))
            .collect();
        let mut routes = Vec::new();
        for (owner, LoweredRoutes { models, routes: lowered }) in policies {
            let is_audit = owner.audit;
            // What an Audit policy has is nothing that an enforced one could send requests to.
            let shared = of_cluster
                .iter()
                .filter(|(audit, _)| is_audit || !*audit || mode == Mode::AuditOnly)
                .map(|(_, model)| model);
            let known: Vec<&Arc<Model>> = models.iter().chain(shared).collect();
            routes.extend(
                lowered.into_iter().filter_map(|route| route.resolve(&known, is_audit)).map(Arc::new),
            );
        }
        Self(Routing::new(routes, mode == Mode::AuditOnly))
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        listed::list(self.0.as_ref())
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        listed::rows(listed, page);
    }
}

impl LoweredRoutes {
    /// The policy's own model with this label.
    pub(super) fn own(&self, label: &str) -> Option<&Arc<Model>> {
        self.models.iter().find(|model| *model.label == *label)
    }

    /// Every label that a route names, with its field.
    pub(super) fn labels(&self) -> impl Iterator<Item = (String, &str)> {
        self.routes.iter().flat_map(|route| {
            let lists = [("to", &route.to), ("fallback", &route.fallback)];
            lists.into_iter().flat_map(move |(list, labels)| {
                let labels = labels.iter().enumerate();
                labels
                    .map(move |(number, label)| (format!("{}.{list}[{number}]", route.path), label.as_str()))
            })
        })
    }
}

impl LoweredRoute {
    /// The route with its models. Labels that nothing has were refused before; such a step is left out.
    fn resolve(self, known: &[&Arc<Model>], is_audit: bool) -> Option<Route> {
        let hop = |label: &String| {
            if label == ORIGIN {
                return Some(Hop::Origin);
            }
            known.iter().find(|model| *model.label == **label).map(|model| Hop::Model(Arc::clone(model)))
        };
        let hops = |labels: &[String]| labels.iter().filter_map(hop).collect::<Vec<_>>();
        let Self { path: _, id, matching, hosts, to, fallback, on } = self;
        let (to, fallback) = (hops(&to), hops(&fallback));
        (!to.is_empty()).then_some(Route { id, matching, hosts, to, fallback, on, is_audit })
    }
}

impl Policy {
    /// The routes of the policies that select the pod; none where no policy has any, so that nothing is looked for.
    pub fn routing(&self) -> Option<&Routing> {
        self.sections.routes.0.as_ref()
    }
}

#[cfg(test)]
mod tests;
