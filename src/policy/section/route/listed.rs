//! How routes are listed.

use serde::Serialize;

use super::super::page::{Heading, Page};
use crate::call::FailureClass;
use crate::policy::routing::{Hop, Route, RouteMatch, Routing};

#[derive(Serialize)]
pub(in crate::policy) struct RoutesListed {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<RouteListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteListed {
    rule: String,
    enforcement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    marker: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<String>,
    /// None: every host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallback: Vec<String>,
    /// The failures after which the next one is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on: Vec<FailureClass>,
}

pub(super) fn list(routing: Option<&Routing>) -> RoutesListed {
    let routes = routing.map(Routing::all_routes).unwrap_or_default();
    RoutesListed { routes: routes.iter().map(|route| list_route(route)).collect() }
}

fn list_route(route: &Route) -> RouteListed {
    let (marker, models) = match &route.matching {
        RouteMatch::Marker(token) => (Some(token.to_string()), Vec::new()),
        RouteMatch::Models(globs) => (None, globs.iter().map(ToString::to_string).collect()),
    };
    let labels = |hops: &[Hop]| hops.iter().map(|hop| hop.label().to_owned()).collect::<Vec<_>>();
    let fallback = labels(&route.fallback);
    RouteListed {
        rule: route.id.to_string(),
        enforcement: route.enforcement().as_str(),
        marker,
        models,
        hosts: route.hosts.iter().map(ToString::to_string).collect(),
        to: labels(&route.to),
        on: if fallback.is_empty() { Vec::new() } else { route.on.clone() },
        fallback,
    }
}

pub(super) fn rows(listed: &RoutesListed, page: &mut Page) {
    for route in &listed.routes {
        let what = match &route.marker {
            Some(token) => format!("marker {token}"),
            None => format!("model {}", route.models.join(", ")),
        };
        let hosts =
            if route.hosts.is_empty() { String::new() } else { format!(" at {}", route.hosts.join(", ")) };
        let to = route.to.join(" or ");
        let then: String = route.fallback.iter().map(|label| format!(", then {label}")).collect();
        let by = page.by(&route.rule, route.enforcement);
        page.add(Heading::Routes, [format!("{what}{hosts}"), format!("{to}{then}  [{by}]")]);
    }
}
