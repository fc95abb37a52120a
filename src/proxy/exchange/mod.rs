//! One request: named, decided, edited, given its credential, sent, answered, recorded. Each step is a file.

mod answer;
pub(crate) mod buffer;
mod conversation;
mod credentials;
mod decide;
mod detection;
pub(crate) mod edits;
pub(crate) mod enforce;
pub(crate) mod head;
mod judge;
pub(crate) mod model_request;
pub(crate) mod named;
mod overrides;
pub(crate) mod preview;
pub(crate) mod record;
mod repeated;
pub(crate) mod reply;
mod response;
mod routed;
pub(crate) mod rules;
mod target;
mod tool_results;
mod upgrade;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::call::Denial;
use crate::credential::sigv4;
use crate::filter::scrub;
use crate::policy::rule::Place;
use crate::proxy::agent_door;
use crate::proxy::body::Body;
use crate::proxy::body::request::RequestBody;
use crate::proxy::body::transit::Transit;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Refusal, Stop, unrecorded};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::{AddressCheck, Answer, Origin, Speaks};
use crate::secret::SecretMatcher;
use crate::wire::json::KnownParts;
use answer::ResponseGuard;
use conversation::Conversation;
use credentials::OutboundBody;
use decide::{HeadDecision, HeadFacts, InboundRequest, RequestPlan, RulesInForce};
use enforce::Allowance;
use judge::PolicyInForce;
use model_request::{ModelRequest, RequestReader, exhausted};
use record::{EndRules, Record};
pub(crate) use repeated::LastHead;
use repeated::Terms;
use response::switches_protocols;
use routed::{AgentTurn, Chain, Choice, Routed};
use rules::ExchangeFacts;
use target::UpstreamTarget;
use upgrade::{Socket, SocketTraffic, Upgrade};

/// Answers one request of an agent, with a refusal or a failure in words if need be.
pub(crate) async fn exchange(session: Arc<Session>, request: Request<Incoming>) -> Response<Body> {
    session.gateway.ledger.ready().await;
    let snapshot = session.gateway.snapshot();
    let (parts, incoming) = request.into_parts();
    if agent_door::is_asked(&session.naming, session.refuse_all.is_some(), &snapshot, &parts) {
        return Box::pin(agent_door::serve(&session, &snapshot, parts, incoming)).await;
    }
    let mut record = Box::new(Record::begin(&session, &parts));
    let is_head = parts.method == Method::HEAD;
    let mut exchange = Exchange { session: &session, snapshot, incoming: Some(incoming), head: Ok(()) };
    match exchange.run(parts, &mut record).await {
        Ok(Answered::Http(response)) => response.map(|body| body.recorded(record)),
        Ok(Answered::Socket(response, socket)) => {
            socket.start(record);
            response
        }
        Err(stop) => {
            let response = exchange.explain(&stop, &mut record);
            exchange.pace(&stop, &mut record).await;
            // Over HTTP/2 hyper would send the text, and the agent reset the stream.
            if is_head { response.map(|_| Body::own("")) } else { response }
        }
    }
}

/// The answer to an agent.
enum Answered {
    Http(Response<Body>),
    /// A 101, and the WebSocket that the connection becomes.
    Socket(Response<Body>, Socket),
}

struct Exchange<'a> {
    session: &'a Arc<Session>,
    snapshot: Arc<Snapshot>,
    /// The request's body, until it is sent.
    incoming: Option<Incoming>,
    /// What detection says of the head.
    head: Result<(), Denial>,
}

/// A request that a route takes.
struct RoutedTurn<'a> {
    parts: &'a Parts,
    plan: &'a RequestPlan,
    chain: &'a Chain,
    model_request: &'a ModelRequest,
    body: Bytes,
    known: KnownParts,
}

/// What the guard of an answer has to know.
struct Guarding<'a> {
    /// None where no model answers.
    model_request: Option<&'a ModelRequest>,
    allowance: &'a Allowance,
    facts: Option<Arc<ExchangeFacts>>,
}

impl Exchange<'_> {
    async fn run(&mut self, mut parts: Parts, record: &mut Record) -> Result<Answered, Stop> {
        record.hold_room(self.room(&parts)?);
        let plan = self.plan(&parts, record).await?;
        if let Some(response) = self.answer_beside_routes(&parts, &plan)? {
            record.told_here(&plan.decision, response.status());
            return Ok(Answered::Http(response));
        }
        let upgrade = if plan.is_upgrade { Some(Upgrade::of(&mut parts)?) } else { None };
        let (mut model_request, mut body) = self.read(&mut parts, &plan, record).await?;
        std::mem::replace(&mut self.head, Ok(()))?;
        let (chain, counted) = match model_request.as_mut().zip(body.as_mut()) {
            Some(asked) => match self.choose(&plan, &mut parts, asked, record)? {
                Choice::Told(response) => return Ok(Answered::Http(*response)),
                Choice::Chain(chain) => (Some(chain), None),
                Choice::Counted(counted) => (None, Some(counted)),
                Choice::Origin => (None, None),
            },
            None => (None, None),
        };
        let allowance = self.allowance(&plan, chain.as_ref());
        let facts = self.ask_rules(&parts, (model_request.as_ref(), body.as_ref()), &allowance, record)?;
        if model_request.is_some() && !plan.is_upgrade {
            let recorded = allowance.admit(self.snapshot.policy())?;
            record.emit_audits(recorded.into_iter().collect());
        }
        if let Some(counted) = counted {
            record.told_here(&plan.decision, counted.status());
            return Ok(Answered::Http(*counted));
        }
        if let (Some(chain), Some(model_request)) = (chain, &model_request) {
            let known = body.as_ref().map(RequestBody::known).cloned().unwrap_or_default();
            let body = body.as_ref().and_then(RequestBody::bytes).cloned().unwrap_or_default();
            let turn = RoutedTurn { parts: &parts, plan: &plan, chain: &chain, model_request, body, known };
            return Box::pin(self.answer_by_route(turn, facts, record)).await.map(Answered::Http);
        }
        // Where the agent sent it. All that follows hangs on the target alone.
        let target = plan.target;
        self.edit(&mut parts.headers, &target, upgrade.is_some());
        body.iter_mut().for_each(RequestBody::send_as_it_came);
        let is_edited = model_request.as_ref().is_some_and(|model_request| model_request.is_edited);
        let sent = OutboundBody { body: body.as_ref().and_then(RequestBody::bytes), is_edited };
        credentials::attach(&self.snapshot, &mut parts, &target, &sent)?;
        record.request_allowed(&plan.decision, &target);
        // Read after the key was, so that one that is replaced meanwhile is among them.
        let secrets = target.secrets(&self.snapshot);
        let request = self.outgoing(parts, body, &target.origin, record)?;
        let method = request.method().clone();
        let answer = match (self.send(request, &target, upgrade.is_some(), record).await?, upgrade) {
            (Answer::Upgrade(response), Some(upgrade)) if switches_protocols(&response) => {
                let facts = self.begin_answer(&response, facts, record)?;
                let traffic =
                    self.traffic((model_request, facts), allowance, (&target.origin, secrets), record);
                let (response, socket) = upgrade.join(self.session, target.origin, response, traffic)?;
                return Ok(Answered::Socket(response, socket));
            }
            (answer, _) => answer,
        };
        let response = response::receive(answer, self.session, &self.snapshot)?;
        let facts = self.begin_answer(&response, facts, record)?;
        let guarding = Guarding { model_request: model_request.as_ref(), allowance: &allowance, facts };
        self.guard(response, (&method, secrets), guarding, record).await.map(Answered::Http)
    }

    /// Answers a request by a route: one model after the other is asked.
    async fn answer_by_route(
        &self,
        turn: RoutedTurn<'_>,
        facts: Option<ExchangeFacts>,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        let RoutedTurn { parts, plan, chain, model_request, body, known } = turn;
        let (origin, decision) = (&plan.target, &plan.decision);
        let agent = AgentTurn { parts, body: &body, known: &known, model_request, origin, decision };
        let Routed { response, target, is_answer } = chain.ask(self, &agent, record).await?;
        let secrets = target.secrets(&self.snapshot);
        let facts = self.begin_answer(&response, facts, record)?;
        // Tokens count for the one that answers.
        let allowance = target.allowance(&self.session.gateway);
        let model_request = is_answer.then_some(model_request);
        let guarding = Guarding { model_request, allowance: &allowance, facts };
        self.guard(response, (&parts.method, secrets), guarding, record).await
    }

    /// What a request counts against: the credential of the one that is asked first.
    fn allowance(&self, plan: &RequestPlan, chain: Option<&Chain>) -> Allowance {
        let gateway = &self.session.gateway;
        match chain.and_then(Chain::first_model) {
            Some(model) => Allowance::new(gateway, model.provider.credential.as_ref()),
            None => plan.target.allowance(gateway),
        }
    }

    /// Has the guard read an answer of a model, and masks the keys in it.
    async fn guard(
        &self,
        mut response: Response<Body>,
        (method, secrets): (&Method, Option<Arc<SecretMatcher>>),
        guarding: Guarding<'_>,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        if secrets.is_some() {
            // Before the guard reads the answer, which makes the head say UTF-8.
            response::check_charset(&response, method)?;
        }
        let Guarding { model_request, allowance, facts } = guarding;
        if let Some(model_request) = model_request {
            let (session, snapshot) = (self.session, &self.snapshot);
            let guard = ResponseGuard { session, snapshot, model_request, allowance, facts: facts.as_ref() };
            response = guard.guard_response(response, record).await?;
        }
        match secrets {
            Some(secrets) => Ok(response::scrub(response, method, secrets, &self.snapshot)?),
            None => Ok(response),
        }
    }

    /// Decides by the head, and again under another policy that comes into force while the value of a credential is
    /// awaited. Only the last decision is acted on.
    async fn plan(&mut self, parts: &Parts, record: &mut Record) -> Result<RequestPlan, Stop> {
        let settles = self.snapshot.settles();
        loop {
            let terms = Terms::of(&self.snapshot, parts, self.has_body());
            let repeated = terms.as_ref().and_then(|terms| self.session.last_head.decision(parts, terms));
            let is_repeated = repeated.is_some();
            let decision = repeated.unwrap_or_else(|| self.decide(parts));
            if let Ok(plan) = &decision.outcome {
                let (gateway, credential) = (&self.session.gateway, plan.target.credential.as_ref());
                let newest = credentials::wait_for_value(gateway, &self.snapshot, credential, settles).await;
                if let Some(newest) = newest {
                    self.snapshot = newest;
                    continue;
                }
            }
            if !is_repeated {
                let is_clean = self.search_head(parts, &decision.facts, record);
                if let (true, Some(terms), Ok(plan)) = (is_clean, terms, &decision.outcome) {
                    self.session.last_head.remember(parts, terms, &decision.facts, plan);
                }
            }
            record.head_decided(&decision.facts);
            if self.session.gateway.ledger.is_refusing() {
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, unrecorded()).into());
            }
            return decision.outcome;
        }
    }

    /// Has the head searched before anything of it is recorded; what is denied is denied where its turn comes. Returns
    /// whether the same would come of a search of the same head: nothing.
    fn search_head(&mut self, parts: &Parts, facts: &HeadFacts, record: &mut Record) -> bool {
        let origin = facts.origin.as_ref();
        let inspection = origin.and_then(|origin| detection::inspection(&self.snapshot, &origin.host, 0));
        let Some(mut inspection) = inspection else { return true };
        if facts.service.is_none() {
            inspection = inspection.of_other(Arc::clone(&self.session.gateway.spread), Instant::now());
        }
        self.head = inspection.head(parts);
        let found = inspection.take();
        // What goes to no model is searched together with what went there before.
        let is_clean = facts.service.is_some() && self.head.is_ok() && found.is_nothing();
        record.inspected(found);
        is_clean
    }

    fn has_body(&self) -> bool {
        self.incoming.as_ref().is_some_and(|body| !body.is_end_stream())
    }

    fn decide(&self, parts: &Parts) -> HeadDecision {
        let snapshot = &self.snapshot;
        let request = InboundRequest {
            parts,
            has_body: self.has_body(),
            naming: &self.session.naming,
            refuse_all: self.session.refuse_all.as_ref(),
        };
        let rules = RulesInForce {
            policy: snapshot.policy(),
            destination: &|flow| snapshot.destination(flow),
            header_count: snapshot.settings.limits.header_count,
        };
        decide::decide(&request, &rules)
    }

    /// Reads a request to a model, shortens results of tools in it, and returns it with the body to send. The body of any other inference endpoint is
    /// checked; that of a request to be signed is buffered; any other streams unread.
    async fn read(
        &mut self,
        parts: &mut Parts,
        plan: &RequestPlan,
        record: &mut Record,
    ) -> Result<(Option<ModelRequest>, Option<RequestBody>), Stop> {
        let service = plan.target.service.and_then(|service| Some((service, service.dialect?)));
        let Some((service, dialect)) = service else {
            let is_inference = plan.target.service.is_some_and(|service| service.is_inference());
            let is_read = |incoming: &mut Incoming| is_inference && !incoming.is_end_stream();
            if let Some(incoming) = self.incoming.take_if(is_read) {
                let body =
                    model_request::buffer_json(self.session, &self.snapshot, parts, incoming, record).await?;
                self.search_whole(parts, plan, &body, record)?;
                return Ok((None, Some(body)));
            }
            let Some(incoming) = self.incoming.take_if(|_| plan.target.signs()) else {
                return Ok((None, None));
            };
            let (body, reserved) =
                model_request::buffer_request(self.session, &self.snapshot, incoming).await?;
            let body = RequestBody::whole(body, Some(reserved));
            self.search_whole(parts, plan, &body, record)?;
            return Ok((None, Some(body)));
        };
        let (host, is_vouched) = (&plan.target.origin.host, plan.target.credential.is_some());
        let (session, snapshot) = (self.session, &self.snapshot);
        let reader = RequestReader { session, snapshot, service, dialect, host, is_vouched };
        if plan.is_upgrade {
            // The requests come later, in messages.
            return Ok((Some(reader.model_request(parts)), None));
        }
        let Some(incoming) = self.incoming.take() else { return Ok((None, None)) };
        let (mut model_request, mut body) = reader.read(parts, incoming, record).await?;
        if plan.target.signs() || !sigv4::is_signed_by_agent(parts) {
            self.shorten_results(parts, (&mut model_request, &mut body), record).await;
        }
        Ok((Some(model_request), Some(body)))
    }

    /// Searches a body to no model that was taken in whole.
    fn search_whole(
        &self,
        parts: &Parts,
        plan: &RequestPlan,
        body: &RequestBody,
        record: &mut Record,
    ) -> Result<(), Stop> {
        let from = (&*self.snapshot, &*self.session.gateway);
        let detector = detection::body_detector(from, &plan.target.origin.host, &parts.headers);
        let Some(((detector, findings), body)) = detector.zip(body.bytes()) else { return Ok(()) };
        let searched = detection::search_whole(detector, body.clone());
        record.found_streamed(&findings);
        Ok(searched?)
    }

    /// Asks the rules over facts, and returns the facts where any rule is asked later. A WebSocket to a model is asked
    /// about here, and each of its requests by itself, for which another policy may be in force.
    fn ask_rules(
        &self,
        parts: &Parts,
        (model_request, body): (Option<&ModelRequest>, Option<&RequestBody>),
        allowance: &Allowance,
        record: &Record,
    ) -> Result<Option<ExchangeFacts>, Stop> {
        let is_conversation = model_request.is_some() && body.is_none();
        if !(self.snapshot.policy().has_rules() || is_conversation) {
            return Ok(None);
        }
        let asked = model_request.map(|model_request| &model_request.facts);
        let facts = ExchangeFacts::of(self.session, allowance, (parts.uri.path(), asked), record);
        let streamed = self.incoming.as_ref().filter(|incoming| !incoming.is_end_stream());
        let payload = match (body.and_then(RequestBody::length), streamed) {
            (Some(length), _) => Some(record.announced().unwrap_or(length as u64)),
            (None, Some(streamed)) => streamed.size_hint().exact(),
            (None, None) => Some(0),
        };
        facts.ask_request(&self.snapshot, asked, payload, record)?;
        Ok(Some(facts))
    }

    /// Records the head of the answer, and asks the rules about it. Returns the facts for its calls and its end.
    fn begin_answer<B>(
        &self,
        response: &Response<B>,
        facts: Option<ExchangeFacts>,
        record: &mut Record,
    ) -> Result<Option<Arc<ExchangeFacts>>, Stop> {
        record.answer_begun(response.status().as_u16(), response.headers());
        let Some(mut facts) = facts else { return Ok(None) };
        facts.answered(record);
        facts.ask_answer(&self.snapshot, record)?;
        let facts = Arc::new(facts);
        if self.snapshot.policy().has_rules_at(Place::End) {
            let snapshot = Arc::clone(&self.snapshot);
            record.ask_at_end(EndRules { snapshot, facts: Arc::clone(&facts) });
        }
        Ok(Some(facts))
    }

    /// Removes and adds the fields of the hop to the upstream.
    fn edit(&self, head: &mut HeaderMap, target: &UpstreamTarget, is_upgrade: bool) {
        head::strip(head);
        if is_upgrade {
            // Compressed messages could not be searched.
            upgrade::ask(head, target.is_read() || self.snapshot.search().is_some());
        }
        if target.is_read() || target.secrets(&self.snapshot).is_some() {
            scrub::ask_for_plain(head);
        }
    }

    async fn send(
        &self,
        request: Request<RequestBody>,
        target: &UpstreamTarget,
        is_upgrade: bool,
        record: &Record,
    ) -> Result<Answer, Stop> {
        let (check, upstreams) = (AddressCheck::new(self.snapshot.policy()), &self.snapshot.upstreams);
        let answer = if is_upgrade {
            Box::pin(upstreams.send_upgrade(&check, &target.origin, request)).await
        } else {
            upstreams.send(&check, target.pool_key(), self.session.speaks, request).await
        };
        if let Some(decision) = check.into_audited() {
            record.emit_audit(&decision);
        }
        answer
    }

    /// Returns how the traffic of a WebSocket is treated: to a model its messages are read.
    fn traffic(
        &self,
        asked: (Option<ModelRequest>, Option<Arc<ExchangeFacts>>),
        allowance: Allowance,
        (origin, secrets): (&Origin, Option<Arc<SecretMatcher>>),
        record: &mut Record,
    ) -> SocketTraffic {
        let (Some(model_request), facts) = asked else {
            let from = (&self.snapshot, &self.session.gateway);
            let detector = detection::socket_detector(from, &origin.host).map(|(detector, findings)| {
                record.streams(findings);
                Box::new(detector)
            });
            return SocketTraffic::Bytes { secrets, detector };
        };
        let (session, snapshot) = (Arc::clone(self.session), Arc::clone(&self.snapshot));
        let judge = Arc::new(PolicyInForce::new(self.session, facts));
        SocketTraffic::Conversation(Box::new(Conversation {
            session,
            snapshot,
            model_request,
            allowance,
            secrets,
            judge,
        }))
    }

    /// Returns the request as it goes upstream. A body that was not read streams.
    fn outgoing(
        &mut self,
        parts: Parts,
        read: Option<RequestBody>,
        to: &Origin,
        record: &mut Record,
    ) -> Result<Request<RequestBody>, Stop> {
        if let Some(body) = read {
            return Ok(Request::from_parts(parts, body));
        }
        let idle = self.snapshot.settings.timeouts.stream_idle;
        let body = match self.incoming.take() {
            Some(incoming) if !incoming.is_end_stream() => {
                let uploads = self.session.uploads.get();
                let upload = uploads.map(|uploads| uploads.begin(incoming.size_hint().exact())).transpose();
                let upload = upload.map_err(|_| exhausted(self.session))?;
                let limit = self.snapshot.settings.limits.buffered_bytes;
                let transit = Transit::new(&self.session.gateway.budget, limit);
                let body = RequestBody::new(incoming, idle, &self.session.activity).counted(transit, upload);
                let from = (&*self.snapshot, &*self.session.gateway);
                match detection::body_detector(from, &to.host, &parts.headers) {
                    Some((detector, findings)) => {
                        record.streams(findings);
                        body.searched(detector)
                    }
                    None => body,
                }
            }
            Some(_) | None => RequestBody::empty(),
        };
        Ok(Request::from_parts(parts, body))
    }

    /// Reserves memory for the exchange itself.
    fn room(&self, parts: &Parts) -> Result<Reserved, Stop> {
        let lengths = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let head = parts.uri.path().len() + lengths.sum::<usize>();
        let room = self.session.gateway.budget.exchange(&self.snapshot.settings.limits, head);
        room.map_err(|_| exhausted(self.session))
    }

    /// Delays a refusal on a connection with many of them, and holds nothing of the request meanwhile.
    async fn pace(&mut self, stop: &Stop, record: &mut Record) {
        match stop {
            Stop::Denied(refusal) if !refusal.close => {}
            Stop::Denied(_) | Stop::Failed(_) => return,
        }
        if self.session.speaks == Speaks::H2 {
            // Over HTTP/1 its end tells hyper what to do with the rest of the connection.
            self.incoming = None;
        }
        record.release();
        self.session.pace.refused(&self.session.gateway.drain).await;
    }

    /// Returns the refusal or the failure in words. The rest of the request's body is read when the connection closes.
    fn explain(&self, stop: &Stop, record: &mut Record) -> Response<Body> {
        match stop {
            Stop::Denied(refusal) => {
                let event = record.request_denied(refusal);
                let door = reply::door(&self.snapshot, &self.session.naming, event);
                reply::denied(refusal, &record.destination(), record.service(), (event, door))
            }
            Stop::Failed(failure) => {
                let event = record.failed(failure);
                reply::failed(failure, &record.destination(), event, self.session.refuse_all.is_some())
            }
        }
    }
}
