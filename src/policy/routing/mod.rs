//! Model routing: which model answers a request instead of the one that was asked (routing.md 12.1). Pure.
//!
//! A [`Route`] chooses a chain of [`Hop`]s: models, or the origin, where the agent sent the request. [`Routing`] is what
//! all policies of a pod say together.

mod choose;
mod denials;
mod model;
mod provider;
mod route;
mod transform;

pub use choose::{RouteDecision, RouteMarker, RouteOutcome, RouteQuestion, Routing, is_spoken};
pub use denials::{attested, unknown_label, unrouted};
pub use model::{Model, Param};
pub use provider::{Endpoint, ModelProvider};
pub use route::{Hop, MOST_FALLBACK, MOST_LABELS, ModelGlob, ORIGIN, Route, RouteMatch};
pub use transform::TRANSFORMS;
pub(super) use transform::is_schema;

pub use super::section::destination::Reach;
pub use super::section::model::written::{Effort, Images};
pub use super::section::model_provider::written::KeyIn;

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
