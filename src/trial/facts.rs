//! The facts by which rules are asked about a past event, or about a call or a request that nobody sent.

use std::time::{Duration, SystemTime};

use http::request::Parts;

use crate::call::{RequestFacts, SeenCall, Service};
use crate::digest::hex;
use crate::event::{Event, Finding, Kind, ToolCall};
use crate::name::path::NormalPath;
use crate::policy::Policy;
use crate::policy::cel::{Facts, Finding as KnownFinding, MOST_COST, Tool};
use crate::policy::explain::{Explanation, ShownDecision};
use crate::policy::rule::{CallRuling, KnownCall, Place, RulesVerdict, UnknownFact};
use crate::provider::kind::{self, Offered};

/// How many tools an event lists at most.
const LISTED_TOOLS: usize = 128;
/// What nobody knows where only a call is there.
const OF_EXCHANGES: &[&str] = &[
    "session",
    "trace",
    "workload.",
    "credential",
    "destination.",
    "http.",
    "provider.",
    "conversation.",
    "payload.",
    "spent.",
    "dlp",
];
/// What nobody knows where only the head of a request is there.
const OF_BODIES: &[&str] = &[
    "session",
    "trace",
    "workload.",
    "credential",
    "provider.",
    "conversation.",
    "payload.",
    "spent.",
    "dlp",
];
/// What an event does not keep of its request: what was spent, and the kinds of tools.
const NOT_IN_EVENTS: &[&str] = &["spent.", "kinds"];
/// What an event of a request does not have if its body was not read.
const NOT_READ: &[&str] =
    &["provider.model", "provider.stream", "provider.maxTokens", "provider.tools", "conversation."];
/// What calls and answers have of their request beside it, which their events do not keep.
const NOT_IN_LATER_EVENTS: &[&str] = &["provider.models", "conversation.", "payload."];

/// What is known of an exchange, and what is not.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownFacts {
    time: Option<SystemTime>,
    session: Option<String>,
    trace: Option<String>,
    /// Namespace, pod, service account and node.
    workload: [Option<String>; 4],
    credential: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    intercepted: Option<bool>,
    method: Option<String>,
    path: Option<String>,
    version: Option<String>,
    status: Option<u16>,
    provider: Option<(String, String)>,
    organization: Option<String>,
    asked: Asked,
    payload: Option<u64>,
    call: Option<(String, Vec<&'static str>, Option<u64>)>,
    dlp: Vec<Finding>,
    /// Nothing was spent before.
    is_first: bool,
    unknown: Vec<&'static str>,
}

/// What a request to a model asks for.
#[derive(Debug, Clone, Default)]
struct Asked {
    model: Option<String>,
    models: Vec<String>,
    stream: Option<bool>,
    max_tokens: Option<u64>,
    /// Names, kinds and hashes.
    tools: Vec<(String, Vec<&'static str>, String)>,
    /// Messages, images and results of tools.
    conversation: Option<[u64; 3]>,
}

impl KnownFacts {
    /// A call of which neither request nor answer is known.
    pub(super) fn of_call(now: Option<SystemTime>) -> Self {
        Self { unknown: OF_EXCHANGES.to_vec(), ..Self::default() }.at(now)
    }

    /// At that time; none is not known.
    fn at(mut self, now: Option<SystemTime>) -> Self {
        if now.is_none() {
            self.unknown.push("time");
        }
        Self { time: now, ..self }
    }

    /// The head of a request of which the body is not known.
    pub(super) fn of_head((host, port): (&str, u16), request: Option<(&str, &NormalPath)>) -> Self {
        let mut unknown = OF_BODIES.to_vec();
        if request.is_none() {
            unknown.push("http.");
        }
        unknown.push("time");
        Self {
            host: Some(host.to_owned()),
            port: Some(port),
            method: request.map(|(method, _)| method.to_owned()),
            path: request.map(|(_, path)| path.to_string()),
            unknown,
            ..Self::default()
        }
    }

    /// A whole request to an inspected host, the first of its gateway.
    pub(super) fn of_request(
        parts: &Parts,
        (host, port): (&str, u16),
        now: Option<SystemTime>,
        payload: u64,
    ) -> Self {
        let organization = parts.headers.get("openai-organization").and_then(|value| value.to_str().ok());
        let facts = Self {
            host: Some(host.to_owned()),
            port: Some(port),
            intercepted: Some(parts.uri.scheme_str() != Some("http")),
            method: Some(parts.method.to_string()),
            path: Some(NormalPath::parse(parts.uri.path()).to_string()),
            version: Some("HTTP/1.1".to_owned()),
            organization: organization.map(str::to_owned),
            payload: Some(payload),
            is_first: true,
            unknown: vec!["workload.", "session", "trace"],
            ..Self::default()
        };
        facts.at(now)
    }

    /// Without its body.
    pub(super) fn without_body(mut self) -> Self {
        self.unknown.extend(NOT_READ);
        self.unknown.push("payload.");
        self
    }

    /// With the credential that is attached.
    pub(super) fn with_credential(self, credential: Option<String>) -> Self {
        Self { credential, ..self }
    }

    /// Whether the request is given a key.
    pub(super) fn has_credential(&self) -> bool {
        self.credential.is_some()
    }

    /// Adds what was found in the request.
    pub(super) fn with_findings(self, dlp: Vec<Finding>) -> Self {
        Self { dlp, ..self }
    }

    /// With what a provider is asked for.
    pub(super) fn with_asked(self, service: Service, asked: &RequestFacts) -> Self {
        let offered = Offered::new(&asked.tools);
        let kinds = |name: &str| {
            kind::tool(name, None, false, &offered).kinds.iter().map(|kind| kind.as_str()).collect()
        };
        let tools =
            asked.tools.iter().map(|tool| (tool.name.clone(), kinds(&tool.name), tool.sha256.clone()));
        let first = asked.model.as_ref().filter(|model| !asked.models.contains(model));
        let conversation = asked.conversation;
        let asked = Asked {
            model: asked.model.clone(),
            models: first.into_iter().chain(&asked.models).cloned().collect(),
            stream: Some(asked.stream),
            max_tokens: asked.max_tokens,
            tools: tools.collect(),
            conversation: Some([conversation.messages, conversation.images, conversation.tool_results]),
        };
        let provider = Some((service.vendor.as_str().to_owned(), service.api.as_str().to_owned()));
        Self { provider, asked, ..self }
    }

    /// With what the head of the answer says.
    pub(super) fn answered(mut self, status: u16, organization: Option<String>) -> Self {
        self.status = Some(status);
        if organization.is_some() {
            self.organization = organization;
        }
        // Of requests alone.
        (self.asked.tools, self.asked.conversation, self.payload) = (Vec::new(), None, None);
        self
    }

    /// With a call.
    pub(super) fn called(mut self, call: &SeenCall<'_>) -> Self {
        let name = match call.namespace {
            Some(namespace) => format!("{namespace}.{}", call.name),
            None => call.name.to_owned(),
        };
        self.call = Some((name, call.kinds.iter().map(|kind| kind.as_str()).collect(), call.input_bytes));
        self
    }

    /// With a call of which the input is not known.
    pub(super) fn without_input(mut self) -> Self {
        self.unknown.push("toolCall.inputBytes");
        self
    }

    /// What an event keeps, and the place at which rules were asked about it; none of an event that is about no decision
    /// of theirs.
    pub(super) fn of_event(event: &Event) -> Option<(Place, Self)> {
        let place = match event.kind {
            Kind::Request => Place::Request,
            Kind::ToolCall => Place::Call,
            Kind::Response => Place::Answer,
            Kind::Connection | Kind::Transform | Kind::Policy | Kind::Lifecycle | Kind::Unknown => {
                return None;
            }
        };
        let provider = event.provider.as_ref();
        let workload = event.workload.as_deref();
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let destination = event.destination.as_deref();
        let facts = Self {
            time: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(event.time.unix_millis())),
            session: event.session.as_deref().map(str::to_owned),
            trace: event.trace.as_ref().map(|trace| hex(&trace.trace)),
            workload: workload
                .map(|of| [&of.namespace, &of.pod, &of.service_account, &of.node].map(|name| named(name)))
                .unwrap_or_default(),
            credential: event.credential.as_deref().map(str::to_owned),
            host: destination.map(|to| to.host.clone()),
            port: destination.map(|to| to.port),
            intercepted: destination.map(|to| to.intercepted),
            method: event.http.as_ref().map(|http| http.method.to_string()),
            path: event.http.as_ref().map(|http| NormalPath::parse(&http.path).to_string()),
            version: event.http.as_ref().map(|http| http.version.to_string()),
            status: event.http.as_ref().and_then(|http| http.status),
            provider: provider.map(|provider| (provider.name.to_string(), provider.api.to_string())),
            organization: provider.and_then(|provider| provider.organization.as_deref().map(str::to_owned)),
            asked: Asked::of_event(event),
            payload: event.payload.as_ref().map(|payload| payload.bytes),
            call: event.tool_call.as_ref().map(called),
            dlp: event.dlp.clone(),
            is_first: false,
            unknown: unknown_of(event, place),
        };
        Some((place, facts))
    }

    /// Asks the rules of a policy at a place.
    ///
    /// # Errors
    /// A rule could deny and reads what is not known.
    pub(super) fn judge(&self, policy: &Policy, place: Place) -> Result<RulesVerdict, UnknownFact> {
        self.with(place, |facts| policy.judge_known(place, facts, &self.unknown))
    }

    /// Asks the rules of a policy about a call, as far as it is known.
    ///
    /// # Errors
    /// As for [`Self::judge`].
    pub(super) fn judge_call(&self, policy: &Policy, known: KnownCall) -> Result<CallRuling, UnknownFact> {
        self.with(Place::Call, |facts| {
            policy.judge_known(Place::Call, facts, &self.unknown)?;
            Ok(policy.judge_call(facts, known, MOST_COST))
        })
    }

    /// Adds the rules of a policy to an explanation. Where they deny what else would go on, they decide; where one could and
    /// reads what is not known, nothing is decided.
    pub(super) fn explain(&self, policy: &Policy, place: Place, explanation: Explanation) -> Explanation {
        let mut explanation = explanation;
        explanation.rules.extend(self.with(place, |facts| policy.explain_facts(place, facts, &self.unknown)));
        if matches!(explanation.decision.verdict, "Allow" | "Audit") {
            let by_rules = match self.judge(policy, place) {
                Ok(verdict) => decided(&verdict),
                Err(unknown) => Some(ShownDecision::needs_facts(unknown.to_string())),
            };
            explanation.decision = by_rules.unwrap_or(explanation.decision);
        }
        explanation
    }

    /// Calls `ask` with the facts as rules read them.
    fn with<T>(&self, place: Place, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let (kind, direction) = place.event();
        let models: Vec<&str> = self.asked.models.iter().map(String::as_str).collect();
        let tools: Vec<Tool<'_>> = self
            .asked
            .tools
            .iter()
            .map(|(name, kinds, sha256)| Tool { name, kinds: kinds.clone(), sha256: Some(sha256) })
            .collect();
        let dlp: Vec<KnownFinding<'_>> = self.dlp.iter().map(found).collect();
        let [namespace, pod, service_account, node] = self.workload.each_ref().map(Option::as_deref);
        let spent = self.is_first.then_some(0);
        let call = self.call.as_ref();
        ask(&Facts {
            kind,
            direction,
            time: self.time,
            session: self.session.as_deref(),
            trace: self.trace.as_deref(),
            namespace,
            pod,
            service_account,
            node,
            credential: self.credential.as_deref(),
            host: self.host.as_deref(),
            port: self.port,
            action: Some("Inspect"),
            intercepted: self.intercepted,
            method: self.method.as_deref(),
            path: self.path.as_deref(),
            version: self.version.as_deref(),
            status: self.status,
            provider: self.provider.as_ref().map(|(name, _)| name.as_str()),
            api: self.provider.as_ref().map(|(_, api)| api.as_str()),
            model: self.asked.model.as_deref(),
            organization: self.organization.as_deref(),
            models: &models,
            stream: self.asked.stream,
            max_tokens: self.asked.max_tokens,
            tools: &tools,
            messages: self.asked.conversation.map(|[messages, ..]| messages),
            images: self.asked.conversation.map(|[_, images, _]| images),
            tool_results: self.asked.conversation.map(|[.., results]| results),
            payload_bytes: self.payload,
            call_name: call.map(|(name, ..)| name.as_str()),
            call_kinds: call.map(|(_, kinds, _)| &kinds[..]).unwrap_or_default(),
            call_input_bytes: call.and_then(|(.., bytes)| *bytes),
            dlp: &dlp,
            tokens_today: spent,
            requests_this_minute: spent,
            denials_in_a_row: spent,
            ..Facts::default()
        })
    }
}

impl Asked {
    fn of_event(event: &Event) -> Self {
        let Some(provider) = &event.provider else { return Self::default() };
        let model = provider.model.as_deref().map(str::to_owned);
        let tools = provider.tools.iter().map(|tool| (tool.name.clone(), Vec::new(), tool.sha256.clone()));
        Self {
            models: if provider.models.is_empty() {
                model.iter().cloned().collect()
            } else {
                provider.models.clone()
            },
            model,
            stream: provider.stream,
            max_tokens: provider.max_tokens,
            tools: tools.collect(),
            conversation: event.conversation.map(|of| [of.messages, of.images, of.tool_results]),
        }
    }
}

/// What an event does not have of what was known where rules were asked.
fn unknown_of(event: &Event, place: Place) -> Vec<&'static str> {
    let mut unknown = NOT_IN_EVENTS.to_vec();
    let provider = event.provider.as_ref();
    match place {
        Place::Request if provider.is_some() && event.conversation.is_none() => unknown.extend(NOT_READ),
        Place::Request => {}
        Place::Call | Place::Answer | Place::End => unknown.extend(NOT_IN_LATER_EVENTS),
    }
    if provider.is_some_and(|provider| provider.tools.len() >= LISTED_TOOLS) {
        unknown.push("provider.tools");
    }
    if event.count > 1 {
        unknown.extend(["time", "http.path", "session", "trace"]);
    }
    let is_whole = |call: &ToolCall| !call.incomplete && !call.computed && call.input_sha256.is_some();
    if event.tool_call.as_ref().is_some_and(|call| !is_whole(call)) {
        unknown.extend(["toolCall.inputBytes", "toolCall.kinds"]);
    }
    unknown
}

/// A call by its name, its kinds and the bytes of its input.
fn called(call: &ToolCall) -> (String, Vec<&'static str>, Option<u64>) {
    let known = ["Shell", "Read", "Write", "Fetch"];
    let kinds = known.into_iter().filter(|kind| call.kinds.iter().any(|named| named == kind));
    (call.name.clone(), kinds.collect(), Some(call.input_bytes))
}

/// The decision of rules, where they deny or record something.
pub(super) fn decided(verdict: &RulesVerdict) -> Option<ShownDecision> {
    let decision = &verdict.judgement.decision;
    let denies = decision.denies() || decision.would_deny();
    let first = if denies { Some(decision) } else { verdict.audits.first() };
    first.map(ShownDecision::from)
}

fn found(finding: &Finding) -> KnownFinding<'_> {
    KnownFinding {
        detector: &finding.detector,
        kind: &finding.kind,
        confidence: &finding.confidence,
        role: finding.role.as_deref().unwrap_or_default(),
        location: &finding.location,
        checksum: finding.checksum.map(|checksum| if checksum { "valid" } else { "invalid" }),
        action: &finding.action,
    }
}
