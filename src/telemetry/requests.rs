//! Requests by provider, API and verdict: as many series as there are providers and APIs that were asked.

use std::sync::OnceLock;

use prometheus::{Error, IntCounterVec, Registry};

use super::family::{Counters, counters};
use super::label::Label;
use crate::call::{Api, Service, Vendor};
use crate::decision::Verdict;

/// The counters; those of a provider's API are there once it was asked, so that a scrape is not mostly zeros.
#[derive(Debug)]
pub(super) struct Requests {
    family: IntCounterVec,
    /// Of hosts that are no LLM provider's.
    none: Counters<Verdict>,
    /// By provider, then API.
    known: Vec<OnceLock<Option<Counters<Verdict>>>>,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let family = counters(
            registry,
            "postern_requests_total",
            "Requests on inspected connections by verdict.",
            &["provider", "api", "verdict"],
        )?;
        let none = Counters::within(&family, &["none", "none"])?;
        let known = std::iter::repeat_with(OnceLock::new).take(Vendor::ALL.len() * Api::ALL.len()).collect();
        Ok(Self { family, none, known })
    }

    pub(super) fn add(&self, service: Option<Service>, verdict: Verdict) {
        match service {
            None => self.none.add(verdict, 1),
            Some(Service { vendor, api, .. }) => {
                let Some(cell) = self.known.get(vendor.index() * Api::ALL.len() + api.index()) else {
                    return;
                };
                let made = || Counters::within(&self.family, &[vendor.word(), api.word()]).ok();
                if let Some(verdicts) = cell.get_or_init(made) {
                    verdicts.add(verdict, 1);
                }
            }
        }
    }
}
