//! Chooses the route of a request: the first that matches, the cluster's before those of the namespace.

use std::sync::Arc;

use super::{Hop, Reach, Route, RouteMatch};
use crate::call::Dialect;
use crate::decision::{Decision, Enforcement, Verdict};
use crate::name::host::Host;

/// The routes of all policies that select a pod.
#[derive(Debug)]
pub struct Routing {
    /// The cluster's first, then by the ids of their policies, each in the order of its policy.
    routes: Vec<Arc<Route>>,
    /// Whether any of them only records.
    has_audits: bool,
    /// Whether any of them decides: not where only Audit policies select the pod.
    decides: bool,
}

/// One request to a model: an inference, or a count of tokens.
#[derive(Debug, Clone, Copy)]
pub struct RouteQuestion<'a> {
    /// Where the agent sent it.
    pub host: &'a Host,
    /// What the agent speaks.
    pub dialect: Dialect,
    /// The model that is asked for.
    pub model: &'a str,
    /// The first marker with one of [`Routing::tokens`].
    pub marker: Option<RouteMarker<'a>>,
    /// The first marker with one of [`Routing::all_tokens`]; it is recorded alone.
    pub audit_marker: Option<RouteMarker<'a>>,
    /// Whether the origin may be asked.
    pub reach: Reach,
}

/// What a marker in the system prompt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMarker<'a> {
    pub token: &'a str,
    pub label: &'a str,
}

/// The decision about a request.
#[derive(Debug, Clone)]
pub struct RouteDecision {
    pub outcome: RouteOutcome,
    /// What a route of an Audit policy would do instead, were its policy enforced.
    pub audited: Option<Decision>,
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum RouteOutcome {
    /// No route is about it: it goes on as it is.
    NoMatch,
    /// These are asked one after the other, each once; at least one, at most four.
    Chain { route: Arc<Route>, chain: Vec<Hop> },
    /// Its marker names a label that the route does not have: nothing is sent, and the agent is told the labels.
    Stub { route: Arc<Route>, label: String },
}

impl Routing {
    /// Gathers routes in their order; none where there are none.
    pub(in crate::policy) fn new(routes: Vec<Arc<Route>>, is_audit_only: bool) -> Option<Self> {
        let has_audits = routes.iter().any(|route| route.is_audit);
        let decides = !is_audit_only && routes.iter().any(|route| !route.is_audit);
        (!routes.is_empty()).then_some(Self { routes, has_audits, decides })
    }

    /// The routes that decide, in order.
    pub fn routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        let decides = self.decides;
        self.routes.iter().filter(move |route| decides && !route.is_audit)
    }

    /// All routes in order, with those of Audit policies.
    pub fn all_routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// The tokens of markers that decide: what is looked for, and cut out.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.routes().filter_map(|route| route.token())
    }

    /// The same, and the tokens that only Audit policies name, which stay where they are.
    pub fn all_tokens(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().filter_map(|route| route.token())
    }

    /// Decides about a request. The first route that matches does.
    pub fn choose(&self, question: &RouteQuestion<'_>) -> RouteDecision {
        let outcome = self.first(question, self.routes());
        let audited = self.has_audits.then(|| {
            let marker = question.audit_marker.or(question.marker);
            self.first(&RouteQuestion { marker, ..*question }, self.routes.iter())
        });
        RouteDecision { outcome, audited: audited.and_then(|outcome| outcome.record()) }
    }

    fn first<'a>(
        &self,
        question: &RouteQuestion<'_>,
        mut routes: impl Iterator<Item = &'a Arc<Route>>,
    ) -> RouteOutcome {
        routes.find_map(|route| outcome(route, question)).unwrap_or(RouteOutcome::NoMatch)
    }

    /// Whether a route could send a request at this host to a model: the host then gets its leaf also where it cannot be
    /// reached.
    pub fn could_serve(&self, host: &Host) -> bool {
        self.models_at(host).next().is_some()
    }

    /// Whether a route to a model that speaks Responses could apply at this host: a WebSocket is refused there, so that
    /// the client asks over HTTP.
    pub fn has_responses_route(&self, host: &Host) -> bool {
        self.models_at(host)
            .any(|hop| hop.model().is_some_and(|model| model.provider.dialect == Dialect::OpenAIResponses))
    }

    fn models_at(&self, host: &Host) -> impl Iterator<Item = &Hop> {
        let routes = self.routes().filter(move |route| route.serves(host));
        routes.flat_map(|route| route.hops()).filter(|hop| hop.model().is_some())
    }

    /// The models that an agent may be told of at this host: the names of `match.models` without a `*`, then the labels,
    /// each once.
    pub fn model_list(&self, host: &Host) -> Vec<&str> {
        let names = self.routes().filter(|route| route.serves(host)).flat_map(|route| route.literals());
        let mut list = Vec::new();
        for name in names.chain(self.models_at(host).map(Hop::label)) {
            if !list.contains(&name) {
                list.push(name);
            }
        }
        list
    }
}

impl Route {
    /// The token of the marker that the route looks for.
    pub fn token(&self) -> Option<&str> {
        match &self.matching {
            RouteMatch::Marker(token) => Some(token),
            RouteMatch::Models(_) => None,
        }
    }

    /// The names of models that the route is about, without those that have a `*`.
    fn literals(&self) -> impl Iterator<Item = &str> {
        let globs = match &self.matching {
            RouteMatch::Marker(_) => &[],
            RouteMatch::Models(globs) => globs.as_slice(),
        };
        globs.iter().filter_map(|glob| glob.literal())
    }
}

impl RouteOutcome {
    /// The record of what a route of an Audit policy would do; none where an enforced one comes first.
    fn record(self) -> Option<Decision> {
        let (route, reason) = match self {
            Self::NoMatch => return None,
            Self::Chain { route, chain } => {
                let labels: Vec<&str> = chain.iter().map(Hop::label).collect();
                (route, format!("With the Audit policies enforced, {} would answer", labels.join(", then ")))
            }
            Self::Stub { route, .. } => {
                let labels: Vec<&str> = route.labels().collect();
                let reason = format!(
                    "With the Audit policies enforced, the marker's label could not be chosen: there are {}",
                    labels.join(", ")
                );
                (route, reason)
            }
        };
        let record = || Decision::by(route.id.clone(), Verdict::Audit, reason).under(Enforcement::Audit);
        route.is_audit.then(record)
    }
}

/// What a route does with a request; none where it is not about it.
fn outcome(route: &Arc<Route>, question: &RouteQuestion<'_>) -> Option<RouteOutcome> {
    if !route.serves(question.host) {
        return None;
    }
    let is_usable = |hop: &&Hop| match hop {
        Hop::Origin => question.reach == Reach::Origin,
        Hop::Model(model) => is_spoken(question.dialect, model.provider.dialect),
    };
    let chosen = match &route.matching {
        RouteMatch::Models(globs) => {
            globs.iter().any(|glob| glob.covers(question.model)).then_some(route.to.first()).flatten()?
        }
        RouteMatch::Marker(token) => {
            let marker = question.marker.filter(|marker| *marker.token == **token)?;
            if let Some(chosen) = route.to.iter().find(|hop| hop.label() == marker.label) {
                chosen
            } else {
                // A route without any model for this dialect is about none of its requests.
                route.hops().find(is_usable)?;
                return Some(RouteOutcome::Stub { route: Arc::clone(route), label: marker.label.to_owned() });
            }
        }
    };
    let chain: Vec<Hop> = [chosen].into_iter().chain(&route.fallback).filter(is_usable).cloned().collect();
    (!chain.is_empty()).then(|| RouteOutcome::Chain { route: Arc::clone(route), chain })
}

/// Whether a model can be asked for an agent: in its own dialect, or by translation (routing.md 12, the table).
pub fn is_spoken(agent: Dialect, model: Dialect) -> bool {
    match agent {
        Dialect::Anthropic => matches!(model, Dialect::Anthropic | Dialect::OpenAIChat),
        Dialect::OpenAIChat => model == Dialect::OpenAIChat,
        Dialect::OpenAIResponses => model == Dialect::OpenAIResponses,
        Dialect::Gemini | Dialect::Bedrock => false,
    }
}
