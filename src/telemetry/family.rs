//! Metric families with bounded labels, whose handles are found without a lock.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use arc_swap::ArcSwap;
use prometheus::core::Collector;
use prometheus::{
    Error, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::label::Label;

/// Seconds, from what a decision takes to what a long answer takes.
const BUCKETS: [f64; 19] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0, 60.0,
];

/// Registers a collector and hands it back.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> Result<C, Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

pub(super) fn counter(registry: &Registry, name: &str, help: &str) -> Result<IntCounter, Error> {
    registered(registry, IntCounter::new(name, help)?)
}

pub(super) fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, Error> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

pub(super) fn gauge(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, Error> {
    registered(registry, IntGauge::new(name, help)?)
}

pub(super) fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, Error> {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

pub(super) fn seconds(registry: &Registry, name: &str, help: &str) -> Result<Histogram, Error> {
    let options = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
    registered(registry, Histogram::with_opts(options)?)
}

/// Counters over one closed label, all there from the start with the value 0.
#[derive(Debug)]
pub(super) struct Counters<L> {
    handles: Vec<IntCounter>,
    label: PhantomData<fn(L)>,
}

impl<L: Label> Counters<L> {
    pub(super) fn new(registry: &Registry, name: &str, help: &str, label: &str) -> Result<Self, Error> {
        let family = counters(registry, name, help, &[label])?;
        Self::of(L::ALL.iter().map(|value| family.get_metric_with_label_values(&[value.word()])))
    }

    /// Counters over the labels `names`, of which the last varies and the others have the values `fixed`.
    pub(super) fn within(family: &IntCounterVec, fixed: &[&str]) -> Result<Self, Error> {
        Self::of(L::ALL.iter().map(|value| {
            let values: Vec<&str> = fixed.iter().copied().chain([value.word()]).collect();
            family.get_metric_with_label_values(&values)
        }))
    }

    fn of(handles: impl Iterator<Item = Result<IntCounter, Error>>) -> Result<Self, Error> {
        Ok(Self { handles: handles.collect::<Result<_, _>>()?, label: PhantomData })
    }

    pub(super) fn add(&self, label: L, n: u64) {
        if let Some(handle) = self.handles.get(label.index()) {
            handle.inc_by(n);
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.handles.iter().map(IntCounter::get).sum()
    }
}

/// Counters over a label whose values a policy's author chooses: the first `BOUND` values, then `other`.
#[derive(Debug)]
pub(super) struct Named {
    family: IntCounterVec,
    known: ArcSwap<HashMap<String, IntCounter>>,
    other: IntCounter,
}

/// How many values of an open label are told apart.
const BOUND: usize = 100;

impl Named {
    pub(super) fn new(registry: &Registry, name: &str, help: &str, label: &str) -> Result<Self, Error> {
        let family = counters(registry, name, help, &[label])?;
        let other = family.get_metric_with_label_values(&["other"])?;
        Ok(Self { family, known: ArcSwap::default(), other })
    }

    pub(super) fn inc(&self, value: &str) {
        match self.known.load().get(value) {
            Some(handle) => handle.inc(),
            None => self.learn(value).inc(),
        }
    }

    /// The handle of a value that is seen for the first time.
    fn learn(&self, value: &str) -> IntCounter {
        self.known.rcu(|known| {
            let mut known = Arc::clone(known);
            if known.len() < BOUND
                && let Ok(handle) = self.family.get_metric_with_label_values(&[value])
            {
                Arc::make_mut(&mut known).insert(value.to_owned(), handle);
            }
            known
        });
        self.known.load().get(value).unwrap_or(&self.other).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_label_stops_growing_at_its_bound() {
        let registry = Registry::new();
        let named = Named::new(&registry, "n_total", "n", "name").unwrap();
        for n in 0..BOUND + 7 {
            named.inc(&n.to_string());
        }
        named.inc("0");
        assert_eq!(registry.gather()[0].get_metric().len(), BOUND + 1);
        assert_eq!(named.other.get(), 7);
        assert_eq!(named.known.load().get("0").unwrap().get(), 2);
    }
}
