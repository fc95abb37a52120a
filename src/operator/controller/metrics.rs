//! What the operator counts.

use prometheus::{Encoder, Registry, TextEncoder};

/// The operator's metrics.
#[derive(Debug, Default)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// The exposition, as Prometheus reads it.
    pub fn encode(&self) -> String {
        let mut text = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}
