//! What a gateway remembers of the models that routes ask: how they do, and how many bytes a token of theirs has.

pub(crate) mod health;
mod ratios;

use health::Health;
use ratios::Ratios;

/// The memory of routes. It outlives policies: a model that is down stays down.
#[derive(Debug, Default)]
pub(crate) struct RoutingState {
    pub(crate) health: Health,
    pub(crate) ratios: Ratios,
}
