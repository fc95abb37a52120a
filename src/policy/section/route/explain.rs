//! Explains why routes do or do not apply to a request.

use crate::call::Dialect;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::explain::{Applies, RuleExplanation};
use crate::policy::routing::{Hop, Reach, Route, RouteMatch, is_spoken};
use crate::policy::scope::Mode;

/// What is known of a request to a model.
#[derive(Debug, Clone, Copy)]
pub struct KnownRequest<'a> {
    pub host: &'a Host,
    pub dialect: Dialect,
    /// The model that is asked for, where that is known.
    pub model: Option<&'a str>,
    /// Whether the origin may be asked.
    pub reach: Reach,
}

/// Whether routes before this one take the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    No,
    Perhaps,
    Yes,
}

impl Policy {
    /// Says of every route whether it takes a request to a model, as far as is known.
    pub fn explain_routes(&self, request: &KnownRequest<'_>) -> Vec<RuleExplanation> {
        let mut before = Before::No;
        let routes = self.routing().map(|routing| routing.all_routes()).unwrap_or_default();
        let explained = routes.iter().map(|route| {
            let (alone, mut why) = about(route, request);
            let is_recorded = route.is_audit || self.mode == Mode::AuditOnly;
            let applies = match (alone, before) {
                (Applies::No, _) => Applies::No,
                (Applies::Yes | Applies::Unknown, Before::Yes) => {
                    why.push("but a route before it takes the request".to_owned());
                    Applies::No
                }
                (Applies::Yes | Applies::Unknown, Before::Perhaps) => {
                    why.push("unless a route before it takes the request".to_owned());
                    Applies::Unknown
                }
                (alone, Before::No) => alone,
            };
            match alone {
                _ if is_recorded && applies != Applies::No => why.push("its policy only records".to_owned()),
                // Either this route takes the request, or one before it does.
                Applies::Yes if !is_recorded => before = Before::Yes,
                Applies::Unknown if before == Before::No && !is_recorded => before = Before::Perhaps,
                Applies::Yes | Applies::Unknown | Applies::No => {}
            }
            RuleExplanation {
                rule: route.id.to_string(),
                action: "Route",
                enforcement: route.enforcement().as_str(),
                applies,
                why,
                tests: Vec::new(),
            }
        });
        explained.collect()
    }
}

/// Whether a route is about a request, and why, without those before it.
fn about(route: &Route, request: &KnownRequest<'_>) -> (Applies, Vec<String>) {
    let no = |why: &str| (Applies::No, vec![why.to_owned()]);
    if !route.serves(request.host) {
        return no("it is about other hosts");
    }
    let is_usable = |hop: &&Hop| match hop {
        Hop::Origin => request.reach == Reach::Origin,
        Hop::Model(model) => is_spoken(request.dialect, model.provider.dialect),
    };
    let labels: Vec<&str> = route.hops().filter(is_usable).map(Hop::label).collect();
    if labels.is_empty() {
        return (
            Applies::No,
            vec![format!("none of its models can be asked in the words of {}", request.dialect.as_str())],
        );
    }
    let asks = format!("it asks {}", labels.join(", "));
    match (&route.matching, request.model) {
        (RouteMatch::Marker(_), _) if request.dialect != Dialect::Anthropic => {
            no("markers are looked for in Anthropic Messages alone")
        }
        (RouteMatch::Marker(token), _) => {
            let marker = format!("a marker {token} in the system prompt decides, which is not known here");
            (Applies::Unknown, vec![marker, asks])
        }
        (RouteMatch::Models(_), None) => {
            (Applies::Unknown, vec!["the model decides, which is not known here".to_owned(), asks])
        }
        (RouteMatch::Models(globs), Some(model)) => match globs.iter().find(|glob| glob.covers(model)) {
            Some(glob) => (Applies::Yes, vec![format!("{glob} covers the model {model:?}"), asks]),
            None => no("it is about other models"),
        },
    }
}
