//! Serves the gateway's own name to agents: reads the question within its bounds, has `agent_api` answer it, records it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Incoming;

use super::body::Body;
use super::inbound::names;
use super::inbound::session::{Naming, Session};
use super::snapshot::Snapshot;
use super::upstream::Origin;
use crate::agent_api::denials::Denial;
use crate::agent_api::permissions::permissions;
use crate::agent_api::{self, Answer, MOST_A_SECOND, Question, Source};
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Action, Destination, Event, Http, Id, Kind};
use crate::ledger::fresh_id;
use crate::name::gateway;
use crate::policy::document::Explain;
use crate::rate::Rate;

/// How often agents may ask, all connections together.
#[derive(Debug)]
pub(crate) struct Questions(Mutex<Rate>);

impl Default for Questions {
    fn default() -> Self {
        Self(Mutex::new(Rate::new(Duration::from_secs(1) / MOST_A_SECOND, MOST_A_SECOND)))
    }
}

impl Questions {
    /// A poisoned lock is ignored: a rate is consistent after each step.
    fn take(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now())
    }
}

/// Whether a request is for the gateway itself. Where its names do not agree it is not, and is refused as any other.
pub(crate) fn is_asked(naming: &Naming, is_refused: bool, snapshot: &Snapshot, parts: &Parts) -> bool {
    let is_likely = match naming {
        Naming::Fixed(origin) => origin.host.name().is_some_and(gateway::is_own),
        Naming::PerRequest => parts.uri.host().is_some_and(|host| host.len() <= gateway::NAME.len() + 1),
        Naming::Reverse(_) => false,
    };
    let serves = |origin: Origin| {
        !origin.tls && origin.host.name().is_some_and(|name| snapshot.serves_own(name, origin.port))
    };
    is_likely && !is_refused && names::target(naming, parts).is_ok_and(serves)
}

/// Answers a question to the gateway.
pub(crate) async fn serve(
    session: &Arc<Session>,
    snapshot: &Arc<Snapshot>,
    parts: Parts,
    _incoming: Incoming,
) -> Response<Body> {
    let _busy = session.activity.begin();
    if !session.gateway.questions.take() {
        let mut response = response(Answer::error(429, "Ten questions a second are answered"), &parts.method);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    }
    let question = Question {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        has_origin: parts.headers.contains_key(header::ORIGIN),
    };
    let answer = agent_api::answer(&question, &Asked { session, snapshot });
    record(session, &parts, answer.status);
    response(answer, &parts.method)
}

/// What the gateway knows at the time of a question.
struct Asked<'a> {
    session: &'a Arc<Session>,
    snapshot: &'a Arc<Snapshot>,
}

impl Source for Asked<'_> {
    fn explains(&self) -> Explain {
        self.snapshot.policy().explains()
    }

    fn denial(&self, event: Id) -> Option<Denial> {
        self.session.gateway.denials.find(event)
    }

    fn permissions(&self) -> serde_json::Value {
        permissions(self.snapshot.policy())
    }
}

/// Emits the event of a question.
fn record(session: &Session, parts: &Parts, status: u16) {
    let decision = Decision { rule: Some(RuleId::builtin("explain")), ..Decision::of(Verdict::Allow) };
    let mut event = Event::new(fresh_id(), Kind::Request, decision);
    event.session = Some(Arc::clone(&session.label));
    event.connection = Some(session.connection);
    event.destination = Some(Arc::new(Destination {
        host: gateway::NAME.to_owned(),
        port: gateway::PORT,
        action: Action::Inspect,
        intercepted: true,
        reason: None,
    }));
    let mut http = Http::request(&parts.method, parts.uri.path(), parts.version);
    http.status = Some(status);
    event.http = Some(http);
    session.gateway.emit(event);
}

fn response(answer: Answer, method: &Method) -> Response<Body> {
    let is_head = method == Method::HEAD;
    let mut response = Response::new(Body::own(if is_head { String::new() } else { answer.body }));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let head = response.headers_mut();
    if let Some(allow) = answer.allow {
        head.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    add(head, header::CONTENT_TYPE, "application/json");
    add(head, header::CACHE_CONTROL, "no-store");
    add(head, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn add(head: &mut HeaderMap, name: HeaderName, value: &'static str) {
    head.insert(name, HeaderValue::from_static(value));
}
