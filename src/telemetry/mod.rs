//! What Postern says about itself: metrics, and logs for people.

pub mod label;
pub mod log;
pub mod metrics;

mod family;
mod inference;
mod requests;
mod routing;

pub use metrics::Metrics;
