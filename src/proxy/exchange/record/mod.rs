//! Records one exchange: emits the request's event at its decision, the response's at its end. It decides and counts
//! nothing that limits an agent.

mod routed;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{HeaderMap, header};

use super::decide::HeadFacts;
use super::detection::{StreamFindings, Streamed};
use super::named::{self, short};
use super::reply;
use super::rules::{EndedAnswer, ExchangeFacts};
use super::target::UpstreamTarget;
use crate::call::{self, AnswerFacts, CallNote, Denial, Normalization, RequestFacts, Service};
use crate::decision::{Decision, Verdict};
use crate::detection::Inspected;
use crate::event::{self, Action, Event, Http, Id, Kind, Payload, TraceParent, Transform};
use crate::ledger::fresh_id;
use crate::provider::answer::BrokenAnswer;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Failure, Refusal};
use crate::proxy::inbound::session::{Busy, Session};
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::Origin;
use crate::telemetry::metrics::Timings;

/// How many tool definitions an event has.
const TOOLS: usize = 128;
/// What the events of an exchange say of its request.
pub(crate) struct RecordedRequest<'a> {
    pub(crate) session: &'a Arc<str>,
    pub(crate) trace: Option<TraceParent>,
    pub(crate) destination: &'a Arc<event::Destination>,
    pub(crate) http: &'a Http,
    pub(crate) provider: Option<&'a event::Provider>,
    pub(crate) conversation: Option<event::Conversation>,
}

/// Rules about the end of an answer, with what is known of it before.
pub(crate) struct EndRules {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) facts: Arc<ExchangeFacts>,
}

/// One exchange. Dropping it ends it: an agent that hangs up is recorded too.
pub(crate) struct Record {
    session: Arc<Session>,
    _busy: Busy,
    /// The memory that the exchange reserves.
    room: Option<Reserved>,
    id: Id,
    label: Arc<str>,
    /// Whether the head says which session it is.
    is_labelled: bool,
    trace: Option<TraceParent>,
    destination: Arc<event::Destination>,
    http: Http,
    service: Option<Service>,
    /// The organization that the request names.
    organization: Option<Arc<str>>,
    /// The facts of a request to an LLM provider, and of its answer.
    provider: Option<event::Provider>,
    /// How much a request to a model holds, once it was read.
    conversation: Option<event::Conversation>,
    usage: call::Usage,
    /// The decision about the answer, if it was not let through.
    verdict: Decision,
    is_decided: bool,
    ended: bool,
    /// The id of the event of the end, where the agent was told it before.
    ending: Option<Id>,
    begun: Instant,
    asked: Option<Instant>,
    head: Option<Instant>,
    first_byte: Option<Instant>,
    /// The request's `Content-Length`.
    announced: Option<u64>,
    received: u64,
    encoding: Option<String>,
    failure: Option<Cow<'static, str>>,
    transforms: Vec<Transform>,
    /// The rules that are asked when the answer has ended.
    end_rules: Option<EndRules>,
    /// The name of the credential that the request was given.
    credential: Option<Arc<str>>,
    /// What detection found in the request.
    findings: Vec<event::Finding>,
    /// The same in a body on its way.
    streamed: Option<StreamFindings>,
    /// Who answers by a route.
    routed: Option<routed::RoutedAnswer>,
}

impl Record {
    pub(crate) fn begin(session: &Arc<Session>, parts: &Parts) -> Self {
        let label = named::session(&parts.headers);
        Self {
            session: Arc::clone(session),
            _busy: session.activity.begin(),
            room: None,
            id: fresh_id(),
            is_labelled: label.is_some(),
            label: label.unwrap_or_else(|| Arc::clone(&session.label)),
            trace: named::trace(&parts.headers),
            destination: Arc::clone(&session.destination),
            http: session.gateway.shown_head(parts),
            service: None,
            organization: named::organization_of_request(&parts.headers)
                .map(|named| short(&session.gateway.shown(&named)).into()),
            provider: None,
            conversation: None,
            usage: call::Usage::default(),
            verdict: Decision::of(Verdict::Allow),
            is_decided: false,
            ended: false,
            ending: None,
            begun: Instant::now(),
            asked: None,
            head: None,
            first_byte: None,
            announced: parts
                .headers
                .get(header::CONTENT_LENGTH)
                .and_then(|length| length.to_str().ok()?.parse().ok()),
            received: 0,
            encoding: None,
            failure: None,
            transforms: Vec::new(),
            end_rules: None,
            credential: None,
            findings: Vec::new(),
            streamed: None,
            routed: None,
        }
    }

    /// Takes what was found in the request, and emits what is recorded beside its own decision.
    pub(crate) fn inspected(&mut self, inspected: Inspected) {
        for (detector, action) in &inspected.actions {
            self.session.gateway.metrics.dlp_finding(detector, action.as_str());
        }
        self.found(inspected.findings);
        self.emit_audits(inspected.recorded);
    }

    /// Takes what was found in the request.
    pub(super) fn found(&mut self, findings: Vec<event::Finding>) {
        self.findings.extend(findings);
        event::keep_worst(&mut self.findings);
    }

    /// What was found in the request so far.
    pub(crate) fn findings(&self) -> &[event::Finding] {
        &self.findings
    }

    /// Takes over what will be found in the body.
    pub(super) fn streams(&mut self, findings: StreamFindings) {
        self.streamed = Some(findings);
    }

    /// The same of a body to no model that was searched whole.
    pub(super) fn found_streamed(&mut self, findings: &StreamFindings) {
        let Streamed { findings, recorded } = findings.take();
        self.found(findings);
        self.emit_audits(recorded);
    }

    /// What was found in a body on its way, since this was asked last. Emits what is only recorded of it.
    fn streamed(&self) -> Vec<event::Finding> {
        let Streamed { findings, recorded } =
            self.streamed.as_ref().map(StreamFindings::take).unwrap_or_default();
        self.emit_audits(recorded);
        findings
    }

    /// Keeps the exchange's reservation until its end.
    pub(crate) fn hold_room(&mut self, room: Reserved) {
        self.room = Some(room);
    }

    /// The head was decided: takes its facts, and emits the events of its audits.
    pub(super) fn head_decided(&mut self, facts: &HeadFacts) {
        if let Some(origin) = &facts.origin {
            self.set_destination(origin);
        }
        facts.destination_audits.iter().for_each(|decision| self.emit_audit(decision));
        if facts.is_destination_denied {
            let destination = event::Destination { action: Action::Deny, ..(*self.destination).clone() };
            self.destination = Arc::new(destination);
        }
        self.service = facts.service;
        self.provider = facts
            .service
            .map(|service| event::Provider { organization: self.organization.clone(), ..service.into() });
        facts.endpoint_audit.iter().for_each(|decision| self.emit_audit(decision));
    }

    /// Sets the destination, if the connection was not made for one.
    fn set_destination(&mut self, origin: &Origin) {
        if self.destination.port == 0 {
            self.destination = Arc::new(event::Destination {
                host: origin.host.to_string(),
                port: origin.port,
                action: Action::Inspect,
                intercepted: true,
                reason: None,
            });
        }
    }

    /// What its events say of the request.
    pub(crate) fn shown(&self) -> RecordedRequest<'_> {
        RecordedRequest {
            session: &self.label,
            trace: self.trace,
            destination: &self.destination,
            http: &self.http,
            provider: self.provider.as_ref(),
            conversation: self.conversation,
        }
    }

    /// The length that the request's head says.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    pub(crate) fn service(&self) -> Option<Service> {
        self.service
    }

    /// Takes the facts of a request to a model.
    pub(crate) fn model_request_read(&mut self, facts: &RequestFacts) {
        if let (false, Some(session)) = (self.is_labelled, &facts.session) {
            self.label = self.short(session).into();
        }
        self.conversation = Some(facts.conversation.into());
        let gateway = Arc::clone(&self.session.gateway);
        // What is cut could not be searched.
        let short = |text: &str| short(&gateway.shown(text));
        let Some(provider) = &mut self.provider else { return };
        provider.max_tokens = facts.max_tokens;
        provider.model = facts.model.as_deref().map(|model| short(model).into());
        provider.stream = Some(facts.stream);
        if facts.models.len() > 1 {
            provider.models = facts.models.iter().map(|model| short(model)).collect();
        }
        let tools = facts.tools.iter().take(TOOLS);
        provider.tools = tools
            .map(|tool| event::ToolDefinition { name: short(&tool.name), sha256: tool.sha256.clone() })
            .collect();
    }

    /// A name as events have it; what is cut could not be searched any more.
    fn short(&self, name: &str) -> String {
        short(&self.session.gateway.shown(name))
    }

    /// Emits the decisions beside a request's own: audits, and removals in place of a refusal.
    pub(crate) fn emit_audits(&self, decisions: Vec<Decision>) {
        for decision in decisions.into_iter().filter(|decision| decision.verdict != Verdict::Deny) {
            self.session.gateway.emit(self.event(fresh_id(), Kind::Policy, decision));
        }
    }

    /// Emits the event of an edited body.
    pub(crate) fn body_edited(&mut self, transforms: Vec<Transform>) {
        let mut event = self.event(fresh_id(), Kind::Transform, Decision::of(Verdict::Allow));
        event.transforms.clone_from(&transforms);
        self.session.gateway.emit(event);
        self.transforms.extend(transforms);
    }

    /// Results of tools were shortened: emits the event of those that are told of, and keeps the sum.
    pub(crate) fn results_shortened(&mut self, told: Vec<Transform>, sum: Option<Transform>) {
        if !told.is_empty() {
            let mut event = self.event(fresh_id(), Kind::Transform, Decision::of(Verdict::Allow));
            event.transforms = told;
            self.session.gateway.emit(event);
        }
        self.transforms.extend(sum);
    }

    /// Emits an event for each tool call that was decided.
    pub(crate) fn calls_decided(&mut self, notes: Vec<CallNote>) {
        let Some(service) = self.service else { return };
        if notes.is_empty() {
            return;
        }
        for mut note in notes {
            let audited = std::mem::take(&mut note.verdict.audited);
            let decision = note.verdict.decision.clone();
            let gateway = &self.session.gateway;
            gateway.metrics.tool_call(service.vendor, &gateway.shown(&note.name), decision.verdict);
            if let Some(opaque) = note.verdict.opaque {
                self.session.gateway.metrics.shell_call(opaque);
            }
            let id = note.event;
            let call = event::ToolCall::from(note.map_names(|name| gateway.shown(&name).into_owned()));
            for (id, kind, decision) in std::iter::once((id, Kind::ToolCall, decision))
                .chain(audited.into_iter().map(|decision| (fresh_id(), Kind::Policy, decision)))
            {
                let mut event = self.event(id, kind, decision);
                event.direction = event::Direction::Inbound;
                event.tool_call = Some(call.clone());
                self.session.gateway.emit(event);
            }
        }
    }

    /// Emits the event of another request over the same WebSocket that was allowed.
    pub(crate) fn ws_request_allowed(&mut self) {
        self.emit_ws_request(fresh_id(), Decision::of(Verdict::Allow));
        self.session.gateway.metrics.request(self.service, Verdict::Allow);
    }

    /// Emits the event of another request over the same WebSocket that was denied. Returns the id of the event.
    pub(crate) fn ws_request_denied(&mut self, denial: &Denial) -> Id {
        let id = fresh_id();
        self.emit_ws_request(id, denial.decision.clone());
        self.session.gateway.metrics.request(self.service, Verdict::Deny);
        id
    }

    fn emit_ws_request(&mut self, id: Id, decision: Decision) {
        let mut event = self.event(id, Kind::Request, decision);
        event.dlp = std::mem::take(&mut self.findings);
        self.session.gateway.emit(event);
    }

    /// Takes the facts of the answer so far.
    pub(crate) fn answer_read(&mut self, facts: &AnswerFacts, normalization: Normalization) {
        self.usage = facts.usage;
        let model = facts.model.as_deref().map(|model| self.short(model));
        let Some(provider) = &mut self.provider else { return };
        provider.response_model = model;
        if provider.request_id.is_none() {
            provider.request_id = facts.id.as_deref().map(short);
        }
        provider.normalization = Some(normalization.as_str().into());
    }

    /// Warns of an unreadable part of the answer that `failurePolicy: Open` let pass.
    pub(crate) fn unread_passed(&self, broken: &BrokenAnswer) {
        self.emit_warning(&Decision::builtin(broken.rule, broken.reason.clone()));
    }

    /// Records so many bytes of the answer that were left out, as clients disagree about them.
    pub(crate) fn bytes_left_out(&mut self, bytes: usize) {
        if bytes > 0 {
            let detail =
                format!("{bytes} bytes left out: behind the end of the answer, or in none of its events");
            self.transforms.push(Transform::new("answer", Some(detail)));
        }
    }

    /// Warns of a denial that `failurePolicy: Open` does not enforce.
    pub(crate) fn emit_warning(&self, decision: &Decision) {
        let warning = Decision { verdict: Verdict::Audit, ..decision.clone() };
        let mut event = self.event(fresh_id(), Kind::Policy, warning);
        event.direction = event::Direction::Inbound;
        self.session.gateway.emit(event);
    }

    /// The guard ended the answer: it could not be read, or exceeded a bound.
    pub(crate) fn answer_terminated(&mut self, broken: &BrokenAnswer) {
        self.verdict = Decision::builtin(broken.rule, broken.reason.clone());
        self.failure = Some(Cow::Borrowed("the answer was ended by policy"));
        self.ending = broken.event;
    }

    /// Policy ended the WebSocket.
    pub(super) fn socket_denied(&mut self, decision: &Decision) {
        self.verdict = decision.clone();
        self.failure = Some("the WebSocket was ended by policy".into());
    }

    /// `host:port` for people.
    pub(crate) fn destination(&self) -> String {
        format!("{}:{}", self.destination.host, self.destination.port)
    }

    /// Emits the event of a request that is sent to this target.
    pub(super) fn request_allowed(&mut self, decision: &Decision, target: &UpstreamTarget) {
        if let Some(plan) = &target.credential {
            let credential = plan.credential();
            self.session.gateway.metrics.credential_attached(&credential.name);
            self.credential = Some(credential.name.as_str().into());
            self.transforms.push(Transform::new("credential", Some(credential.id.to_string())));
        }
        self.asked = Some(Instant::now());
        self.emit_decision(self.id, Kind::Request, decision);
        self.is_decided = true;
        self.session.gateway.metrics.request(self.service, decision.verdict);
    }

    /// Emits the decision that Audit policies would have made.
    pub(crate) fn emit_audit(&self, decision: &Decision) {
        self.emit_decision(fresh_id(), Kind::Policy, decision);
    }

    /// The request or its answer is denied. Returns the id of the event.
    pub(crate) fn request_denied(&mut self, refusal: &Refusal) -> Id {
        let decision = &refusal.decision;
        self.http.status = Some(reply::status(refusal, self.service).as_u16());
        if self.head.is_some() {
            // The answer is denied, before any of it was sent on.
            self.verdict = decision.clone();
            return self.end();
        }
        // An allowed request can still be denied at connect, where its address becomes known.
        let id = if self.is_decided { fresh_id() } else { self.id };
        let mut decision = decision.clone();
        decision.verdict = Verdict::Deny;
        self.emit_decision(id, Kind::Request, &decision);
        self.session.gateway.metrics.request(self.service, Verdict::Deny);
        self.is_decided = true;
        self.ended = true;
        id
    }

    /// Releases what is kept for an exchange that has been reported.
    pub(crate) fn release(&mut self) {
        self.provider = None;
        self.transforms = Vec::new();
        self.room = None;
    }

    /// The upstream failed. Returns the id of the event.
    pub(crate) fn failed(&mut self, failure: &Failure) -> Id {
        let (status, label) = failure.class.shows();
        if let Some(label) = label {
            self.session.gateway.metrics.upstream_failed(label);
        }
        let destination = self.session.gateway.shown(&self.destination()).into_owned();
        tracing::warn!(%destination, class = ?failure.class, "{failure}");
        self.http.status = Some(status.as_u16());
        self.failure = Some(failure.message.clone().into());
        self.is_decided = true;
        self.end()
    }

    /// Has these rules asked when the answer has ended.
    pub(crate) fn ask_at_end(&mut self, rules: EndRules) {
        self.end_rules = Some(rules);
    }

    /// Emits what rules record of an answer that has ended.
    fn emit_end_audits(&mut self) {
        let Some(EndRules { snapshot, facts }) = self.end_rules.take() else { return };
        let model = self.provider.as_ref().and_then(|provider| provider.response_model.as_deref());
        let audits =
            facts.ask_end(&snapshot, &EndedAnswer { model, usage: self.usage, bytes: self.received });
        for decision in audits {
            let mut event = self.event(fresh_id(), Kind::Policy, decision);
            event.direction = event::Direction::Inbound;
            event.usage = (&self.usage).into();
            self.session.gateway.emit(event);
        }
    }

    /// The head of the answer has come.
    pub(crate) fn answer_begun(&mut self, status: u16, head: &HeaderMap) {
        self.http.status = Some(status);
        let encoding = head.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        self.encoding = encoding.map(str::to_owned);
        if let Some(provider) = &mut self.provider {
            provider.request_id = named::request_id(head);
            if let Some(organization) = named::organization_of_answer(head) {
                provider.organization = Some(short(&self.session.gateway.shown(&organization)).into());
            }
        }
        self.head = Some(Instant::now());
        self.session.activity.moved();
    }

    /// Bytes of the answer go to the agent.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        if self.first_byte.is_none() {
            self.first_byte = Some(Instant::now());
        }
        self.received += bytes as u64;
        self.session.activity.moved();
    }

    /// The answer's body has ended, well or badly.
    pub(crate) fn body_ended(mut self: Box<Self>, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            if let (_, Some(label)) = failure.class.shows() {
                self.session.gateway.metrics.upstream_failed(label);
            }
            self.failure = Some(failure.message.clone().into());
        }
        self.end();
    }

    /// The WebSocket has ended, after so many bytes for the agent; well, or for this reason.
    pub(crate) fn socket_ended(mut self: Box<Self>, received: u64, reason: Option<&'static str>) {
        self.received = received;
        // If policy ended it, that is the reason.
        self.failure = self.failure.take().or(reason.map(Cow::Borrowed));
        self.end();
    }

    /// Emits how the exchange ended, once.
    fn end(&mut self) -> Id {
        let id = self.ending.take().unwrap_or_else(fresh_id);
        if std::mem::replace(&mut self.ended, true) {
            return id;
        }
        self.take_report();
        self.count_tokens();
        self.emit_end_audits();
        let mut event = self.event(id, Kind::Response, self.verdict.clone());
        event.usage = (&self.usage).into();
        event.direction = event::Direction::Inbound;
        event.payload =
            Some(Payload { bytes: self.received, encoding: self.encoding.take(), ..Payload::default() });
        event.transforms = std::mem::take(&mut self.transforms);
        event.dlp = self.streamed();
        if let Some(failure) = self.failure.take() {
            event.destination =
                Some(Arc::new(event::Destination { reason: Some(failure), ..(*self.destination).clone() }));
        }
        self.session.gateway.emit(event);
        self.session.gateway.metrics.exchange_ended(&self.timings());
        id
    }

    fn count_tokens(&self) {
        let (Some(service), Some(provider)) = (self.answering_service(), &self.provider) else { return };
        let model = provider.response_model.as_deref().or(provider.model.as_deref()).unwrap_or("unknown");
        let gateway = &self.session.gateway;
        gateway.metrics.tokens(service.vendor, &gateway.shown(model), &self.usage);
    }

    fn timings(&self) -> Timings {
        let now = Instant::now();
        let waited = self.asked.and_then(|asked| Some(self.head?.duration_since(asked)));
        Timings {
            total: now.duration_since(self.begun),
            upstream: self.asked.map(|asked| now.duration_since(asked)),
            added: waited
                .and_then(|waited| Some(self.first_byte?.duration_since(self.begun).saturating_sub(waited))),
            first_byte: self.first_byte.map(|first| first.duration_since(self.begun)),
        }
    }

    fn emit_decision(&self, id: Id, kind: Kind, decision: &Decision) {
        let mut event = self.event(id, kind, decision.clone());
        event.payload = self.announced.map(|bytes| Payload { bytes, ..Payload::default() });
        if kind == Kind::Request {
            event.dlp = if self.is_decided { self.streamed() } else { self.findings.clone() };
        }
        self.session.gateway.emit(event);
    }

    fn event(&self, id: Id, kind: Kind, decision: Decision) -> Event {
        let mut event = Event::new(id, kind, decision);
        event.session = Some(Arc::clone(&self.label));
        event.trace = self.trace;
        event.credential.clone_from(&self.credential);
        event.destination = Some(Arc::clone(&self.destination));
        event.http = Some(self.http.clone());
        event.provider.clone_from(&self.provider);
        if kind == Kind::Request {
            event.conversation = self.conversation;
        } else if let Some(provider) = event.provider.as_mut() {
            provider.tools.clear();
        }
        event.connection = Some(self.session.connection);
        event.exchange = Some(self.id);
        event
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_decided && !self.ended {
            self.failure = Some("the agent hung up".into());
            self.end();
        }
    }
}
