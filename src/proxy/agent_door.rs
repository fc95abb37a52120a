//! Serves the gateway's own name to agents: reads the question within its bounds, has `agent_api` answer it, records it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::body::Body;
use super::exchange::preview;
use super::inbound::names;
use super::inbound::session::{Naming, Session};
use super::snapshot::Snapshot;
use super::upstream::Origin;
use super::workspace_door::{self, WorkspaceReply};
use crate::agent_api::denials::Denial;
use crate::agent_api::mcp::Action as AskedAction;
use crate::agent_api::permissions::permissions;
use crate::agent_api::{self, Answer, MOST_A_SECOND, Question, Source};
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Action, Destination, Event, Id, Kind};
use crate::ledger::fresh_id;
use crate::name::gateway;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::document::Explain;
use crate::policy::explain::ShownDecision;
use crate::provider::answer::GuardLimits;
use crate::rate::Rate;
use crate::trial::document::{TestCall, TestCase, TestRequest};
use crate::trial::{HeadOutcome, Trial, World};

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
    incoming: Incoming,
) -> Response<Body> {
    let _busy = session.activity.begin();
    if !session.gateway.questions.take() {
        let mut response = response(Answer::error(429, "Ten questions a second are answered"), &parts.method);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    }
    match workspace_door::answer(snapshot, &parts).await {
        Some(WorkspaceReply::Page(text)) => {
            record(session, &parts, 200);
            return workspace_door::page(text, parts.method == Method::HEAD);
        }
        Some(WorkspaceReply::Error(answer)) => {
            record(session, &parts, answer.status);
            return response(answer, &parts.method);
        }
        None => {}
    }
    let (method, path, headers) = (parts.method.as_str(), parts.uri.path(), &parts.headers);
    let read = agent_api::has_body(method, path, headers);
    let answer = match if read { body(incoming, snapshot).await } else { Ok(Some(Bytes::new())) } {
        Ok(read) => {
            let body = read.as_deref().map_or(agent_api::Body::TooLong, agent_api::Body::Whole);
            let question = Question { method, path, headers, body };
            agent_api::answer(&question, &Asked { session, snapshot })
        }
        Err(Unread) => Answer::error(408, "The body did not come"),
    };
    record(session, &parts, answer.status);
    response(answer, &parts.method)
}

/// The body of a question broke off, or took too long.
struct Unread;

/// Reads the body of a question; none where it is too long.
async fn body(incoming: Incoming, snapshot: &Snapshot) -> Result<Option<Bytes>, Unread> {
    let reading = Limited::new(incoming, agent_api::MOST_BODY).collect();
    match tokio::time::timeout(snapshot.settings.timeouts.agent_head, reading).await {
        Ok(Ok(whole)) => Ok(Some(whole.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Ok(None),
        Ok(Err(_)) | Err(_) => Err(Unread),
    }
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

    fn has_workspace(&self) -> bool {
        self.snapshot.workspace().is_some()
    }

    fn check(&self, action: &AskedAction) -> Result<ShownDecision, String> {
        let snapshot = self.snapshot;
        if let Some(denied) = snapshot.denies_everything() {
            return Ok(ShownDecision::from(&denied));
        }
        let limits = &snapshot.settings.limits;
        let bounds = GuardLimits {
            event_bytes: limits.sse_event_bytes,
            tool_input_bytes: limits.tool_input_bytes,
            body_bytes: limits.decoded_body_bytes,
            json: snapshot.json_limits(),
        };
        let now = Some(SystemTime::now());
        let trial = Trial { policy: snapshot.policy(), bounds, world: &Heads(limits.header_count), now };
        match trial.run(&case(action)) {
            Ok(Ok(outcome)) => Ok(outcome.decision),
            // What is missing is the input.
            Ok(Err(why)) => Err(why),
            Err(problem) => Err(problem.message),
        }
    }
}

/// The case of a test that asks the same.
fn case(action: &AskedAction) -> TestCase {
    match action {
        AskedAction::Call { tool, input } => {
            let input = input.clone().map(serde_json::Value::Object);
            let call = TestCall { name: tool.clone(), input, ..TestCall::default() };
            TestCase { tool_call: Some(call), ..TestCase::default() }
        }
        AskedAction::Request { url, method } => {
            let request = TestRequest { url: url.clone(), method: method.clone(), ..TestRequest::default() };
            TestCase { request: Some(request), ..TestCase::default() }
        }
    }
}

/// Decides about heads, with this most of fields; there are no files.
struct Heads(usize);

impl World for Heads {
    fn file(&self, _path: &Path) -> Result<Vec<u8>, String> {
        Err("no file is read".to_owned())
    }

    fn event(&self, _id: &str, _from: &Path) -> Result<(Event, String), String> {
        Err("no file is read".to_owned())
    }

    fn head(&self, parts: &Parts, has_body: bool, place: (Host, u16), policy: &Policy) -> HeadOutcome {
        let head = preview::preview(parts, has_body, place, (policy, self.0));
        head.into()
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
    let mut http = session.gateway.shown_head(parts);
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
