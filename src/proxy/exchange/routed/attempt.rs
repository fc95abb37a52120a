//! Asks one model of a chain: writes its request, sends it, and waits until its answer begins.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;

use super::body::{self, ModelBody, TranslatedRequest};
use super::outgoing;
use super::reading::{Moved, SharedReport, Translated};
use crate::call::turn::AnswerFailure;
use crate::call::{BlockedCalls, Dialect, FailureClass, Terms};
use crate::decision::Decision;
use crate::event;
use crate::policy::routing::{Hop, Model, ORIGIN};
use crate::provider;
use crate::provider::adapter::{Framing, ModelRequestHead};
use crate::provider::request::Detection;
use crate::provider::translate::failure::{MOST_ERROR_BYTES, UpstreamError, classify, is_advice};
use crate::provider::translate::{AgentRoute, AnswerLimits, AnswerTerms, AnswerTranslation, MovedAnswer};
use crate::proxy::body::Body;
use crate::proxy::body::begun::{AnswerReader, Beginning, BegunBody};
use crate::proxy::body::request::RequestBody;
use crate::proxy::body::transit::Transit;
use crate::proxy::error::{Class, Stop};
use crate::proxy::exchange::Exchange;
use crate::proxy::exchange::credentials::{self, OutboundBody};
use crate::proxy::exchange::detection;
use crate::proxy::exchange::head::forget_digests;
use crate::proxy::exchange::model_request::{ModelRequest, describe, exhausted};
use crate::proxy::exchange::named;
use crate::proxy::exchange::record::Record;
use crate::proxy::exchange::response;
use crate::proxy::exchange::target::UpstreamTarget;
use crate::proxy::upstream::{AddressCheck, Answer, Key, Speaks, User};

/// How long after the head of its answer the agent hears that a model answers, where no other follows.
const HEARD: Duration = Duration::from_secs(10);

/// The field that tells the agent's people who answered.
const ROUTE: HeaderName = HeaderName::from_static("x-postern-route");

/// The request that a chain answers, as policy left it.
pub(in crate::proxy::exchange) struct AgentTurn<'a> {
    /// As the agent sent them.
    pub(in crate::proxy::exchange) parts: &'a Parts,
    pub(in crate::proxy::exchange) body: &'a Bytes,
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
        let ModelBody { body, translated, notes } = model_body;
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
        let model_body = body::for_origin(self.turn.model_request.service, self.turn.body, limits);
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
        let written = body::for_model(asked, model, self.turn.body, snapshot.json_limits());
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
        let (path, headers) = (parts.uri.path(), &parts.headers);
        let head = ModelRequestHead { service, path, query: None, headers };
        let terms: (&dyn Terms, _) = (snapshot.policy().as_ref(), &BlockedCalls::new(1));
        let body = (&*model_body.body, snapshot.json_limits());
        // What may go to the origin, where the gateway's key vouches for what a model wrote, may not go everywhere.
        let searched = detection::inspection(snapshot, &target.origin.host, model_body.body.len());
        let mut searched = searched.map(|searched| searched.of_model(target.credential.is_some()));
        let detection = searched.as_mut().map(|searched| searched as &mut dyn Detection);
        let judged = provider::request::read(provider::adapter(dialect), &head, body, terms, detection);
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

    /// What an answer that is no success comes to.
    async fn refused(&self, response: Response<Body>, target: UpstreamTarget) -> Asked {
        let (head, body) = response.into_parts();
        let mut body = self.first_bytes(body).await;
        // Before anything of it is cut off.
        if let Some(masked) =
            target.secrets(&self.exchange.snapshot).and_then(|secrets| secrets.masked(&body))
        {
            body = masked;
        }
        let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let status = head.status.as_u16();
        let failure = classify(&UpstreamError { status, retry_after, body: &body });
        let answer = match self.hop {
            Hop::Origin if body.len() >= MOST_ERROR_BYTES => None,
            Hop::Origin => {
                let mut response = Response::from_parts(head, Body::own(body));
                forget_digests(response.headers_mut());
                response.headers_mut().remove(header::ETAG);
                response.headers_mut().remove(header::CONTENT_LENGTH);
                response.headers_mut().insert(ROUTE, HeaderValue::from_static(ORIGIN));
                Some(response)
            }
            Hop::Model(_) if self.turn.dialect() == Dialect::Anthropic && is_advice(&failure) => None,
            Hop::Model(model) if model.provider.dialect == self.turn.dialect() => {
                passed_on(head.status, &head.headers, body, &model.label)
            }
            Hop::Model(_) => None,
        };
        Asked::Failed(Box::new(FailedAttempt { failure, target, answer }))
    }

    /// As much of a body as an error has.
    async fn first_bytes(&self, mut body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reading = async {
            while bytes.len() < MOST_ERROR_BYTES {
                let Some(Ok(frame)) = body.frame().await else { break };
                if let Ok(data) = frame.into_data() {
                    bytes.extend_from_slice(&data.into_bytes());
                }
            }
        };
        // What came in time says enough.
        let _ = tokio::time::timeout_at(self.until.into(), reading).await;
        bytes.truncate(MOST_ERROR_BYTES);
        bytes
    }

    /// Waits until a successful answer begins.
    async fn begin(
        &self,
        response: Response<Body>,
        target: UpstreamTarget,
        translated: Option<TranslatedRequest>,
        record: &mut Record,
    ) -> Result<Begun, Asked> {
        let (mut head, body) = response.into_parts();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let asked = self.turn.model_request.facts.stream;
        let streams = translated.as_ref().map_or(asked, |translated| translated.streams);
        let is_translated = translated.is_some();
        let reader = match translated {
            Some(translated) => self.translation(translated, &essence, record),
            None => self.watch(&essence),
        };
        let mut body = match reader {
            Ok(reader) => BegunBody::new(body, reader),
            Err(failure) => return Err(failed(failure, target)),
        };
        let begins_at = (self.is_last && streams).then(|| Instant::now() + HEARD);
        let by = (self.until.into(), self.latest.into());
        match body.wait(by, begins_at.map(Into::into)).await {
            Beginning::Begun => {}
            Beginning::Late => {
                let late = AnswerFailure::new(FailureClass::Timeout, "the model said nothing in time");
                return Err(failed(late, target));
            }
            Beginning::Exhausted => return Err(Asked::Stopped(exhausted(self.exchange.session))),
            Beginning::Failed => {
                let broken = || AnswerFailure::unreadable("the answer has nothing that can be read");
                return Err(failed(body.failure().unwrap_or_else(broken), target));
            }
        }
        let label = HeaderValue::from_str(self.hop.label()).unwrap_or(HeaderValue::from_static("-"));
        if matches!(self.hop, Hop::Model(_)) {
            let content_type = match (is_translated, streams) {
                (true, true) => HeaderValue::from_static("text/event-stream"),
                (true, false) => HeaderValue::from_static("application/json"),
                (false, _) => {
                    HeaderValue::from_str(&essence).unwrap_or(HeaderValue::from_static("application/json"))
                }
            };
            head.headers = HeaderMap::new();
            head.headers.insert(header::CONTENT_TYPE, content_type);
            head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        if is_translated {
            head.status = StatusCode::OK;
        }
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.insert(ROUTE, label);
        let exchange = self.exchange;
        let limit = exchange.snapshot.settings.limits.buffered_bytes;
        let transit = Transit::new(&exchange.session.gateway.budget, limit);
        let response = Response::from_parts(head, Body::begun(body).counted(transit));
        Ok(Begun { response, target })
    }

    /// Reads an answer that is moved until it begins.
    fn watch(&self, essence: &str) -> Result<Box<dyn AnswerReader>, AnswerFailure> {
        let dialect = self.turn.dialect();
        let adapter = provider::adapter(dialect);
        let asked = self.turn.model_request.asked();
        let event_bytes = self.exchange.snapshot.settings.limits.sse_event_bytes;
        let framing = adapter.framing(&asked, &self.turn.model_request.facts, essence);
        let answer = match framing {
            Framing::Events(form) => MovedAnswer::stream(dialect, form, event_bytes),
            Framing::Whole if essence == "application/json" || matches!(self.hop, Hop::Origin) => {
                MovedAnswer::whole(dialect)
            }
            Framing::Whole | Framing::EventStream | Framing::Array => {
                return Err(AnswerFailure::unreadable("the answer is neither JSON nor a stream of events"));
            }
        };
        Ok(Box::new(Moved(answer)))
    }

    fn translation(
        &self,
        translated: TranslatedRequest,
        essence: &str,
        record: &mut Record,
    ) -> Result<Box<dyn AnswerReader>, AnswerFailure> {
        let (exchange, report) = (self.exchange, SharedReport::default());
        let snapshot = &exchange.snapshot;
        let limits = &snapshot.settings.limits;
        let ratio = exchange.session.gateway.routing.ratios.of(&self.turn.health_name(self.hop));
        let terms = AnswerTerms {
            agent: self.turn.dialect(),
            model: Dialect::OpenAIChat,
            route: AgentRoute { label: self.hop.label().to_owned(), rule: self.rule.to_owned() },
            exchange: record.hex_id(),
            is_stream: translated.streams,
            shows_thinking: translated.shows_thinking,
            stop_sequences: translated.stop_sequences,
            names: translated.names.iter().map(|(sent, own)| (sent.to_owned(), own.to_owned())).collect(),
            transforms: translated.transforms,
            has_exit_tool: translated.has_exit_tool,
            input_estimate: Some(translated.size.tokens(ratio)),
            bytes_per_token: ratio.bytes(),
            drops_unreadable: snapshot.policy().failure_open(),
            limits: AnswerLimits {
                event_bytes: limits.sse_event_bytes,
                tool_input_bytes: snapshot.tool_input_bytes(),
                body_bytes: limits.decoded_body_bytes,
            },
        };
        let translation = AnswerTranslation::new(terms, essence)?;
        record.translated(report.clone(), (self.turn.health_name(self.hop), translated.size));
        let reserved = exchange.session.gateway.budget.open(limits.buffered_bytes);
        Ok(Box::new(Translated::new(translation, report, reserved)))
    }
}

/// An error in the agent's own API, which passes on; none where it has another shape.
fn passed_on(status: StatusCode, head: &HeaderMap, body: Vec<u8>, label: &str) -> Option<Response<Body>> {
    let json: serde_json::Value = serde_json::from_slice(&body).ok()?;
    json.get("error").filter(|error| error.is_object())?;
    let status = match status {
        // Clients log in anew over these, which is not their matter.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => StatusCode::BAD_REQUEST,
        status if status.is_client_error() || status.is_server_error() => status,
        _ => return None,
    };
    let mut response = Response::new(Body::own(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(retry_after) = head.get(header::RETRY_AFTER).filter(|_| status.as_u16() == 429) {
        response.headers_mut().insert(header::RETRY_AFTER, retry_after.clone());
    }
    if let Ok(label) = HeaderValue::from_str(label) {
        response.headers_mut().insert(ROUTE, label);
    }
    Some(response)
}

/// Whether an end is this process's own matter, of which no model is to blame.
fn is_our_own(stop: &Stop) -> bool {
    match stop {
        Stop::Denied(refusal) => refusal.status == StatusCode::SERVICE_UNAVAILABLE,
        Stop::Failed(failure) => failure.class == Class::Descriptors,
    }
}

fn failed(failure: AnswerFailure, target: UpstreamTarget) -> Asked {
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
