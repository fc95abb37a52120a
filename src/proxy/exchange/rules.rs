//! Asks the rules of policies about a request, its answer and the calls in it, by the facts of the exchange.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::enforce::Allowance;
use super::record::Record;
use crate::call::{ByFacts, CallVerdict, Denial, RequestFacts, SeenCall, Usage};
use crate::decision::{Decision, RuleId, Verdict};
use crate::digest::hex;
use crate::event::{self, Destination, Http, Provider};
use crate::name::path::NormalPath;
use crate::policy::cel::{Facts, Failure, Finding, Tool};
use crate::policy::rule::{CallRuling, KnownCall, Place, RulesVerdict};
use crate::provider::kind::{self, Offered};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::rate::Rate;

/// How often a rule without a value is logged.
const LOGGED: Duration = Duration::from_secs(60);
/// How many rules are remembered as failing; the next one forgets them.
const MOST_FAILING: usize = 1_024;

/// The rules that had no value, and when that was logged.
#[derive(Debug, Default)]
pub(crate) struct FailingRules(Mutex<HashMap<RuleId, Rate>>);

/// What rules know of an exchange, at its request and later.
pub(crate) struct ExchangeFacts {
    session: Arc<Session>,
    allowance: Allowance,
    label: Arc<str>,
    /// 32 hex digits.
    trace: Option<String>,
    destination: Arc<Destination>,
    http: Http,
    path: String,
    provider: Option<Provider>,
    model: Option<String>,
    models: Vec<String>,
    stream: Option<bool>,
    /// Whether something was replaced in the request.
    pub(super) holds_placeholders: bool,
}

impl ExchangeFacts {
    /// What is known of a request. `asked` is what a request to a model asks for.
    pub(crate) fn of(
        session: &Arc<Session>,
        allowance: &Allowance,
        (path, asked): (&str, Option<&RequestFacts>),
        record: &Record,
    ) -> Self {
        let shown = record.shown();
        Self {
            session: Arc::clone(session),
            allowance: allowance.clone(),
            label: Arc::clone(shown.session),
            trace: shown.trace.map(|trace| hex(&trace.trace)),
            destination: Arc::clone(shown.destination),
            http: shown.http.clone(),
            path: NormalPath::parse(path).to_string(),
            provider: shown.provider.cloned(),
            model: asked.and_then(|asked| asked.model.clone()),
            models: asked.map(all_models).unwrap_or_default(),
            stream: asked.map(|asked| asked.stream),
            holds_placeholders: asked.is_some_and(|asked| asked.holds_placeholders),
        }
    }

    /// Takes what the head of the answer told.
    pub(crate) fn answered(&mut self, record: &Record) {
        let shown = record.shown();
        self.http = shown.http.clone();
        self.provider = shown.provider.cloned();
    }

    /// Asks about the request, with its body's length where that is known, and records what rules only record.
    ///
    /// # Errors
    /// The denial by a rule.
    pub(crate) fn ask_request(
        &self,
        snapshot: &Snapshot,
        asked: Option<&RequestFacts>,
        payload: Option<u64>,
        record: &Record,
    ) -> Result<(), Denial> {
        let tools = asked.map(offered).unwrap_or_default();
        let conversation = record.shown().conversation;
        let dlp: Vec<Finding<'_>> = record.findings().iter().map(found).collect();
        let verdict = self.ask(snapshot, Place::Request, |facts, most| {
            let facts = Facts {
                tools: &tools,
                messages: conversation.map(|conversation| conversation.messages),
                images: conversation.map(|conversation| conversation.images),
                tool_results: conversation.map(|conversation| conversation.tool_results),
                payload_bytes: payload,
                dlp: &dlp,
                ..facts
            };
            snapshot.policy().judge_facts(Place::Request, &facts, most)
        });
        self.settle(verdict, record)
    }

    /// Asks about the answer, of which the head has come, and records what rules only record.
    ///
    /// # Errors
    /// The denial by a rule.
    pub(crate) fn ask_answer(&self, snapshot: &Snapshot, record: &Record) -> Result<(), Denial> {
        let verdict = self.ask(snapshot, Place::Answer, |facts, most| {
            snapshot.policy().judge_facts(Place::Answer, &facts, most)
        });
        self.settle(verdict, record)
    }

    /// Asks about an answer that has ended, and returns what is to be recorded.
    pub(crate) fn ask_end(&self, snapshot: &Snapshot, ended: &EndedAnswer<'_>) -> Vec<Decision> {
        let EndedAnswer { model, usage, bytes } = *ended;
        let verdict = self.ask(snapshot, Place::End, |facts, most| {
            let facts = Facts {
                response_model: model,
                input_tokens: usage.input,
                output_tokens: usage.output,
                cache_read_tokens: usage.cache_read,
                cache_write_tokens: usage.cache_write,
                reasoning_tokens: usage.reasoning,
                payload_bytes: Some(bytes),
                ..facts
            };
            snapshot.policy().judge_facts(Place::End, &facts, most)
        });
        self.log(&verdict.failures);
        verdict.audits
    }

    /// Asks about a call, as far as it is known.
    pub(crate) fn ask_call(&self, snapshot: &Snapshot, call: &SeenCall<'_>) -> ByFacts {
        if !snapshot.policy().has_rules_at(Place::Call) {
            return ByFacts::Silent;
        }
        let name = call.namespace.map(|namespace| format!("{namespace}.{}", call.name));
        let kinds: Vec<&str> = call.kinds.iter().map(|kind| kind.as_str()).collect();
        let known = KnownCall { kinds: call.has_all_kinds, input: call.input_bytes.is_some() };
        let ruling = self.ask(snapshot, Place::Call, |facts, most| {
            let facts = Facts {
                call_name: Some(name.as_deref().unwrap_or(call.name)),
                call_kinds: &kinds,
                call_input_bytes: call.input_bytes,
                ..facts
            };
            snapshot.policy().judge_call(&facts, known, most)
        });
        match ruling {
            CallRuling::NeedsInput { denies } => ByFacts::NeedsInput { denies },
            CallRuling::Decided(verdict, advice) => {
                self.log(&verdict.failures);
                let RulesVerdict { judgement, audits, .. } = verdict;
                let audited = judgement.audited.into_iter().chain(audits).collect();
                let allowed = CallVerdict::allowed();
                ByFacts::Decided(Box::new(CallVerdict {
                    decision: judgement.decision,
                    advice,
                    audited,
                    ..allowed
                }))
            }
        }
    }

    /// Asks with the facts that are known everywhere, and what an evaluation may cost.
    fn ask<T>(&self, snapshot: &Snapshot, place: Place, ask: impl FnOnce(Facts<'_>, u64) -> T) -> T {
        let now = SystemTime::now();
        let (kind, direction) = place.event();
        let models: Vec<&str> = self.models.iter().map(String::as_str).collect();
        let spent = self.allowance.used(snapshot.policy(), now);
        let workload = &snapshot.settings.policy.workload;
        let provider = self.provider.as_ref();
        let facts = Facts {
            kind,
            direction,
            time: Some(now),
            session: Some(&self.label),
            trace: self.trace.as_deref(),
            namespace: named(&workload.namespace),
            pod: named(&workload.pod),
            service_account: named(&workload.service_account),
            node: named(&workload.node),
            credential: self.allowance.name(),
            host: Some(&self.destination.host),
            port: Some(self.destination.port),
            action: Some("Inspect"),
            intercepted: Some(self.destination.intercepted),
            method: Some(&self.http.method),
            path: Some(&self.path),
            version: Some(&self.http.version),
            status: self.http.status,
            provider: provider.map(|provider| &*provider.name),
            api: provider.map(|provider| &*provider.api),
            organization: provider.and_then(|provider| provider.organization.as_deref()),
            max_tokens: provider.and_then(|provider| provider.max_tokens),
            model: self.model.as_deref(),
            models: &models,
            stream: self.stream,
            tokens_today: Some(spent.tokens_today),
            requests_this_minute: Some(spent.requests_this_minute),
            denials_in_a_row: Some(spent.denials_in_a_row),
            ..Facts::default()
        };
        ask(facts, snapshot.settings.limits.cel_cost)
    }

    /// Records what rules only record.
    ///
    /// # Errors
    /// What they deny.
    fn settle(&self, verdict: RulesVerdict, record: &Record) -> Result<(), Denial> {
        self.log(&verdict.failures);
        let RulesVerdict { judgement, audits, .. } = verdict;
        if judgement.denies() {
            return Err(judgement.decision.into());
        }
        let recorded = Some(judgement.decision).filter(|decision| decision.verdict == Verdict::WouldDeny);
        record.emit_audits(recorded.into_iter().chain(judgement.audited).chain(audits).collect());
        Ok(())
    }

    fn log(&self, failures: &[(RuleId, Failure)]) {
        failures.iter().for_each(|(rule, failure)| self.session.gateway.failing_rules.log(rule, *failure));
    }
}

/// What is known of an answer at its end.
pub(crate) struct EndedAnswer<'a> {
    /// The model that answered.
    pub(crate) model: Option<&'a str>,
    pub(crate) usage: Usage,
    /// How much came.
    pub(crate) bytes: u64,
}

/// Every model that a request could use.
fn all_models(asked: &RequestFacts) -> Vec<String> {
    let first = asked.model.as_ref().filter(|model| !asked.models.contains(model));
    first.into_iter().chain(&asked.models).cloned().collect()
}

/// The tools that a request offers.
fn offered(asked: &RequestFacts) -> Vec<Tool<'_>> {
    let offered = Offered::new(&asked.tools);
    let tools = asked.tools.iter().map(|tool| Tool {
        name: &tool.name,
        kinds: kind::tool(&tool.name, None, false, &offered).kinds.iter().map(|kind| kind.as_str()).collect(),
        sha256: Some(&tool.sha256),
    });
    tools.collect()
}

/// A finding as rules read it.
fn found(finding: &event::Finding) -> Finding<'_> {
    Finding {
        detector: &finding.detector,
        kind: &finding.kind,
        confidence: &finding.confidence,
        role: finding.role.as_deref().unwrap_or_default(),
        location: &finding.location,
        checksum: finding.checksum.map(|checksum| if checksum { "valid" } else { "invalid" }),
        action: &finding.action,
    }
}

/// A name that the gateway was told; the empty one says nothing.
fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

impl FailingRules {
    /// Logs that a rule has no value, once a minute for each rule.
    fn log(&self, rule: &RuleId, failure: Failure) {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.len() >= MOST_FAILING && !rules.contains_key(rule) {
            rules.clear();
        }
        let rate = rules.entry(rule.clone()).or_insert_with(|| Rate::new(LOGGED, 1));
        if rate.take(Instant::now()) {
            tracing::warn!(%rule, "a rule cannot be evaluated: {failure}");
        }
    }
}
