//! Routes that decide nothing: an earlier one takes every request that they are about.

use super::hosts::applies_with;
use crate::call::Dialect;
use crate::name::host::Host;
use crate::policy::document::{Document, Kind, Reach, WrittenMatch, WrittenRoute};
use crate::policy::routing::{ModelGlob, ORIGIN, is_spoken};
use crate::problem::Problem;

/// What agents may speak.
const AGENTS: [Dialect; 5] =
    [Dialect::Anthropic, Dialect::OpenAIChat, Dialect::OpenAIResponses, Dialect::Gemini, Dialect::Bedrock];

/// Judges the routes of a document among those of all that are known.
pub(super) fn warnings(document: &Document, known: &[Document]) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, route) in document.spec.routes.iter().enumerate() {
        let Some((other, earlier)) = hiding((document, number, route), known) else { continue };
        let of = if std::ptr::eq(other, document) { String::new() } else { format!(" of {}", other.id()) };
        let message = format!(
            "{} decides nothing: the route {}{of} comes first and takes every request that it is about; put it in front, \
             narrow that route, or take this one away",
            route.name, earlier.name
        );
        warnings.push(Problem::at(format!("spec.routes[{number}]"), message));
    }
    warnings
}

/// The first route that comes earlier and leaves nothing.
fn hiding<'a>(
    (document, number, route): (&Document, usize, &WrittenRoute),
    known: &'a [Document],
) -> Option<(&'a Document, &'a WrittenRoute)> {
    known.iter().find_map(|other| {
        let is_own = std::ptr::eq(other, document);
        let comes_first = is_own || (order(other) < order(document) && applies_with(other, document));
        if !comes_first {
            return None;
        }
        let before = if is_own { number } else { other.spec.routes.len() };
        let mut earlier = other.spec.routes.iter().take(before);
        earlier
            .find(|earlier| hides((other, earlier), (document, route), known))
            .map(|earlier| (other, earlier))
    })
}

/// What routes are sorted by: the cluster's first, then the ids of policies.
fn order(document: &Document) -> (bool, String) {
    (document.kind != Some(Kind::ClusterEgressPolicy), document.id())
}

/// Whether an earlier route takes every request of a later one.
fn hides(
    (first, earlier): (&Document, &WrittenRoute),
    (second, later): (&Document, &WrittenRoute),
    known: &[Document],
) -> bool {
    let (Some(outer), Some(inner)) = (&earlier.matching, &later.matching) else { return false };
    covers_match(outer, inner)
        && AGENTS.into_iter().all(|agent| {
            let may = may_answer(second, later, agent, known);
            !may || surely_answers(first, earlier, inner, (agent, known))
        })
}

fn covers_match(outer: &WrittenMatch, inner: &WrittenMatch) -> bool {
    let read = |hosts: &Option<Vec<String>>| {
        hosts.as_ref().map(|hosts| hosts.iter().map(|host| Host::parse(host).ok()).collect::<Vec<_>>())
    };
    let covers_hosts = match (read(&outer.hosts), read(&inner.hosts)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(outer), Some(inner)) => inner.iter().all(|host| host.is_some() && outer.contains(host)),
    };
    let covers_what = match (outer, inner) {
        (WrittenMatch { models: Some(outer), .. }, WrittenMatch { models: Some(inner), .. }) => {
            // A star that stands in the inner name is covered as a letter is, by a star alone.
            inner.iter().all(|name| outer.iter().any(|outer| ModelGlob::new(outer).covers(name)))
        }
        (WrittenMatch { models: Some(outer), .. }, WrittenMatch { marker: Some(_), .. }) => {
            outer.iter().any(|name| !name.is_empty() && name.bytes().all(|byte| byte == b'*'))
        }
        (WrittenMatch { marker: Some(outer), .. }, WrittenMatch { marker: Some(inner), .. }) => {
            outer == inner
        }
        (_, _) => false,
    };
    covers_hosts && covers_what
}

/// Whether any model of a route might be asked for an agent.
fn may_answer(document: &Document, route: &WrittenRoute, agent: Dialect, known: &[Document]) -> bool {
    let labels = route.to.iter().chain(route.fallback.iter().flatten());
    let has_marker = route.matching.as_ref().is_some_and(|matching| matching.marker.is_some());
    (!has_marker || agent == Dialect::Anthropic)
        && labels
            .into_iter()
            .any(|label| speaks(document, label, known).is_none_or(|model| model.serves(agent)))
}

/// Whether a route takes every request of an agent, whatever its marker chooses. The origin answers surely where no
/// destination is `reach: Routes`.
fn surely_answers(
    document: &Document,
    route: &WrittenRoute,
    inner: &WrittenMatch,
    (agent, known): (Dialect, &[Document]),
) -> bool {
    let mut destinations = known.iter().flat_map(|document| &document.spec.destinations);
    let has_origin = !destinations.any(|rule| rule.reach == Some(Reach::Routes));
    let serves = |label: &String| match speaks(document, label, known) {
        Some(Speaker::Origin) => has_origin,
        Some(model @ Speaker::Model(_)) => model.serves(agent),
        None => false,
    };
    let then = route.fallback.iter().flatten().any(serves);
    // Any of the labels may be the one that a marker names.
    let first = if inner.marker.is_some() && route.to.len() > 1 {
        route.to.iter().all(serves)
    } else {
        route.to.iter().any(serves)
    };
    first || then
}

/// What is asked under a label.
#[derive(Clone, Copy)]
enum Speaker {
    Origin,
    Model(Dialect),
}

impl Speaker {
    fn serves(self, agent: Dialect) -> bool {
        match self {
            Self::Origin => true,
            Self::Model(dialect) => is_spoken(agent, dialect),
        }
    }
}

/// What is asked under a label of a policy; none where that is not known.
fn speaks(document: &Document, label: &str, known: &[Document]) -> Option<Speaker> {
    if label == ORIGIN {
        return Some(Speaker::Origin);
    }
    let of_cluster = known.iter().filter(|other| other.kind == Some(Kind::ClusterEgressPolicy));
    [document].into_iter().chain(of_cluster).find_map(|policy| {
        let model = policy.spec.models.iter().find(|model| model.name == label)?;
        let provider = policy.spec.model_providers.iter().find(|provider| provider.name == model.provider)?;
        Some(Speaker::Model(provider.dialect?.dialect()))
    })
}
