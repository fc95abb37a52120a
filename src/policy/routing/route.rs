//! A route, compiled.

use std::fmt;
use std::sync::Arc;

use super::Model;
use crate::call::FailureClass;
use crate::decision::{Enforcement, RuleId};
use crate::name::host::Host;
use crate::policy::section::tool::NamePattern;

/// The label of where the agent sent the request.
pub const ORIGIN: &str = "origin";

/// The most labels that a marker chooses from.
pub const MOST_LABELS: usize = 16;

/// The most models that follow the first.
pub const MOST_FALLBACK: usize = 3;

/// Which requests go to which models.
#[derive(Debug, Clone)]
pub struct Route {
    /// `namespace/policy/NAME`, as other rules have it.
    pub id: RuleId,
    pub matching: RouteMatch,
    /// The hosts whose requests it is about; empty for all.
    pub hosts: Vec<Host>,
    /// With a marker what it may name; else one.
    pub to: Vec<Hop>,
    /// What is asked next, one after the other.
    pub fallback: Vec<Hop>,
    /// The failures after which the next one is asked.
    pub on: Vec<FailureClass>,
    /// Whether its policy only records.
    pub is_audit: bool,
}

/// What a route looks for in a request.
#[derive(Debug, Clone)]
pub enum RouteMatch {
    /// The token of a marker in the system prompt.
    Marker(Arc<str>),
    /// The name of the model that is asked for.
    Models(Vec<ModelGlob>),
}

/// A name of a model, with `*` for any run of characters; case matters.
#[derive(Debug, Clone)]
pub struct ModelGlob {
    written: Box<str>,
    pattern: NamePattern,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hop {
    /// Where the agent sent the request.
    Origin,
    Model(Arc<Model>),
}

impl Route {
    /// Whether the route is about requests to this host.
    pub fn serves(&self, host: &Host) -> bool {
        self.hosts.is_empty() || self.hosts.contains(host)
    }

    /// Whether the next of the chain is asked after such a failure.
    pub fn follows(&self, class: FailureClass) -> bool {
        self.on.contains(&class)
    }

    /// Every model that the route may choose, and the origin where it may.
    pub fn hops(&self) -> impl Iterator<Item = &Hop> {
        self.to.iter().chain(&self.fallback)
    }

    /// Whether the route's policy is enforced or only records.
    pub fn enforcement(&self) -> Enforcement {
        Enforcement::of(self.is_audit)
    }

    /// The labels of `to`, in order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.to.iter().map(Hop::label)
    }
}

impl ModelGlob {
    /// Reads a name as users write it.
    pub fn new(written: &str) -> Self {
        Self { written: written.into(), pattern: NamePattern::glob(written) }
    }

    /// Whether a model is meant that is called so.
    pub fn covers(&self, model: &str) -> bool {
        self.pattern.covers(model)
    }

    /// The one name that is meant; none where there is a `*`.
    pub fn literal(&self) -> Option<&str> {
        matches!(self.pattern, NamePattern::Exact(_)).then_some(&*self.written)
    }
}

impl fmt::Display for ModelGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Hop {
    /// The label of the model, or `origin`.
    pub fn label(&self) -> &str {
        match self {
            Self::Origin => ORIGIN,
            Self::Model(model) => &model.label,
        }
    }

    /// The model; none of the origin.
    pub fn model(&self) -> Option<&Arc<Model>> {
        match self {
            Self::Origin => None,
            Self::Model(model) => Some(model),
        }
    }
}
