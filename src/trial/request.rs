//! Gives a request to a policy as the gateway would get it, and the answer of a model to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use serde_json::Value;

use super::document::{TestAnswer, TestRequest};
use super::facts::{self, KnownFacts};
use super::files::{Files, FilesJudge};
use super::judge::TrialJudge;
use super::{CallOutcome, Outcome, Trial, Tried, judged, routed};
use crate::call::withheld::Withheld;
use crate::call::{BlockedCalls, CallNote, Change, Denial, Judge, RequestFacts, Service, Terms};
use crate::decision::Decision;
use crate::detection::Inspection;
use crate::dlp::Search;
use crate::event::Finding;
use crate::name::host::{Authority, Host};
use crate::policy::Policy;
use crate::policy::destination::{Action, Flow, Protocol};
use crate::policy::explain::ShownDecision;
use crate::policy::rule::Place;
use crate::problem::Problem;
use crate::provider::adapter::{Adapter, Framing, ModelRequestHead};
use crate::provider::answer::{FailurePolicy, Guard, GuardSettings};
use crate::provider::kind::Offered;
use crate::provider::request::Detection;
use crate::provider::{self, request};

/// How many bytes are decoded of a body at most, as the gateway's settings have it where nobody writes it.
const MOST_DECODED: usize = 64 << 20;

/// What becomes of a request's body.
#[derive(Default)]
struct ReadBody {
    facts: RequestFacts,
    removed: Vec<String>,
    redacted: Vec<String>,
    findings: Vec<Finding>,
    /// As policy left it, where it was edited.
    body: Option<Vec<u8>>,
    /// The denial that is only recorded because every policy of the pod is an Audit policy.
    recorded: Option<Decision>,
}

/// The answer of a test, with the files of the workspace at that time.
struct GivenAnswer<'a> {
    written: &'a TestAnswer,
    body: Vec<u8>,
    files: Option<&'a Files>,
}

impl Trial<'_> {
    /// Gives the request to the policy, and the answer where the request goes on.
    pub(super) fn request(
        &self,
        written: &TestRequest,
        answer: Option<&TestAnswer>,
        files: Option<&Files>,
    ) -> Result<Tried, Problem> {
        let body = self.body("request", written.body.as_ref(), written.body_file.as_ref())?;
        let (parts, host, port) = head(written, body.is_some())?;
        let answer = answer
            .map(|answer| {
                let body = self.body("answer", answer.body.as_ref(), answer.body_file.as_ref())?;
                Ok::<_, Problem>(GivenAnswer { written: answer, body: body.unwrap_or_default(), files })
            })
            .transpose()?;
        Ok(self
            .judge(&parts, (&host, port), body.as_deref(), answer)
            .unwrap_or_else(|denied| Ok(Outcome::of(ShownDecision::from(&denied)))))
    }

    fn judge(
        &self,
        parts: &Parts,
        (host, port): (&Host, u16),
        body: Option<&[u8]>,
        answer: Option<GivenAnswer<'_>>,
    ) -> Result<Tried, Decision> {
        let protocol = if parts.uri.scheme_str() == Some("http") { Protocol::Http } else { Protocol::Tls };
        let flow = Flow { name: host.name(), address: host.ip(), port, protocol };
        let destination = self.policy.destination(&flow);
        if let Action::Tunnel { .. } = destination.action {
            return Ok(Ok(Outcome::of(ShownDecision::from(&destination.decision))));
        }
        let head = self.world.head(parts, body.is_some(), (host.clone(), port), self.policy);
        if head.decision.denies() {
            return Err(head.decision);
        }
        if let Some(denied) = host.ip().and_then(|ip| self.policy.denies_address(ip, port)) {
            return Err(denied);
        }
        let length = body.map_or(0, |body| body.len() as u64);
        let known = KnownFacts::of_request(parts, (&host.to_string(), port), self.now, length);
        let known = known.with_credential(head.credential);
        let mut outcome = Outcome::of(ShownDecision::from(&head.decision));
        let spoken = head.service.and_then(|service| Some((service, provider::adapter(service.dialect?))));
        let Some((service, adapter)) = spoken.filter(|_| !head.is_upgrade) else {
            self.one_reading(head.service, body)?;
            let found = self.search(parts, host, body, &mut outcome)?;
            let known = known.with_findings(found);
            return Ok(self.by_rules(&known, Place::Request, &mut outcome)?.map_or(Ok(outcome), Err));
        };
        let asked = ModelRequestHead {
            service,
            path: parts.uri.path(),
            query: parts.uri.query(),
            is_subscription: provider::is_subscription(&parts.headers),
        };
        let found = self.search(parts, host, None, &mut outcome)?;
        let Some(body) = body else {
            let known = known.with_asked(service, &RequestFacts::default()).without_body();
            return Ok(self.by_rules(&known, Place::Request, &mut outcome)?.map_or(Ok(outcome), Err));
        };
        let mut read = self.read(&asked, adapter, body, (host, known.has_credential()))?;
        let sent = read.body.as_deref().unwrap_or(body);
        let to = (host, port);
        let chain = routed::chosen(self.policy, to, (service, &read.facts), (sent, self.bounds.json))?;
        outcome.models = chain.iter().map(|hop| hop.label().to_owned()).collect();
        let named = chain.iter().filter_map(|hop| hop.model().and_then(|model| model.model.as_deref()));
        read.facts.models.extend(named.map(str::to_owned));
        if let Some(recorded) = &read.recorded {
            outcome.decision = ShownDecision::from(recorded);
        }
        (outcome.removed, outcome.redacted) = (read.removed, read.redacted);
        let known = known.with_asked(service, &read.facts).with_findings([found, read.findings].concat());
        if let Some(why) = self.by_rules(&known, Place::Request, &mut outcome)? {
            return Ok(Err(why));
        }
        let Some(answer) = answer else { return Ok(Ok(outcome)) };
        let known = known.answered(answer.written.status.unwrap_or(200), answer.written.organization.clone());
        if let Some(why) = self.by_rules(&known, Place::Answer, &mut outcome)? {
            return Ok(Err(why));
        }
        match self.answer((&asked, adapter), (&read.facts, known), answer)? {
            Ok(calls) => Ok(Ok(Outcome { calls, ..outcome })),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Asks the rules over facts, and keeps what they only record. Returns why that cannot be said, where it cannot.
    fn by_rules(
        &self,
        known: &KnownFacts,
        place: Place,
        outcome: &mut Outcome,
    ) -> Result<Option<String>, Decision> {
        let verdict = match known.judge(self.policy, place) {
            Ok(verdict) => verdict,
            Err(unknown) => return Ok(Some(unknown.to_string())),
        };
        let is_recorded = outcome.decision.verdict == "Allow";
        if let Some(recorded) = facts::decided(&verdict).filter(|_| is_recorded) {
            outcome.decision = recorded;
        }
        let decision = verdict.judgement.decision;
        if decision.denies() { Err(decision) } else { Ok(None) }
    }

    /// Searches the head of a request, and the body of one to no model, for secrets. Returns what was found.
    fn search(
        &self,
        parts: &Parts,
        host: &Host,
        body: Option<&[u8]>,
        outcome: &mut Outcome,
    ) -> Result<Vec<Finding>, Decision> {
        let length = body.map_or(0, <[u8]>::len);
        let Some(mut inspection) = self.inspection(host, length) else { return Ok(Vec::new()) };
        let searched =
            inspection.head(parts).and_then(|()| body.map_or(Ok(()), |body| inspection.body(body)));
        let inspected = inspection.take();
        let recorded = match searched {
            Ok(()) => inspected.recorded.into_iter().next(),
            Err(denial) => Some(self.enforced(denial)?),
        };
        if let Some(recorded) = recorded {
            outcome.decision = ShownDecision::from(&recorded);
        }
        Ok(inspected.findings)
    }

    fn inspection(&self, host: &Host, length: usize) -> Option<Inspection> {
        let search = Search::from(Arc::clone(self.policy.detectors()?));
        Some(Inspection::of(self.policy, search, host, (length, MOST_DECODED)))
    }

    /// Reads the body of a request to a model.
    fn read(
        &self,
        asked: &ModelRequestHead<'_>,
        adapter: &dyn Adapter,
        body: &[u8],
        (host, is_vouched): (&Host, bool),
    ) -> Result<ReadBody, Decision> {
        self.check_length(body)?;
        let blocked = BlockedCalls::new(1);
        let mut inspection =
            self.inspection(host, body.len()).map(|inspection| inspection.of_model(is_vouched));
        let detection = inspection.as_mut().map(|inspection| inspection as &mut dyn Detection);
        let (bounded, terms) = ((body, self.bounds.json), (self.policy.as_ref() as &dyn Terms, &blocked));
        let edited = request::read(adapter, asked, bounded, terms, detection);
        let inspected = inspection.map(|mut inspection| inspection.take()).unwrap_or_default();
        let mut read = ReadBody { findings: inspected.findings, ..ReadBody::default() };
        match edited {
            Ok(edited) => {
                (read.facts, read.body) = (edited.facts, edited.body);
                read.recorded = inspected.recorded.into_iter().next();
                for change in edited.changes {
                    match change {
                        Change::HostedTool(tool_type) => read.removed.push(tool_type),
                        Change::Redaction(detector) => read.redacted.push(detector),
                        Change::Other(_) => {}
                    }
                }
            }
            Err(denial) => read.recorded = Some(self.enforced(denial)?),
        }
        Ok(read)
    }

    /// Judges the body of an inference endpoint that belongs to no dialect.
    fn one_reading(&self, service: Option<Service>, body: Option<&[u8]>) -> Result<(), Decision> {
        let is_inference = service.is_some_and(|service| service.is_inference());
        let Some(body) = body.filter(|_| is_inference) else { return Ok(()) };
        self.check_length(body)?;
        match request::one_reading(body, self.bounds.json) {
            Ok(()) => Ok(()),
            Err(denial) => self.enforced(denial).map(|_| ()),
        }
    }

    /// The denial as it is recorded where nothing is enforced.
    fn enforced(&self, denial: Denial) -> Result<Decision, Decision> {
        if self.policy.audit_only() { Ok(denial.decision.into_would_deny()) } else { Err(denial.decision) }
    }

    fn check_length(&self, body: &[u8]) -> Result<(), Decision> {
        let limit = self.policy.limits().request_body_bytes.as_ref();
        let Some(limit) = limit.filter(|limit| body.len() as u64 > limit.most) else { return Ok(()) };
        let reason = format!("the request is larger than {} bytes (limits.requestBodyBytes)", limit.most);
        Err(Decision::builtin("bound", reason))
    }

    /// Has the guard read an answer. Returns its calls, or why they cannot be judged.
    fn answer(
        &self,
        (asked, adapter): (&ModelRequestHead<'_>, &dyn Adapter),
        (facts, known): (&RequestFacts, KnownFacts),
        GivenAnswer { written: answer, body, files }: GivenAnswer<'_>,
    ) -> Result<Result<Vec<CallOutcome>, String>, Decision> {
        let Some(transcript) = adapter.transcript(asked, facts) else { return Ok(Ok(Vec::new())) };
        let judge = Arc::new(TrialJudge::new(self.policy, known));
        let by: Arc<dyn Judge> = if facts.holds_placeholders {
            Arc::new(Withheld(Arc::clone(&judge) as Arc<dyn Judge>))
        } else {
            Arc::clone(&judge) as Arc<dyn Judge>
        };
        let by = FilesJudge::over(by, self.policy, files);
        let content_type = answer.content_type.as_deref().unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let framing = adapter.framing(asked, facts, &content_type);
        let events = adapter.framing(asked, facts, "text/event-stream");
        let settings = GuardSettings {
            failure: if self.policy.failure_open() { FailurePolicy::Open } else { FailurePolicy::Closed },
            writes: facts.writes,
            judge: by,
            ..judged::settings(self.policy, self.bounds, offered(self.policy, facts))
        };
        let mut guard = Guard::new(transcript, framing, settings);
        let body = Bytes::from(body);
        let guarded = match framing {
            _ if !(200..300).contains(&answer.status.unwrap_or(200)) => guard.failure(body, events),
            Framing::Whole => guard.whole(body),
            Framing::Events(_) | Framing::EventStream | Framing::Array => guard.stream(body, framing),
        };
        if let Err(broken) = guarded {
            let reason = format!("the answer cannot go on: {}", broken.reason);
            return Err(Decision::builtin(broken.rule, reason));
        }
        let calls = guard.take_notes().into_iter().map(call).collect();
        Ok(judge.why_unknown().map_or(Ok(calls), Err))
    }

    /// The bytes of a body; none where none is written.
    fn body(
        &self,
        place: &str,
        written: Option<&Value>,
        file: Option<&PathBuf>,
    ) -> Result<Option<Vec<u8>>, Problem> {
        if let Some(file) = file {
            let read = self.world.file(file);
            return read.map(Some).map_err(|why| Problem::at(format!("{place}.bodyFile"), why));
        }
        let bytes = |body: &Value| body.as_str().map_or_else(|| body.to_string(), str::to_owned).into_bytes();
        Ok(written.map(bytes))
    }
}

fn offered(policy: &Arc<Policy>, facts: &RequestFacts) -> Offered {
    match (
        policy.denies(facts.writes) || facts.writes && facts.holds_placeholders,
        policy.shell().prefers_file_tools,
    ) {
        (false, _) => Offered::default(),
        (true, false) => Offered::new(&facts.tools),
        (true, true) => Offered::with_file_tools(&facts.tools),
    }
}

fn call(note: CallNote) -> CallOutcome {
    let decision = ShownDecision::from(&note.verdict.decision);
    let name = match note.namespace {
        Some(namespace) => format!("{namespace}.{}", note.name),
        None => note.name,
    };
    CallOutcome { name, decision }
}

/// The head of a request, with the host and the port that it is for.
fn head(written: &TestRequest, has_body: bool) -> Result<(Parts, Host, u16), Problem> {
    let method = written.method.as_deref().unwrap_or(if has_body { "POST" } else { "GET" });
    let uri: http::Uri =
        written.url.parse().map_err(|error| Problem::at("request.url", format!("is no URL: {error}")))?;
    let default = match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        Some(_) | None => {
            return Err(Problem::at("request.url", "expected https://HOST/… or http://HOST/…"));
        }
    };
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let authority =
        Authority::parse(authority).map_err(|why| Problem::at("request.url", format!("its host: {why}")))?;
    let method = http::Method::from_bytes(method.as_bytes())
        .map_err(|_| Problem::at("request.method", format!("{method:?} is no method")))?;
    let mut request = Request::new(());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    *request.headers_mut() = headers(&written.headers)?;
    let (parts, ()) = request.into_parts();
    Ok((parts, authority.host, authority.port.unwrap_or(default)))
}

fn headers(written: &BTreeMap<String, String>) -> Result<http::HeaderMap, Problem> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in written {
        let at = |message: &str| Problem::at(format!("request.headers.{name}"), message);
        let known = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| at("is no name of a field"))?;
        if known == http::header::CONTENT_ENCODING {
            return Err(at("is not needed: write the body as it is when it is decoded"));
        }
        let value = http::HeaderValue::from_str(value).map_err(|_| at("is no value of a field"))?;
        headers.append(known, value);
    }
    Ok(headers)
}
