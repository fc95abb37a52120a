//! What routes of models did: requests, attempts, models that were passed over, what translations left out.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use prometheus::{Error, IntCounterVec, IntGaugeVec, Registry};

use super::family::{NamedCounters, counters, gauges};

/// The counters of routes.
#[derive(Debug)]
pub(crate) struct RoutingMetrics {
    requests: RoutedRequests,
    attempts: NamedCounters,
    passed_over: IntGaugeVec,
    dropped: NamedCounters,
}

/// Counters by rule and label, both of which policies name. Beyond so many pairs the rest is `other`.
#[derive(Debug)]
struct RoutedRequests {
    family: IntCounterVec,
    known: Mutex<HashSet<(String, String)>>,
}

/// How many pairs of rule and label have series of their own.
const PAIRS: usize = 500;
const OTHER: &str = "other";

impl RoutingMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let family = counters(
            registry,
            "postern_routed_requests_total",
            "Requests that a route took.",
            &["rule", "label", "outcome"],
        )?;
        Ok(Self {
            requests: RoutedRequests { family, known: Mutex::default() },
            attempts: NamedCounters::new(
                registry,
                "postern_route_attempts_total",
                "Models that were asked by a route.",
                &["label", "class"],
            )?,
            passed_over: gauges(
                registry,
                "postern_route_passed_over",
                "Models that are passed over since they failed.",
                &["label"],
            )?,
            dropped: NamedCounters::new(
                registry,
                "postern_translation_dropped_total",
                "What a translation left out or mended.",
                &["what"],
            )?,
        })
    }

    /// A route took a request; `label` is the model that was asked last, `outcome` the class of its answer.
    pub(crate) fn routed(&self, rule: &str, label: &str, outcome: &'static str) {
        let RoutedRequests { family, known } = &self.requests;
        let pair = {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let pair = (rule.to_owned(), label.to_owned());
            (known.contains(&pair) || known.len() < PAIRS && known.insert(pair)).then_some((rule, label))
        };
        let (rule, label) = pair.unwrap_or((OTHER, OTHER));
        if let Ok(counter) = family.get_metric_with_label_values(&[rule, label, outcome]) {
            counter.inc();
        }
    }

    /// A model was asked, with this class of answer.
    pub(crate) fn attempted(&self, label: &str, class: &'static str) {
        self.attempts.add((None, Some(class)), label, 1);
    }

    /// A model is passed over from now on, or is not any more.
    pub(crate) fn passed_over(&self, label: &str, is: bool) {
        if let Ok(gauge) = self.passed_over.get_metric_with_label_values(&[label]) {
            gauge.set(i64::from(is));
        }
    }

    /// A translation left something out, or mended it.
    pub(crate) fn dropped(&self, what: &str, times: u64) {
        self.dropped.add((None, None), what, times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_rule_and_label_stop_growing_at_their_bound() {
        let registry = Registry::new();
        let metrics = RoutingMetrics::new(&registry).unwrap();
        for number in 0..PAIRS + 3 {
            metrics.routed("agents/p/small", &number.to_string(), "Answered");
        }
        metrics.routed("agents/p/small", "0", "Timeout");
        assert_eq!(registry.gather()[0].get_metric().len(), PAIRS + 2);
    }
}
