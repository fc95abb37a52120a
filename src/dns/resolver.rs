//! The resolver: joins the decision with policy, the table of names, events and metrics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::answer::{Outcome, Source, answer};
use super::places::Places;
use super::table::{Names, Synthetic};
use crate::decision::Decision;
use crate::event::{Action, Destination, Event, Kind};
use crate::ledger::fresh_id;
use crate::name::host::DnsName;
use crate::rate::Rate;
use crate::route;
use crate::telemetry::Metrics;
use crate::telemetry::label::DnsAnswer;

/// Says whether policy lets a name be answered.
pub type Judge = dyn Fn(&DnsName) -> Result<(), Decision> + Send + Sync;

/// Takes the events of names that are refused.
pub type Emit = dyn Fn(Event) + Send + Sync;

/// A name that is refused has one event in this time.
const ONCE: Duration = Duration::from_secs(60);
/// So many names have one; what is refused beside them is in the metrics alone.
const REPORTED: usize = 1_024;
/// A thousand questions a second: no client comes near, and a table of names is filled in a minute at the soonest.
const INTERVAL: Duration = Duration::from_millis(1);
/// So many may come at once.
const BURST: u32 = 2_000;
/// Where questions go.
const PORT: u16 = 53;

/// Answers questions, whichever socket they come by.
pub struct Resolver {
    names: Arc<Names>,
    judge: Box<Judge>,
    /// The search domains of resolv.conf: clients try names below them that nobody meant.
    search: Vec<DnsName>,
    metrics: Arc<Metrics>,
    emit: Box<Emit>,
    rate: Mutex<Rate>,
    reported: Mutex<Places>,
    ipv6_only: AtomicBool,
}

impl Resolver {
    pub fn new(
        names: Arc<Names>,
        judge: Box<Judge>,
        search: Vec<DnsName>,
        metrics: Arc<Metrics>,
        emit: Box<Emit>,
    ) -> Self {
        let resolver = Self {
            names,
            judge,
            search,
            metrics,
            emit,
            rate: Mutex::new(Rate::new(INTERVAL, BURST)),
            reported: Mutex::new(Places::new(REPORTED, ONCE)),
            ipv6_only: AtomicBool::new(false),
        };
        resolver.look();
        resolver
    }

    /// Answers the bytes of a question, or says nothing.
    pub(super) fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        if !locked(&self.rate).take(Instant::now()) {
            self.dropped();
            return None;
        }
        let Some(answer) = answer(question, self) else {
            self.dropped();
            return None;
        };
        self.metrics.dns_question(label(&answer.outcome));
        if let Outcome::Denied(name, decision) = &answer.outcome {
            self.report(name, decision);
        }
        Some(answer.bytes)
    }

    /// A question was not answered.
    pub(super) fn dropped(&self) {
        self.metrics.dns_question(DnsAnswer::Dropped);
    }

    /// Reads the pod's routes again, and lets go of names whose time has run out.
    pub(super) fn look(&self) {
        let [v4, v6] = self.names.pools().map(|pool| pool.network());
        let is_there = |to| route::is_there(to).unwrap_or(true);
        self.ipv6_only.store(!is_there(v4) && is_there(v6), Ordering::Relaxed);
        self.count();
    }

    fn count(&self) {
        self.metrics.dns_names(self.names.count(Instant::now()));
    }

    /// The event of a name that policy denies, once in a while.
    fn report(&self, name: &DnsName, decision: &Decision) {
        if is_expansion(name, &self.search) || !self.is_news(name) {
            return;
        }
        let mut event = Event::new(fresh_id(), Kind::Connection, decision.clone());
        event.destination = Some(Arc::new(Destination {
            host: name.to_string(),
            port: PORT,
            action: Action::Deny,
            intercepted: false,
            reason: None,
        }));
        (self.emit)(event);
    }

    fn is_news(&self, name: &DnsName) -> bool {
        let (mut reported, now) = (locked(&self.reported), Instant::now());
        !reported.is_held(name, now) && reported.hold(name, now).is_some()
    }
}

impl Source for Resolver {
    fn judge(&self, name: &DnsName) -> Result<(), Decision> {
        (self.judge)(name)
    }

    fn addresses(&self, name: &DnsName) -> Option<Synthetic> {
        let addresses = self.names.address_of(name, Instant::now());
        self.count();
        addresses
    }

    fn is_ipv6_only(&self) -> bool {
        self.ipv6_only.load(Ordering::Relaxed)
    }
}

fn label(outcome: &Outcome) -> DnsAnswer {
    match outcome {
        Outcome::Address => DnsAnswer::Address,
        Outcome::NoData => DnsAnswer::NoData,
        Outcome::Denied(..) | Outcome::NoName => DnsAnswer::NxDomain,
        Outcome::Full => DnsAnswer::ServFail,
        Outcome::NotServed => DnsAnswer::Refused,
        Outcome::Malformed => DnsAnswer::Malformed,
    }
}

/// Whether a name is what a client makes of a complete one, `api.example.com` and the search domain `svc.cluster.local`,
/// before it asks for that itself.
fn is_expansion(name: &DnsName, search: &[DnsName]) -> bool {
    let prefixes = search.iter().filter_map(|domain| {
        name.as_str().strip_suffix(domain.as_str()).and_then(|prefix| prefix.strip_suffix('.'))
    });
    prefixes.min_by_key(|prefix| prefix.len()).is_some_and(|prefix| prefix.contains('.'))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_search_domain_was_put_behind_is_known_as_such() {
        let search: Vec<DnsName> = ["agents.svc.cluster.local", "svc.cluster.local", "cluster.local"]
            .iter()
            .map(|domain| DnsName::parse(domain).unwrap())
            .collect();
        for (name, expansion) in [
            ("api.example.com.agents.svc.cluster.local", true),
            ("api.example.com.svc.cluster.local", true),
            ("api.example.com.cluster.local", true),
            ("db.agents.svc.cluster.local", false),
            ("agents.svc.cluster.local", false),
            ("api.example.com", false),
            ("x.notcluster.local", false),
        ] {
            assert_eq!(is_expansion(&DnsName::parse(name).unwrap(), &search), expansion, "{name}");
        }
    }
}
