//! One request: named, decided, edited, given its credential, sent, answered, recorded. Each step is a file.

mod answer;
mod conversation;
mod credentials;
pub(crate) mod head;
pub(crate) mod intake;
mod overrides;
pub(crate) mod question;
pub(crate) mod record;
pub(crate) mod reply;
mod upgrade;

use std::sync::Arc;
use std::time::SystemTime;

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::call::{Api, Dialect, Service, Terms};
use crate::credential::placement::Plan;
use crate::decision::{Decision, Verdict};
use crate::filter::scrub::{self, SecretMatcher};
use crate::name::path::NormalPath;
use crate::policy::destination::{Action, Flow, Protocol};
use crate::policy::inspection::{Asked, Inspection};
use crate::provider;
use crate::provider::surface::looks_like_inference;
use crate::proxy::body::Body;
use crate::proxy::body::request::RequestBody;
use crate::proxy::body::rewriting;
use crate::proxy::body::transit::Transit;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure, Refusal, Stop};
use crate::proxy::inbound::names;
use crate::proxy::inbound::session::{Naming, Session};
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::{Answer, Key, Origin, Speaks, user_of};
use crate::wire::http1::check_response;
use answer::Hearing;
use conversation::Conversation;
use credentials::Leaving;
use question::{Question, Reader, exhausted};
use record::Record;
use upgrade::{Carries, Socket, Upgrade};

/// Answers one request of an agent. What cannot be answered is refused in words; nothing is thrown.
pub(crate) async fn exchange(session: Arc<Session>, request: Request<Incoming>) -> Response<Body> {
    session.gateway.ledger.ready().await;
    let snapshot = session.gateway.snapshot();
    let (parts, incoming) = request.into_parts();
    let mut record = Box::new(Record::begin(&session, &parts));
    let is_head = parts.method == Method::HEAD;
    let mut exchange = Exchange { session: &session, snapshot, incoming: Some(incoming) };
    match exchange.run(parts, &mut record).await {
        Ok(Answered::Http(response)) => response.map(|body| body.recorded(record)),
        Ok(Answered::Socket(response, socket)) => {
            socket.go_on(record);
            response
        }
        Err(stop) => {
            let response = exchange.stopped(&stop, &mut record);
            exchange.rest(&stop, &mut record).await;
            // Over HTTP/2 hyper would send the text, and the agent reset the stream.
            if is_head { response.map(|_| Body::own("")) } else { response }
        }
    }
}

/// What an agent is answered.
enum Answered {
    Http(Response<Body>),
    /// A 101, and what the connection becomes.
    Socket(Response<Body>, Socket),
}

struct Exchange<'a> {
    session: &'a Arc<Session>,
    snapshot: Arc<Snapshot>,
    /// The request's body, until it is sent.
    incoming: Option<Incoming>,
}

/// What was decided of a request before anything of it leaves.
struct Decided {
    origin: Origin,
    decision: Decision,
    /// What the request is, where it goes to an LLM provider.
    service: Option<Service>,
    plan: Option<Plan>,
    is_upgrade: bool,
}

impl Decided {
    fn signs(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::signs)
    }
}

impl Exchange<'_> {
    async fn run(&mut self, mut parts: Parts, record: &mut Record) -> Result<Answered, Stop> {
        record.holds(self.room(&parts)?);
        let decided = self.decided(&parts, record).await?;
        let upgrade = if decided.is_upgrade { Some(Upgrade::of(&mut parts)?) } else { None };
        let (question, body) = self.read(&mut parts, &decided, record).await?;
        self.edit(&mut parts.headers, &decided);
        let is_edited = question.as_ref().is_some_and(|question| question.is_edited);
        let leaving =
            Leaving { origin: &decided.origin, body: body.as_ref().and_then(RequestBody::bytes), is_edited };
        credentials::attach(&self.snapshot, &mut parts, decided.plan.as_ref(), &leaving, record)?;
        record.allowed(&decided.decision);
        // Read after the key was, so that one that is replaced meanwhile is among them.
        let needles = self.snapshot.needles(&decided.origin);
        let request = self.outgoing(parts, body)?;
        let method = request.method().clone();
        let answer = match (self.send(request, &decided).await?, upgrade) {
            (Answer::Upgrade(response), Some(upgrade)) if switches(&response) => {
                let credential = decided.plan.as_ref().map(|plan| plan.credential().name.clone());
                let carries = self.carries(question, credential, needles);
                let (response, socket) = upgrade.join(self.session, decided.origin, response, carries)?;
                record.answered(response.status().as_u16(), response.headers());
                return Ok(Answered::Socket(response, socket));
            }
            (answer, _) => answer,
        };
        let mut response = self.incoming(answer, record)?;
        if needles.is_some() && !is_empty(&response, &method) {
            // Before the guard reads it, which says of what it read that it is UTF-8.
            rewriting::check_charset(response.headers())?;
        }
        if let Some(question) = &question {
            let hearing = Hearing { session: self.session, snapshot: &self.snapshot, question };
            response = hearing.of(response, record).await?;
        }
        Ok(Answered::Http(self.scrub(response, &method, needles)?))
    }

    /// What is decided once the values that it needs are there, or do not come: under what is in force by then.
    async fn decided(&mut self, parts: &Parts, record: &mut Record) -> Result<Decided, Stop> {
        let settles = self.snapshot.settles();
        loop {
            let decided = self.decide(parts, record)?;
            let gateway = &self.session.gateway;
            let plan = decided.plan.as_ref();
            match credentials::replaced(gateway, &self.snapshot, plan, settles).await {
                Some(snapshot) => self.snapshot = snapshot,
                None => return Ok(decided),
            }
        }
    }

    /// Everything that can deny a request, in the order of the contract (design 5.10).
    fn decide(&self, parts: &Parts, record: &mut Record) -> Result<Decided, Stop> {
        if let Some(doomed) = &self.session.doomed {
            // A provider that is denied by its name is so in its own words, which its clients show once.
            if let Naming::Fixed(origin) = &self.session.naming {
                record.asks(service(parts, &NormalPath::parse(parts.uri.path()), origin, None));
            }
            return Err(doomed.clone());
        }
        self.bound(parts)?;
        let origin = names::target(self.session, parts)?;
        record.to(&origin);
        let (decision, inspection) = self.destination(&origin, record)?;
        let has_body = self.incoming.as_ref().is_some_and(|body| !body.is_end_stream());
        let (said, service) = endpoint((parts, has_body), &origin, &inspection, record)?;
        let mut decision = worst(decision, said)?;
        let (plan, said) = credentials::plan(&self.snapshot, parts, &origin)?;
        if let Some(said) = said {
            decision = worst(decision, said)?;
        }
        if decision.reason.is_none() {
            decision.reason = credentials::remark(&self.snapshot, parts, &origin).map(Into::into);
        }
        let is_upgrade = upgrade::is_asked(parts)?;
        if is_upgrade {
            let said = match service {
                Some(service) if service.dialect.is_some() => {
                    self.snapshot.policy().provider_state().decision
                }
                Some(_) | None => inspection.upgrade(service.is_some()),
            };
            decision = worst(decision, said).map_err(upgrade::not_served)?;
        }
        Ok(Decided { origin, decision, service, plan, is_upgrade })
    }

    /// Over HTTP/1 the framer has counted already; HTTP/2 knows a bound in bytes alone.
    fn bound(&self, parts: &Parts) -> Result<(), Stop> {
        if parts.headers.len() <= self.snapshot.settings.limits.header_count {
            return Ok(());
        }
        let decision =
            Decision::builtin("bound", "the request has more header fields than limits.headerCount");
        Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, decision).into())
    }

    /// Reads a request to a model, and answers what it asks with the body that goes on. One that is to be signed is
    /// taken in; any other streams unread.
    async fn read(
        &mut self,
        parts: &mut Parts,
        decided: &Decided,
        record: &mut Record,
    ) -> Result<(Option<Question>, Option<RequestBody>), Stop> {
        let service = decided.service.and_then(|service| Some((service, service.dialect?)));
        let Some((service, dialect)) = service else {
            let Some(incoming) = self.incoming.take_if(|_| decided.signs()) else { return Ok((None, None)) };
            let (body, reserved) = question::take_whole(self.session, &self.snapshot, incoming).await?;
            return Ok((None, Some(RequestBody::whole(body, Some(reserved)))));
        };
        let reader = Reader { session: self.session, snapshot: &self.snapshot, service, dialect };
        if decided.is_upgrade {
            // What is asked comes later, in messages.
            return Ok((Some(reader.question(parts)), None));
        }
        let Some(incoming) = self.incoming.take() else { return Ok((None, None)) };
        let (question, body) = reader.read(parts, incoming, record).await?;
        let credential = decided.plan.as_ref().map(|plan| plan.credential().name.as_str());
        let allowances = &self.session.gateway.allowances;
        let recorded = allowances.admit(self.snapshot.policy(), credential, SystemTime::now())?;
        record.weighed(recorded.into_iter().collect());
        Ok((Some(question), Some(body)))
    }

    /// Makes the head fit to go on.
    fn edit(&self, head: &mut HeaderMap, decided: &Decided) {
        head::strip(head);
        let is_read = decided.service.is_some_and(|service| service.dialect.is_some());
        if decided.is_upgrade {
            upgrade::ask(head, is_read);
        }
        if is_read || self.snapshot.needles(&decided.origin).is_some() {
            scrub::ask_for_plain(head);
        }
    }

    async fn send(&self, request: Request<RequestBody>, decided: &Decided) -> Result<Answer, Stop> {
        let (policy, upstreams) = (self.snapshot.policy(), &self.snapshot.upstreams);
        if decided.is_upgrade {
            return upstreams.send_upgrade(policy, &decided.origin, request).await;
        }
        let user = user_of(decided.plan.as_ref().map(Plan::credential));
        let key = Key { user, origin: decided.origin.clone() };
        upstreams.send(policy, key, self.session.speaks, request).await
    }

    /// What policy says of the destination now, which may differ from when the connection was made.
    fn destination(&self, origin: &Origin, record: &mut Record) -> Result<(Decision, Arc<Inspection>), Stop> {
        let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
        let (name, address) = (origin.host.name(), origin.host.ip());
        let decided = self.snapshot.destination(&Flow { name, address, port: origin.port, protocol });
        let was_reported = matches!(self.session.naming, Naming::Fixed(_));
        decided.audited.iter().filter(|_| !was_reported).for_each(|decision| record.audited(decision));
        match decided.action {
            Action::Inspect(inspection) => Ok((decided.decision, inspection)),
            // The connection was made for what is denied now.
            Action::Deny { .. } => {
                record.barred();
                Err(Refusal::closing(StatusCode::FORBIDDEN, decided.decision).into())
            }
            // Where every request is read anyway, Tunnel means Inspect.
            Action::Tunnel { .. } if !was_reported => {
                let audit_only = self.snapshot.policy().audit_only();
                let inspection = Inspection::without_endpoints(&decided.decision, audit_only);
                Ok((decided.decision, Arc::new(inspection)))
            }
            Action::Tunnel { .. } => {
                let decision = Decision::builtin(
                    "name-mismatch",
                    "policy has changed: this destination is no longer inspected",
                );
                Err(Refusal::closing(StatusCode::MISDIRECTED_REQUEST, decision).into())
            }
        }
    }

    /// What is done with what a WebSocket carries: one to a model is looked into.
    fn carries(
        &self,
        question: Option<Question>,
        credential: Option<String>,
        needles: Option<Arc<SecretMatcher>>,
    ) -> Carries {
        let Some(question) = question else { return Carries::Bytes(needles) };
        let (session, snapshot) = (Arc::clone(self.session), Arc::clone(&self.snapshot));
        Carries::Conversation(Box::new(Conversation { session, snapshot, question, credential, needles }))
    }

    /// The request as it goes upstream, its body streaming where it was not read.
    fn outgoing(&mut self, parts: Parts, read: Option<RequestBody>) -> Result<Request<RequestBody>, Stop> {
        if let Some(body) = read {
            return Ok(Request::from_parts(parts, body));
        }
        let idle = self.snapshot.settings.timeouts.stream_idle;
        let body = match self.incoming.take() {
            Some(incoming) if !incoming.is_end_stream() => {
                let uploads = self.session.uploads.get();
                let upload = uploads.map(|uploads| uploads.begin(incoming.size_hint().exact())).transpose();
                let upload = upload.map_err(|_| exhausted(self.session))?;
                RequestBody::new(incoming, idle, &self.session.activity).counted(self.transit(), upload)
            }
            Some(_) | None => RequestBody::empty(),
        };
        Ok(Request::from_parts(parts, body))
    }

    /// Room for the exchange itself, or a refusal.
    fn room(&self, parts: &Parts) -> Result<Reserved, Stop> {
        let lengths = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let head = parts.uri.path().len() + lengths.sum::<usize>();
        let room = self.session.gateway.budget.exchange(&self.snapshot.settings.limits, head);
        room.map_err(|_| exhausted(self.session))
    }

    fn transit(&self) -> Transit {
        Transit::new(&self.session.gateway.budget, self.snapshot.settings.limits.buffered_bytes)
    }

    /// The answer as it goes to the agent.
    fn incoming(&self, answer: Answer, record: &mut Record) -> Result<Response<Body>, Failure> {
        let idle = self.snapshot.settings.timeouts.stream_idle;
        let mut response = match answer {
            Answer::H1(response) => {
                readable(&response)?;
                response.map(|body| Body::h1(body, idle).counted(self.transit()))
            }
            Answer::H2(response) => response.map(|body| Body::h2(body, idle).counted(self.transit())),
            Answer::Upgrade(response) => {
                readable(&response)?;
                response.map(|body| Body::h2(body, idle).counted(self.transit()))
            }
        };
        if switches(&response) {
            return Err(Failure::new(Class::Framing, "the upstream switched protocols unasked"));
        }
        head::strip(response.headers_mut());
        response.extensions_mut().remove::<hyper::ext::ReasonPhrase>();
        *response.version_mut() = match self.session.speaks {
            Speaks::H1 => Version::HTTP_11,
            Speaks::H2 => Version::HTTP_2,
        };
        record.answered(response.status().as_u16(), response.headers());
        Ok(response)
    }

    /// Takes real keys out of an answer, where one could be in it.
    fn scrub(
        &self,
        mut response: Response<Body>,
        method: &Method,
        needles: Option<Arc<SecretMatcher>>,
    ) -> Result<Response<Body>, Failure> {
        let Some(needles) = needles else { return Ok(response) };
        if is_empty(&response, method) {
            needles.scrub_head(response.headers_mut());
            return Ok(response);
        }
        let limits = self.snapshot.coding_limits();
        let mut head = std::mem::take(response.headers_mut());
        response.body_mut().rewriting().scrubbing(&mut head, needles, limits)?;
        *response.headers_mut() = head;
        Ok(response)
    }

    /// Waits before a refusal is said, where there were many on this connection. Nothing of the request is held
    /// meanwhile.
    async fn rest(&mut self, stop: &Stop, record: &mut Record) {
        match stop {
            Stop::Denied(refusal) if !refusal.close => {}
            Stop::Denied(_) | Stop::Failed(_) => return,
        }
        if self.session.speaks == Speaks::H2 {
            // Over HTTP/1 its end tells hyper what to do with the rest of the connection.
            self.incoming = None;
        }
        record.forget();
        self.session.pace.refused(&self.session.gateway.drain).await;
    }

    /// Says why the request goes no further. What of its body still comes is read when the connection closes.
    fn stopped(&self, stop: &Stop, record: &mut Record) -> Response<Body> {
        match stop {
            Stop::Denied(refusal) => {
                let event = record.denied(refusal);
                reply::denied(refusal, &record.destination(), record.service(), event)
            }
            Stop::Failed(failure) => {
                let event = record.failed(failure);
                reply::failed(failure, &record.destination(), event, self.session.doomed.is_some())
            }
        }
    }
}

/// What policy says of the endpoint of a head, which a body may follow, and what the request is where it goes to an LLM
/// provider.
fn endpoint(
    (parts, has_body): (&Parts, bool),
    origin: &Origin,
    inspection: &Inspection,
    record: &mut Record,
) -> Result<(Decision, Option<Service>), Stop> {
    let (path, websocket) = (NormalPath::parse(parts.uri.path()), upgrade::is_websocket(parts));
    let service = service(parts, &path, origin, inspection.provider());
    record.asks(service);
    let unknown_provider = service.is_none() && looks_like_inference(&parts.method, &path);
    let asked = Asked { method: &parts.method, path: &path, service, unknown_provider };
    let mut decision = inspection.request(&asked);
    let surface = provider::spoken_at(origin.host.name(), inspection.provider());
    if service.is_some_and(|service| service.dialect.is_none())
        && surface.is_some_and(|surface| surface.is_disguised(&parts.method, &path, has_body))
    {
        let reason = "This request is not plainly one for an inference endpoint, and could be taken for it";
        decision = inspection.refused(reason);
    }
    if let Some(name) = overrides::in_query(&parts.uri).filter(|_| inspection.is_narrowed(service.is_some()))
    {
        let reason =
            format!("The query parameter {name} can name another method or path than the one that is judged");
        decision = inspection.refused(&reason);
    }
    if decision.denies() {
        let is_responses = service.is_some_and(|service| service.api == Api::Responses);
        // Codex falls back to plain requests at a 426 alone; at anything else it tries again and again.
        return Err(if websocket && is_responses {
            upgrade::not_served(decision.into())
        } else {
            decision.into()
        });
    }
    if let Some(audited) = inspection.audited(&asked) {
        record.audited(&audited);
    }
    Ok((decision, service))
}

/// What a request asks of an LLM provider; `said` is what a rule says is spoken there.
fn service(parts: &Parts, path: &NormalPath, origin: &Origin, said: Option<Dialect>) -> Option<Service> {
    let surface = provider::spoken_at(origin.host.name(), said)?;
    Some(surface.service(&parts.method, path, upgrade::is_websocket(parts)))
}

fn is_empty(response: &Response<Body>, method: &Method) -> bool {
    *method == Method::HEAD || response.body().is_end_stream()
}

fn switches<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// The verdict that counts of two: a denial ends the exchange, and what Audit would deny is said rather than Allow.
fn worst(first: Decision, second: Decision) -> Result<Decision, Stop> {
    match (first.verdict, second.verdict) {
        (_, Verdict::Deny) => Err(second.into()),
        (Verdict::Allow, Verdict::WouldDeny) => Ok(second),
        (_, Verdict::Allow | Verdict::Audit | Verdict::WouldDeny) => Ok(first),
    }
}

/// Refuses an answer that two parsers could read differently.
fn readable<B>(response: &Response<B>) -> Result<(), Failure> {
    check_response(response.status(), response.headers()).map_err(|violation| {
        Failure::new(Class::Framing, format!("the upstream's answer: {}", violation.reason()))
    })
}
