//! Asks the rules of policies about a request, by its own facts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::enforce::Allowance;
use super::record::Record;
use crate::call::{Denial, Kind, RequestFacts};
use crate::decision::{RuleId, Verdict};
use crate::digest::hex;
use crate::name::path::NormalPath;
use crate::policy::cel::{Facts, Failure, Tool};
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

/// A request as rules see it, beside what its record has.
pub(crate) struct RuleQuestion<'a> {
    pub(crate) session: &'a Session,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) allowance: &'a Allowance,
    pub(crate) path: &'a str,
    /// What a request to a model asks for; none of another request.
    pub(crate) asked: Option<&'a RequestFacts>,
    /// The bytes of its body, where they are known.
    pub(crate) payload: Option<u64>,
}

impl RuleQuestion<'_> {
    /// Asks the rules, and records what they only record.
    ///
    /// # Errors
    /// The denial by a rule.
    pub(crate) fn ask(&self, record: &Record) -> Result<(), Denial> {
        let policy = self.snapshot.policy();
        if !policy.has_rules() {
            return Ok(());
        }
        let verdict = self
            .with_facts(record, |facts| policy.judge_facts(facts, self.snapshot.settings.limits.cel_cost));
        for (rule, failure) in &verdict.failures {
            self.session.gateway.failing_rules.log(rule, *failure);
        }
        if verdict.judgement.denies() {
            return Err(verdict.judgement.decision.into());
        }
        let recorded =
            Some(verdict.judgement.decision).filter(|decision| decision.verdict == Verdict::WouldDeny);
        record.emit_audits(
            recorded.into_iter().chain(verdict.judgement.audited).chain(verdict.audits).collect(),
        );
        Ok(())
    }

    fn with_facts<T>(&self, record: &Record, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let now = SystemTime::now();
        let shown = record.shown();
        let trace = shown.trace.map(|trace| hex(&trace.trace));
        let path = NormalPath::parse(self.path).to_string();
        let models = self.models();
        let tools = self.tools();
        let spent = self.allowance.used(self.snapshot.policy(), now);
        let asked = self.asked;
        let workload = &self.snapshot.settings.policy.workload;
        let provider = shown.provider;
        ask(&Facts {
            kind: "Request",
            direction: "Outbound",
            time: Some(now),
            session: Some(shown.session),
            trace: trace.as_deref(),
            namespace: named(&workload.namespace),
            pod: named(&workload.pod),
            service_account: named(&workload.service_account),
            node: named(&workload.node),
            credential: self.allowance.name(),
            host: Some(&shown.destination.host),
            port: Some(shown.destination.port),
            action: Some("Inspect"),
            intercepted: Some(shown.destination.intercepted),
            method: Some(&shown.http.method),
            path: Some(&path),
            version: Some(&shown.http.version),
            provider: provider.map(|provider| &*provider.name),
            api: provider.map(|provider| &*provider.api),
            organization: provider.and_then(|provider| provider.organization.as_deref()),
            max_tokens: asked.and_then(|asked| asked.max_tokens),
            messages: shown.conversation.map(|conversation| conversation.messages),
            images: shown.conversation.map(|conversation| conversation.images),
            tool_results: shown.conversation.map(|conversation| conversation.tool_results),
            model: asked.and_then(|asked| asked.model.as_deref()),
            models: &models,
            stream: asked.map(|asked| asked.stream),
            tools: &tools,
            payload_bytes: self.payload,
            tokens_today: Some(spent.tokens_today),
            requests_this_minute: Some(spent.requests_this_minute),
            denials_in_a_row: Some(spent.denials_in_a_row),
            ..Facts::default()
        })
    }

    /// Every model that the request could use.
    fn models(&self) -> Vec<&str> {
        let Some(asked) = self.asked else { return Vec::new() };
        let first = asked.model.as_ref().filter(|model| !asked.models.contains(model));
        first.into_iter().chain(&asked.models).map(String::as_str).collect()
    }

    fn tools(&self) -> Vec<Tool<'_>> {
        let Some(asked) = self.asked else { return Vec::new() };
        let offered = Offered::new(&asked.tools);
        let tools = asked.tools.iter().map(|tool| Tool {
            name: &tool.name,
            kinds: kind::tool(&tool.name, None, false, &offered)
                .kinds
                .iter()
                .map(|kind| word(*kind))
                .collect(),
            sha256: Some(&tool.sha256),
        });
        tools.collect()
    }
}

/// A name that the gateway was told; the empty one says nothing.
fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Shell => "Shell",
        Kind::Read => "Read",
        Kind::Write => "Write",
        Kind::Fetch => "Fetch",
    }
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
