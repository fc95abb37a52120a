//! Asks one model of a chain: writes its request and sends it.

use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};

use super::body::{self, ModelBody, ReadBody};
use super::outgoing;
use crate::call::turn::AnswerFailure;
use crate::call::{BlockedCalls, Dialect, FailureClass, Terms};
use crate::decision::Decision;
use crate::event;
use crate::policy::routing::{Hop, Model, ORIGIN};
use crate::provider;
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::Detection;
use crate::proxy::body::Body;
use crate::proxy::body::request::RequestBody;
use crate::proxy::error::{Class, Stop};
use crate::proxy::exchange::Exchange;
use crate::proxy::exchange::credentials::{self, OutboundBody};
use crate::proxy::exchange::detection;
use crate::proxy::exchange::model_request::{ModelRequest, describe, exhausted};
use crate::proxy::exchange::named;
use crate::proxy::exchange::record::Record;
use crate::proxy::exchange::response;
use crate::proxy::exchange::target::UpstreamTarget;
use crate::proxy::upstream::{AddressCheck, Answer, Key, Speaks, User};
use crate::wire::json::KnownParts;

/// The field that tells the agent's people who answered.
pub(super) const ROUTE: HeaderName = HeaderName::from_static("x-postern-route");

/// The request that a chain answers, as policy left it.
pub(in crate::proxy::exchange) struct AgentTurn<'a> {
    /// As the agent sent them.
    pub(in crate::proxy::exchange) parts: &'a Parts,
    pub(in crate::proxy::exchange) body: &'a Bytes,
    /// What is known of it.
    pub(in crate::proxy::exchange) known: &'a KnownParts,
    pub(in crate::proxy::exchange) model_request: &'a ModelRequest,
    /// Where the agent sent it.
    pub(in crate::proxy::exchange) origin: &'a UpstreamTarget,
    /// Why it may go on.
    pub(in crate::proxy::exchange) decision: &'a Decision,
}

impl AgentTurn<'_> {
    pub(super) fn dialect(&self) -> Dialect {
        self.model_request.dialect
    }

    fn read_body(&self) -> ReadBody<'_> {
        ReadBody { bytes: self.body, known: self.known }
    }

    pub(super) fn asked_model(&self) -> &str {
        self.model_request.facts.model.as_deref().unwrap_or_default()
    }

    /// The name by which it is remembered how this one does.
    pub(super) fn health_name(&self, hop: &Hop) -> String {
        match hop {
            Hop::Origin => self.origin.origin.to_string(),
            Hop::Model(model) => model.id.to_string(),
        }
    }

    /// What events tell of the one that is asked.
    pub(super) fn shown(&self, hop: &Hop) -> event::Route {
        let (service, model, origin) = match hop {
            Hop::Origin => (Some(self.model_request.service), self.asked_model(), self.origin.origin.clone()),
            Hop::Model(model) => {
                let name = model.model.as_deref().unwrap_or_else(|| self.asked_model());
                (Some(outgoing::service(&model.provider)), name, outgoing::origin(&model.provider))
            }
        };
        event::Route {
            label: hop.label().into(),
            vendor: service.map_or("custom", |service| service.vendor.as_str()).into(),
            api: service.map_or("other", |service| service.api.as_str()).into(),
            model: named::short(model).into(),
            host: origin.host.to_string(),
            port: origin.port,
            ..event::Route::default()
        }
    }
}

/// One attempt.
pub(super) struct Attempt<'a> {
    pub(super) exchange: &'a Exchange<'a>,
    pub(super) turn: &'a AgentTurn<'a>,
    pub(super) hop: &'a Hop,
    /// Whether no other one follows.
    pub(super) is_last: bool,
    /// When it is too late for a first piece.
    pub(super) until: Instant,
    /// When it is too late for the answer to begin.
    pub(super) latest: Instant,
    pub(super) rule: &'a str,
}

/// An answer that has begun.
pub(super) struct Begun {
    pub(super) response: Response<Body>,
    pub(super) target: UpstreamTarget,
}

/// Why there is none.
pub(super) enum Asked {
    Failed(Box<FailedAttempt>),
    /// The request must not go on, whoever would answer it.
    Stopped(Stop),
}

/// A model that gave no answer.
pub(super) struct FailedAttempt {
    pub(super) failure: AnswerFailure,
    pub(super) target: UpstreamTarget,
    /// What the agent reads if no other is asked, where that is in its own API.
    pub(super) answer: Option<Response<Body>>,
}

impl FailedAttempt {
    /// Masks the key of the provider in what its server says about the failure.
    pub(super) fn hide_key(&mut self, exchange: &Exchange<'_>) {
        let secrets = self.target.secrets(&exchange.snapshot);
        if let Some(masked) = secrets.and_then(|secrets| secrets.masked(self.failure.message.as_bytes())) {
            self.failure.message = String::from_utf8_lossy(&masked).into_owned();
        }
    }
}

/// A request as it is sent.
struct Outgoing {
    parts: Parts,
    target: UpstreamTarget,
    model_body: ModelBody,
}

impl Attempt<'_> {
    pub(super) async fn ask(&self, record: &mut Record) -> Result<Begun, Asked> {
        let outgoing = match self.hop {
            Hop::Origin => self.to_origin()?,
            Hop::Model(model) => self.to_model(model, record)?,
        };
        let Outgoing { parts, target, model_body } = outgoing;
        let ModelBody { body, translated, notes, known: _ } = model_body;
        record.request_routed(self.turn.decision, &target, (&notes, self.turn.body, &body));
        let answer = match self.send(parts, &target, body, record).await {
            Ok(answer) => answer,
            Err(stop) if is_our_own(&stop) => return Err(Asked::Stopped(stop)),
            Err(stop) => return Err(failed(failure_of(&stop), target)),
        };
        let received = response::receive(answer, self.exchange.session, &self.exchange.snapshot);
        let mut response = match received {
            Ok(response) => response,
            Err(failure) => return Err(failed(failure_of(&failure.into()), target)),
        };
        if matches!(self.hop, Hop::Origin) && self.is_last {
            // As if there were no route.
            response.headers_mut().insert(ROUTE, HeaderValue::from_static(ORIGIN));
            return Ok(Begun { response, target });
        }
        if self.decode(&mut response).is_err() {
            let failure = AnswerFailure::unreadable("the answer's content coding cannot be undone");
            return Err(failed(failure, target));
        }
        if !response.status().is_success() {
            return Err(self.refused(response, target).await);
        }
        self.begin(response, target, translated, record).await
    }

    /// The request as the agent sent it, without what only the gateway's models may read.
    fn to_origin(&self) -> Result<Outgoing, Asked> {
        let (exchange, target) = (self.exchange, self.turn.origin.clone());
        let limits = exchange.snapshot.json_limits();
        let model_body = body::for_origin(self.turn.model_request.service, self.turn.read_body(), limits);
        let model_body = match model_body {
            Ok(model_body) => model_body,
            Err(failure) => return Err(failed(failure, target)),
        };
        let mut parts = self.turn.parts.clone();
        exchange.edit(&mut parts.headers, &target, false);
        let is_same = model_body.body == *self.turn.body;
        if !is_same {
            describe(&mut parts.headers, model_body.body.len());
        }
        let is_edited = self.turn.model_request.is_edited || !is_same;
        let sent = OutboundBody { body: Some(&model_body.body), is_edited };
        credentials::attach(&exchange.snapshot, &mut parts, &target, &sent).map_err(Asked::Stopped)?;
        Ok(Outgoing { parts, target, model_body })
    }

    /// The request as a model of a provider reads it, judged once more by that provider's doors.
    fn to_model(&self, model: &Model, record: &mut Record) -> Result<Outgoing, Asked> {
        let (exchange, provider) = (self.exchange, &*model.provider);
        let snapshot = &exchange.snapshot;
        let asked = (self.turn.dialect(), self.turn.asked_model());
        let origin = || UpstreamTarget {
            origin: outgoing::origin(provider),
            service: Some(outgoing::service(provider)),
            credential: None,
        };
        let connect = |reason: &str| failed(AnswerFailure::new(FailureClass::Connect, reason), origin());
        if let Some(decision) = snapshot.policy().denies_provider(provider) {
            return Err(connect(&format!("{} denies its host", decision.rule_id())));
        }
        let written = body::for_model(asked, model, self.turn.read_body(), snapshot.json_limits());
        let mut model_body = written.map_err(|failure| failed(failure, origin()))?;
        let streams = self.turn.model_request.facts.stream;
        let head = &self.turn.parts.headers;
        let (mut parts, target) =
            outgoing::made(snapshot, provider, (streams, 0), head).map_err(|reason| connect(&reason))?;
        self.judge(&parts, &target, &mut model_body, record)?;
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(model_body.body.len()));
        let sent = OutboundBody { body: Some(&model_body.body), is_edited: true };
        match credentials::attach(snapshot, &mut parts, &target, &sent) {
            Ok(()) => Ok(Outgoing { parts, target, model_body }),
            Err(Stop::Denied(refusal)) => Err(connect(refusal.decision.why())),
            Err(stop) => Err(Asked::Stopped(stop)),
        }
    }

    /// Asks policy about the request as it leaves: what is harmless in one API can be a door in another.
    fn judge(
        &self,
        parts: &Parts,
        target: &UpstreamTarget,
        model_body: &mut ModelBody,
        record: &mut Record,
    ) -> Result<(), Asked> {
        let Some((service, dialect)) = target.service.and_then(|service| Some((service, service.dialect?)))
        else {
            return Ok(());
        };
        let snapshot = &self.exchange.snapshot;
        let (path, is_subscription) = (parts.uri.path(), provider::is_subscription(&parts.headers));
        let head = ModelRequestHead { service, path, query: None, is_subscription };
        let terms: (&dyn Terms, _) = (snapshot.policy().as_ref(), &BlockedCalls::new(1));
        // What may go to the origin, where the gateway's key vouches for what a model wrote, may not go everywhere.
        let searched = detection::inspection(snapshot, &target.origin.host, model_body.body.len());
        let mut searched = searched.map(|searched| searched.of_model(target.credential.is_some()));
        let detection = searched.as_mut().map(|searched| searched as &mut dyn Detection);
        // What the translator copied from the judged request, byte for byte, is not read again.
        let document =
            provider::request::document((&model_body.body, snapshot.json_limits()), &model_body.known);
        let judged = document.and_then(|document| {
            provider::request::read_document(provider::adapter(dialect), &head, &document, terms, detection)
        });
        let judged = match judged {
            Ok(judged) => judged,
            Err(denial) => {
                searched.into_iter().for_each(|mut searched| record.inspected(searched.take()));
                return Err(Asked::Stopped(denial.into()));
            }
        };
        record.emit_audits(judged.recorded);
        if let Some(edited) = judged.body {
            model_body.body = edited.into();
        }
        Ok(())
    }

    async fn send(
        &self,
        parts: Parts,
        target: &UpstreamTarget,
        body: Bytes,
        record: &Record,
    ) -> Result<Answer, Stop> {
        let exchange = self.exchange;
        let mut reserved =
            exchange.session.gateway.budget.open(exchange.snapshot.settings.limits.buffered_bytes);
        let held = if matches!(self.hop, Hop::Origin) { 0 } else { body.len() };
        reserved.set(held).map_err(|_| exhausted(exchange.session))?;
        let request = Request::from_parts(parts, RequestBody::whole(body, Some(reserved)));
        let upstreams = &exchange.snapshot.upstreams;
        let check = AddressCheck::new(exchange.snapshot.policy());
        let (check, key, speaks) = match self.hop {
            Hop::Origin => (check, target.pool_key(), exchange.session.speaks),
            Hop::Model(model) => {
                let provider = &model.provider;
                let user = User::Provider(provider.id.as_str().into());
                let speaks = if target.origin.tls { exchange.session.speaks } else { Speaks::H1 };
                let key = Key { user, origin: target.origin.clone() };
                (check.of_provider(&provider.allow_addresses), key, speaks)
            }
        };
        let answer = tokio::time::timeout_at(self.until.into(), upstreams.send(&check, key, speaks, request));
        let answer = answer.await.unwrap_or_else(|_| {
            let late = "the model's server did not answer in time";
            Err(crate::proxy::error::Failure::new(Class::HeadTimeout, late).into())
        });
        if let Some(decision) = check.into_audited() {
            record.emit_audit(&decision);
        }
        answer
    }

    fn decode(&self, response: &mut Response<Body>) -> Result<(), crate::wire::coding::Unsupported> {
        let limits = self.exchange.snapshot.coding_limits();
        let mut head = std::mem::take(response.headers_mut());
        let decoded = response.body_mut().rewriting().decoding(&mut head, limits);
        *response.headers_mut() = head;
        decoded
    }
}

/// Whether an end is this process's own matter, of which no model is to blame.
fn is_our_own(stop: &Stop) -> bool {
    match stop {
        Stop::Denied(refusal) => refusal.status == StatusCode::SERVICE_UNAVAILABLE,
        Stop::Failed(failure) => failure.class == Class::Descriptors,
    }
}

pub(super) fn failed(failure: AnswerFailure, target: UpstreamTarget) -> Asked {
    Asked::Failed(Box::new(FailedAttempt { failure, target, answer: None }))
}

/// What an end of the exchange before the head of an answer is.
fn failure_of(stop: &Stop) -> AnswerFailure {
    let class = match stop {
        Stop::Denied(_) => FailureClass::Connect,
        Stop::Failed(failure) => match failure.class {
            Class::Resolve
            | Class::Connect
            | Class::ConnectTimeout
            | Class::Descriptors
            | Class::Proxy
            | Class::Untrusted
            | Class::Handshake
            | Class::NoProtocol => FailureClass::Connect,
            Class::HeadTimeout | Class::Idle => FailureClass::Timeout,
            Class::Exchange | Class::Agent => FailureClass::Unavailable,
            Class::Framing | Class::Encoding => FailureClass::Translate,
        },
    };
    let message = match stop {
        Stop::Denied(refusal) => refusal.decision.why().to_owned(),
        Stop::Failed(failure) => failure.message.clone(),
    };
    AnswerFailure::new(class, &message)
}
