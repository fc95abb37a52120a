//! Serves the gateway's own name to agents: reads the question within its bounds, has `agent_api` answer it, records it.

mod below;

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::body::Body;
use super::budget::Reserved;
use super::exchange::preview;
use super::inbound::names;
use super::inbound::session::{Naming, Session};
use super::snapshot::Snapshot;
use super::upstream::Origin;
use super::workspace_door::{self, WorkspaceReply};
use crate::agent_api::denials::Denial;
use crate::agent_api::evidence::{EvidenceAccess, MOST_EXCERPT, NotTold};
use crate::agent_api::mcp::Action as AskedAction;
use crate::agent_api::permissions::permissions;
use crate::agent_api::{self, Answer, MOST_A_SECOND, Question, Source};
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Action, Destination, Event, Id, Kind};
use crate::evidence::NotRead;
use crate::ledger::fresh_id;
use crate::name::gateway;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::document::Explain;
use crate::policy::explain::ShownDecision;
use crate::provider::answer::GuardLimits;
use crate::rate::Rate;
use crate::tool_output::evidence_id::EvidenceId;
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

/// Whether a request is for the gateway itself. Where its names do not agree it is not, and is refused as any other. On a
/// listener that stands for one upstream the path says so, whether anything is served there or not.
pub(crate) fn is_asked(naming: &Naming, is_refused: bool, snapshot: &Snapshot, parts: &Parts) -> bool {
    let is_likely = match naming {
        Naming::Fixed(origin) => origin.host.name().is_some_and(gateway::is_own),
        Naming::PerRequest => parts.uri.host().is_some_and(|host| host.len() <= gateway::NAME.len() + 1),
        Naming::Reverse(_) => return below::path(parts.uri.path()).is_some(),
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
    let path = match &session.naming {
        Naming::Reverse(_) => below::path(parts.uri.path()).unwrap_or_default(),
        Naming::Fixed(_) | Naming::PerRequest => Cow::Borrowed(parts.uri.path()),
    };
    let (answer, reserved) = match refuse_name(session, &parts) {
        Some(refusal) => (refusal, None),
        None => match workspace_door::answer(snapshot, &path, &parts).await {
            Some(WorkspaceReply::Page(text)) => {
                record(session, &parts, 200);
                return workspace_door::page(text, parts.method == Method::HEAD);
            }
            Some(WorkspaceReply::Error(answer)) => (answer, None),
            None => answer(session, snapshot, (&parts, &path), incoming).await,
        },
    };
    record(session, &parts, answer.status);
    let mut response = response(answer, &parts.method);
    if let Some(reserved) = reserved {
        response = response.map(|body| body.holding(reserved));
    }
    response
}

/// Refuses a question that came under a name which is not the gateway's.
fn refuse_name(session: &Session, parts: &Parts) -> Option<Answer> {
    let is_refused = matches!(session.naming, Naming::Reverse(_)) && !below::is_called_directly(parts);
    is_refused.then(|| Answer::error(403, "Ask by an address, localhost or postern.internal"))
}

/// Reads the body and what else the answer needs, and answers. Returns the memory of a kept text, too.
async fn answer(
    session: &Arc<Session>,
    snapshot: &Arc<Snapshot>,
    (parts, path): (&Parts, &str),
    incoming: Incoming,
) -> (Answer, Option<Reserved>) {
    let (method, headers) = (parts.method.as_str(), &parts.headers);
    let read = agent_api::has_body(method, path, headers);
    let read = match if read { body(incoming, snapshot).await } else { Ok(Some(Bytes::new())) } {
        Ok(read) => read,
        Err(Unread) => return (Answer::error(408, "The body did not come"), None),
    };
    let body = read.as_deref().map_or(agent_api::Body::TooLong, agent_api::Body::Whole);
    let question = Question { method, path, query: parts.uri.query(), headers, body };
    let wanted = agent_api::wanted_evidence(&question, access(snapshot));
    let (text, reserved) = match wanted {
        Some(id) => match kept_text(session, snapshot, id).await {
            Ok((text, reserved)) => (Ok(text), Some(reserved)),
            Err(why) => (Err(why), None),
        },
        None => (Err(NotTold::Unknown), None),
    };
    let answer = agent_api::answer(&question, &Asked { session, snapshot, evidence: (wanted, text) });
    (answer, reserved)
}

/// Reads a kept text, once there is memory for it and for the answer.
async fn kept_text(
    session: &Session,
    snapshot: &Snapshot,
    id: EvidenceId,
) -> Result<(Arc<str>, Reserved), NotTold> {
    let evidence = snapshot.evidence.as_ref().ok_or(NotTold::Unknown)?;
    let length = evidence.length(id).await.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or(NotTold::Unknown)?;
    let mut reserved = session.gateway.budget.open(snapshot.settings.limits.buffered_bytes);
    reserved
        .set(length.saturating_mul(2).saturating_add(MOST_EXCERPT.min(length)))
        .map_err(|_| NotTold::Busy)?;
    match evidence.read(id).await {
        Ok(text) => Ok((text, reserved)),
        Err(NotRead::Unknown) => Err(NotTold::Unknown),
        Err(NotRead::Late) => Err(NotTold::Late),
    }
}

/// How texts that were cut out of requests may be read.
fn access(snapshot: &Snapshot) -> EvidenceAccess {
    match &snapshot.evidence {
        None => EvidenceAccess::None,
        Some(evidence) if evidence.offers_tool() => EvidenceAccess::ToolToo,
        Some(_) => EvidenceAccess::Http,
    }
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
    /// The kept text that the question needs, if it needs one.
    evidence: (Option<EvidenceId>, Result<Arc<str>, NotTold>),
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

    fn evidence_access(&self) -> EvidenceAccess {
        access(self.snapshot)
    }

    fn evidence(&self, id: EvidenceId) -> Result<Arc<str>, NotTold> {
        let (wanted, text) = &self.evidence;
        if *wanted == Some(id) { text.clone() } else { Err(NotTold::Unknown) }
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
    let length = answer.body.len();
    let mut response = Response::new(Body::own(if is_head { String::new() } else { answer.body }));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let head = response.headers_mut();
    if let Some(allow) = answer.allow {
        head.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    if is_head {
        head.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    add(head, header::CONTENT_TYPE, answer.content_type);
    add(head, header::CACHE_CONTROL, "no-store");
    add(head, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn add(head: &mut HeaderMap, name: HeaderName, value: &'static str) {
    head.insert(name, HeaderValue::from_static(value));
}
