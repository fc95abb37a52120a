//! Metric families with bounded labels, whose handles are found without a lock.

use std::borrow::Cow;
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
}

/// Counters with an open label, whose values a policy's author, an agent or a model chooses. The first `BOUND` values
/// have series of their own, the rest is `other`.
#[derive(Debug)]
pub(super) struct NamedCounters {
    family: IntCounterVec,
    /// By the open value, then by the values of the closed labels around it.
    known: ArcSwap<HashMap<String, Vec<(Around, IntCounter)>>>,
}

/// The values of the closed labels before the open label and after it, where there are such labels.
type Around = (Option<&'static str>, Option<&'static str>);

/// The longest value of an open label, in characters.
const LONGEST: usize = 128;

/// Returns a value that is safe on a terminal: no escape sequence, no line break.
fn shown(value: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic();
    if value.len() <= LONGEST && value.chars().all(is_plain) {
        return Cow::Borrowed(value);
    }
    value.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// How many values of an open label have a series of their own.
const BOUND: usize = 100;

const OTHER: &str = "other";

impl NamedCounters {
    pub(super) fn new(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<Self, Error> {
        let family = counters(registry, name, help, labels)?;
        Ok(Self { family, known: ArcSwap::default() })
    }

    pub(super) fn add(&self, around: Around, value: &str, n: u64) {
        let value = shown(value);
        let value = value.as_ref();
        let known = self.known.load();
        let counter = known.get(value).and_then(|counters| counters.iter().find(|(key, _)| *key == around));
        match counter {
            Some((_, counter)) => counter.inc_by(n),
            None => self.learn(around, value, n),
        }
    }

    /// Counts a value, or its first among these others.
    fn learn(&self, around: Around, value: &str, n: u64) {
        // Two threads may pass this check at once: the bound is exceeded by a few, not by what agents send.
        let is_full = {
            let known = self.known.load();
            known.len() >= BOUND && !known.contains_key(value)
        };
        let value = if is_full { OTHER } else { value };
        let labels: Vec<&str> = [around.0, Some(value), around.1].into_iter().flatten().collect();
        let Ok(counter) = self.family.get_metric_with_label_values(&labels) else { return };
        counter.inc_by(n);
        // `rcu` may run this more than once: another thread can have added the same counter meanwhile.
        self.known.rcu(|known| {
            let mut known = Arc::clone(known);
            let counters = Arc::make_mut(&mut known).entry(value.to_owned()).or_default();
            if counters.iter().all(|(key, _)| *key != around) {
                counters.push((around, counter.clone()));
            }
            known
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_label_stops_growing_at_its_bound() {
        let registry = Registry::new();
        let named = NamedCounters::new(&registry, "n_total", "n", &["name", "verdict"]).unwrap();
        let around = (None, Some("Deny"));
        for n in 0..BOUND + 7 {
            named.add(around, &n.to_string(), 1);
        }
        named.add(around, "0", 2);
        assert_eq!(registry.gather()[0].get_metric().len(), BOUND + 1);
        let count = |value: &str| named.known.load().get(value).unwrap()[0].1.get();
        assert_eq!((count(OTHER), count("0")), (7, 3));
    }

    #[test]
    fn an_open_label_is_short_and_visible() {
        let long = "n".repeat(10_000);
        for (value, expected) in [
            ("mcp__srv__do it", "mcp__srv__do it"),
            ("\u{1b}[31mred\n\u{202e}", "?[31mred??"),
            (long.as_str(), &long[..LONGEST]),
        ] {
            assert_eq!(shown(value), expected);
        }
    }

    #[test]
    fn closed_labels_around_an_open_one_are_told_apart() {
        let registry = Registry::new();
        let named = NamedCounters::new(&registry, "n_total", "n", &["provider", "tool", "verdict"]).unwrap();
        named.add((Some("openai"), Some("Deny")), "Bash", 1);
        named.add((Some("openai"), Some("Allow")), "Bash", 1);
        named.add((Some("openai"), Some("Allow")), "Bash", 1);
        assert_eq!(registry.gather()[0].get_metric().len(), 2);
    }
}
