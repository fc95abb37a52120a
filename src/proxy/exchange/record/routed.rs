//! Records what a route does with a request: whom it asks, what was written anew, and what the model that answers counts.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::Record;
use crate::call::turn::{AnswerFailure, Notes};
use crate::call::{Service, Usage};
use crate::credential::placement::Plan;
use crate::decision::{Decision, Verdict};
use crate::event::{self, Extent, Id, Kind, Transform};
use crate::ledger::fresh_id;
use crate::policy::routing::Route;
use crate::provider::translate::estimate::Size;
use crate::proxy::exchange::routed::SharedReport;
use crate::proxy::exchange::target::UpstreamTarget;

/// The name of the change in which a body was written for another model.
const TRANSLATE: &str = "translate";
/// The name of the change in which markers were cut out.
const MARKER: &str = "marker";

/// What is known of the model that answers.
#[derive(Debug, Default)]
pub(super) struct RoutedAnswer {
    /// Its provider, under which tokens count.
    service: Option<Service>,
    report: SharedReport,
    /// The model's name in the gateway's memory, and the size of the request, from which its ratio is learnt.
    measured: Option<(String, Size)>,
}

impl Record {
    /// One of a chain is asked now.
    pub(in crate::proxy::exchange) fn asking(&mut self, route: &Route, shown: event::Route) {
        self.routed = None;
        let Some(provider) = &mut self.provider else { return };
        let attempts = provider.route.take().map(|route| route.attempts.clone()).unwrap_or_default();
        let rule = route.id.as_str().into();
        provider.route = Some(Arc::new(event::Route { rule, attempts, ..shown }));
    }

    /// One of a chain was asked, or passed over.
    pub(in crate::proxy::exchange) fn attempted(&mut self, attempt: event::Attempt) {
        let route = self.provider.as_mut().map(|provider| provider.route.get_or_insert_default());
        if let Some(route) = route {
            Arc::make_mut(route).attempts.push(attempt);
        }
    }

    /// A request goes to one of a chain. The first time the event of the request is emitted.
    pub(in crate::proxy::exchange) fn request_routed(
        &mut self,
        decision: &Decision,
        target: &UpstreamTarget,
        (notes, before, after): (&Notes, &Bytes, &Bytes),
    ) {
        let metrics = Arc::clone(&self.session.gateway.metrics);
        if self.is_decided {
            let plan = target.credential.as_ref();
            self.credential = plan.map(|plan| plan.credential().name.as_str().into());
            if let Some(credential) = plan.map(Plan::credential) {
                metrics.credential_attached(&credential.name);
                self.transforms.push(Transform::new("credential", Some(credential.id.to_string())));
            }
        } else {
            self.request_allowed(decision, target);
        }
        self.routed = Some(RoutedAnswer { service: target.service, ..RoutedAnswer::default() });
        if before != after {
            self.written_anew(notes, before, after);
        }
    }

    /// A body was written anew for the one that is asked.
    pub(in crate::proxy::exchange) fn written_anew(&mut self, notes: &Notes, before: &Bytes, after: &Bytes) {
        let metrics = &self.session.gateway.metrics;
        notes.iter().for_each(|(what, times)| metrics.routing().dropped(what, u64::from(times)));
        let words: Vec<String> = notes.iter().map(|(what, times)| format!("{what} {times}")).collect();
        let detail = (!words.is_empty()).then(|| words.join(", "));
        self.body_edited(vec![Transform {
            before: Some(extent(before)),
            after: Some(extent(after)),
            ..Transform::new(TRANSLATE, detail)
        }]);
    }

    /// Markers of the route with this token were cut out.
    pub(in crate::proxy::exchange) fn markers_cut(&mut self, label: &str, before: &Bytes, after: &Bytes) {
        let detail = Some(self.short(label));
        self.body_edited(vec![Transform {
            before: Some(extent(before)),
            after: Some(extent(after)),
            ..Transform::new(MARKER, detail)
        }]);
    }

    /// One of a chain gave no answer.
    pub(in crate::proxy::exchange) fn attempt_failed(
        &self,
        route: &Route,
        label: &str,
        failure: &AnswerFailure,
    ) {
        let reason = format!("{label} gave no answer: {failure}");
        self.emit_audit(&Decision::by(route.id.clone(), Verdict::Audit, reason));
    }

    /// The answer is translated on its way: what it says of itself is in this report.
    pub(in crate::proxy::exchange) fn translated(&mut self, report: SharedReport, measured: (String, Size)) {
        let routed = self.routed.get_or_insert_default();
        (routed.report, routed.measured) = (report, Some(measured));
    }

    /// The gateway itself answers a request that may go on.
    pub(in crate::proxy::exchange) fn told_here(&mut self, decision: &Decision, status: StatusCode) {
        self.emit_allowed(decision);
        self.http.status = Some(status.as_u16());
    }

    fn emit_allowed(&mut self, decision: &Decision) {
        self.emit_decision(self.id, Kind::Request, decision);
        self.session.gateway.metrics.request(self.service, decision.verdict);
        self.is_decided = true;
    }

    /// The gateway itself answers with a text that models of the agent read. Returns the id of the event.
    pub(in crate::proxy::exchange) fn stub_told(&mut self, decision: &Decision) -> Id {
        self.http.status = Some(200);
        self.emit_decision(self.id, Kind::Request, decision);
        self.session.gateway.metrics.request(self.service, Verdict::Deny);
        (self.is_decided, self.ended) = (true, true);
        self.id
    }

    /// No model answered. Returns the id of the event of the end.
    pub(in crate::proxy::exchange) fn route_failed(&mut self, decision: &Decision, reason: &str) -> Id {
        let id = fresh_id();
        self.failure = Some(reason.to_owned().into());
        if !self.is_decided {
            self.emit_allowed(decision);
        }
        self.ending = Some(id);
        id
    }

    /// 24 hex digits that name the exchange.
    pub(in crate::proxy::exchange) fn hex_id(&self) -> String {
        let id = self.id.to_string().replace('-', "");
        id.get(id.len().saturating_sub(24)..).unwrap_or_default().to_owned()
    }

    /// Takes what the model that answered told, in place of what the agent reads of it.
    pub(super) fn take_report(&mut self) {
        let Some(RoutedAnswer { report, measured, .. }) = &mut self.routed else { return };
        let Some((name, size)) = measured.take() else { return };
        let report = report.take();
        let usage = report.usage.unwrap_or_default();
        if let Some(input) = usage.input {
            self.session.gateway.routing.ratios.learn(&name, size, input);
        }
        let metrics = &self.session.gateway.metrics;
        report.dropped.iter().for_each(|(what, times)| metrics.routing().dropped(what, times));
        self.set_usage(usage);
        let model = report.model.as_deref().map(|model| self.short(model));
        let id = report.id.as_deref().map(|id| self.short(id));
        if let Some(provider) = &mut self.provider {
            provider.response_model = model;
            provider.request_id = id;
        }
    }

    fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// The provider under which tokens count.
    pub(super) fn answering_service(&self) -> Option<Service> {
        self.routed.as_ref().and_then(|routed| routed.service).or(self.service)
    }
}

fn extent(body: &Bytes) -> Extent {
    Extent { sha256: crate::digest::sha256_hex(body), bytes: body.len() as u64, tokens: None }
}
