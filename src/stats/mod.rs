//! COUNTS events: what was asked, called, denied and spent, by whom; and what was unusual. Pure.

mod counts;
mod names;
mod outputs;
mod prices;
mod signals;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::Serialize;

use crate::decision::{RuleId, Verdict};
use crate::event::{Event, Id, Kind, Timestamp};
use crate::policy::document::Document;
pub use counts::{Counts, Tokens};
use names::{Names, entry};
use outputs::OutputCounts;
pub use outputs::OutputRow;
pub use prices::{Cost, PriceList};
use signals::Signals;
pub use signals::{DenialRow, FirstSeen, LEAST_DAYS, LargeDay, LargePayload, SignalReport, Subject};

/// The most rows of a table.
const MOST_ROWS: usize = 100;

/// A call is told from so many equal ones on in one session.
const REPEATED: u64 = 5;

/// The most calls that are told apart, and the most exchanges whose answer has not ended.
const MOST_CALLS: usize = 1_000_000;
const MOST_OPEN: usize = 100_000;

/// The most tools of one answer that its tokens are counted under.
const MOST_TOOLS: usize = 64;

/// What counts are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Workload,
    Model,
    Tool,
    Session,
}

/// The counts of one workload, model, tool or session.
#[derive(Debug, PartialEq, Serialize)]
pub struct GroupRow {
    pub name: Arc<str>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A tool and its calls.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ToolRow {
    pub tool: Arc<str>,
    pub calls: u64,
    pub denied: u64,
}

/// What a rule denied, or would have denied.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleRow {
    pub rule: Arc<str>,
    pub calls: u64,
    pub requests: u64,
    pub connections: u64,
    pub would_deny: u64,
}

/// A limit that was reached.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LimitRow {
    pub rule: Arc<str>,
    pub reason: Arc<str>,
    pub count: u64,
}

/// What a detector found, and what was done.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FindingRow {
    pub detector: Arc<str>,
    pub action: Arc<str>,
    pub count: u64,
}

/// A call that a session made again and again.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RepeatedCall {
    pub session: Arc<str>,
    pub tool: Arc<str>,
    /// The beginning of the SHA-256 of its input.
    pub input_sha256: String,
    pub count: u64,
}

/// Everything that was counted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsReport {
    pub events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    pub total: Counts,
    /// The largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRow>,
    pub tools: Vec<ToolRow>,
    pub denied: Vec<RuleRow>,
    pub limits: Vec<LimitRow>,
    pub findings: Vec<FindingRow>,
    pub repeated: Vec<RepeatedCall>,
    /// What became of long results of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_outputs: Vec<OutputRow>,
    /// Rules of the policies that no event names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_fired: Option<Vec<String>>,
    /// Models whose tokens have no price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_price: Vec<Arc<str>>,
    /// None of a record of fewer than three days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalReport>,
}

type Map<K, V> = HashMap<K, V, RandomState>;

/// Counts events.
#[derive(Debug)]
pub struct EventCounter {
    by: Option<GroupBy>,
    events: u64,
    times: Option<(Timestamp, Timestamp)>,
    total: Counts,
    groups: Names,
    counts: Vec<Counts>,
    models: Names,
    /// Tokens by model; by group and model.
    tokens: Vec<Tokens>,
    group_tokens: Map<(usize, usize), Tokens>,
    tools: Names,
    tool_rows: Vec<(u64, u64)>,
    /// The tools that the answers of exchanges called so far.
    open: Map<Id, Vec<usize>>,
    rules: Names,
    rule_rows: Vec<[u64; 4]>,
    limits: Map<(usize, usize), u64>,
    reasons: Names,
    findings: Map<(usize, usize), u64>,
    words: Names,
    sessions: Names,
    repeated: Map<(usize, usize, u64), u64>,
    outputs: OutputCounts,
    workloads: Names,
    signals: Signals,
}

impl EventCounter {
    pub fn new(by: Option<GroupBy>) -> Self {
        Self {
            by,
            events: 0,
            times: None,
            total: Counts::default(),
            groups: Names::default(),
            counts: Vec::new(),
            models: Names::default(),
            tokens: Vec::new(),
            group_tokens: Map::default(),
            tools: Names::default(),
            tool_rows: Vec::new(),
            open: Map::default(),
            rules: Names::default(),
            rule_rows: Vec::new(),
            limits: Map::default(),
            reasons: Names::default(),
            findings: Map::default(),
            words: Names::default(),
            sessions: Names::default(),
            repeated: Map::default(),
            outputs: OutputCounts::default(),
            workloads: Names::default(),
            signals: Signals::default(),
        }
    }

    pub fn take(&mut self, event: &Event) {
        self.events += 1;
        let last = event.last.unwrap_or(event.time).max(event.time);
        let (from, to) = self.times.get_or_insert((event.time, last));
        (*from, *to) = ((*from).min(event.time), (*to).max(last));
        self.total.add(event);
        let workload = self.workload(event);
        let group = self.group(event, workload);
        if let Some(counts) = group.and_then(|group| entry(&mut self.counts, group)) {
            counts.add(event);
        }
        self.count_rule(event);
        self.count_call(event);
        self.count_tokens(event, group);
        self.count_findings(event);
        self.outputs.take(event);
        self.signals.take(workload, event);
    }

    /// The number of the pod; of a gateway without one, of none.
    fn workload(&mut self, event: &Event) -> usize {
        match &event.workload {
            Some(of) if !of.pod.is_empty() => self.workloads.number(&format!("{}/{}", of.namespace, of.pod)),
            _ => self.workloads.number("-"),
        }
    }

    fn group(&mut self, event: &Event, workload: usize) -> Option<usize> {
        let name = match self.by? {
            GroupBy::Workload => Some(self.workloads.name(workload)),
            GroupBy::Model => model(event).map(Arc::from),
            GroupBy::Tool => event.tool_call.as_ref().map(|call| call.name.as_str().into()),
            GroupBy::Session => event.session.clone(),
        };
        Some(self.groups.number(&name?))
    }

    fn count_rule(&mut self, event: &Event) {
        let verdict = event.decision.verdict;
        let rule = event.decision.rule.as_ref().map(RuleId::as_str);
        let number = rule.map(|rule| self.rules.number(rule));
        let at = match (verdict, event.kind) {
            (Verdict::WouldDeny, _) => 3,
            (Verdict::Deny, Kind::ToolCall) => 0,
            (Verdict::Deny, Kind::Request | Kind::Response) => 1,
            (Verdict::Deny, Kind::Connection) => 2,
            _ => return,
        };
        let number = number.unwrap_or_else(|| self.rules.number(event.decision.rule_id()));
        if let Some(count) = entry(&mut self.rule_rows, number).and_then(|row| row.get_mut(at)) {
            *count = count.saturating_add(event.count);
        }
        if rule.is_some_and(|rule| rule.ends_with("/limits")) {
            let reason = self.reasons.number(event.decision.why());
            add(self.limits.entry((number, reason)).or_default(), event.count);
        }
    }

    fn count_call(&mut self, event: &Event) {
        let Some(call) = event.tool_call.as_ref().filter(|_| event.kind == Kind::ToolCall) else { return };
        let tool = self.tools.number(&call.name);
        if let Some((calls, denied)) = entry(&mut self.tool_rows, tool) {
            *calls = calls.saturating_add(event.count);
            *denied = denied.saturating_add(if event.decision.denies() { event.count } else { 0 });
        }
        if let Some(exchange) = event.exchange
            && (self.open.len() < MOST_OPEN || self.open.contains_key(&exchange))
        {
            let tools = self.open.entry(exchange).or_default();
            if !tools.contains(&tool) && tools.len() < MOST_TOOLS {
                tools.push(tool);
            }
        }
        let hash = call.input_sha256.as_deref().and_then(|hex| u64::from_str_radix(hex.get(..16)?, 16).ok());
        if let (Some(session), Some(hash)) = (&event.session, hash) {
            let key = (self.sessions.number(session), tool, hash);
            if self.repeated.len() < MOST_CALLS || self.repeated.contains_key(&key) {
                add(self.repeated.entry(key).or_default(), event.count);
            }
        }
    }

    /// Adds the tokens of an answer: to its group, or by tool to each that it called.
    fn count_tokens(&mut self, event: &Event, group: Option<usize>) {
        if event.kind != Kind::Response {
            return;
        }
        let tools = event.exchange.and_then(|exchange| self.open.remove(&exchange)).unwrap_or_default();
        let Some(usage) = &event.usage else { return };
        self.total.tokens.add(usage);
        let model = self.models.number(model(event).unwrap_or("unknown"));
        if let Some(tokens) = entry(&mut self.tokens, model) {
            tokens.add(usage);
        }
        let called = tools.iter().map(|tool| self.groups.number(&self.tools.name(*tool)));
        let groups: Vec<usize> =
            if self.by == Some(GroupBy::Tool) { called.collect() } else { group.into_iter().collect() };
        for group in groups {
            if let Some(counts) = entry(&mut self.counts, group) {
                counts.tokens.add(usage);
            }
            self.group_tokens.entry((group, model)).or_default().add(usage);
        }
    }

    fn count_findings(&mut self, event: &Event) {
        for finding in &event.dlp {
            let key = (self.words.number(&finding.detector), self.words.number(&finding.action));
            add(self.findings.entry(key).or_default(), event.count);
        }
    }

    /// What was counted; the cost by these prices, and which rules of these policies never fired.
    pub fn report(mut self, prices: Option<&PriceList>, policies: Option<&[Document]>) -> StatsReport {
        let without_price = self.price(prices);
        let days = self.times.map_or(0, |(from, to)| (to.unix_millis() - from.unix_millis()) / 86_400_000);
        let signals = self
            .times
            .filter(|_| days >= LEAST_DAYS)
            .map(|times| self.signals.report(times, &self.workloads));
        let never_fired = policies.map(|policies| {
            let mut rules: Vec<String> = policies.iter().flat_map(rules_of).collect();
            rules.retain(|rule| !self.rules.has(rule));
            rules
        });
        StatsReport {
            events: self.events,
            from: self.times.map(|(from, _)| from),
            to: self.times.map(|(_, to)| to),
            groups: self.group_rows(),
            tools: self.tools(),
            denied: self.denied(),
            limits: self.limits(),
            findings: self.findings(),
            repeated: self.repeated(),
            tool_outputs: self.outputs.rows(),
            total: self.total,
            never_fired,
            without_price,
            signals,
        }
    }

    /// Sets what was spent. Returns the models without a price.
    fn price(&mut self, prices: Option<&PriceList>) -> Vec<Arc<str>> {
        let Some(prices) = prices else { return Vec::new() };
        let (mut sum, mut without) = (0.0, Vec::new());
        for (number, tokens) in self.tokens.iter().enumerate() {
            let name = self.models.name(number);
            match prices.cost(&name, tokens) {
                Some(cost) => sum += cost,
                None => without.push(name),
            }
        }
        self.total.cost = Some(prices.sum(sum));
        // In one order, so that equal events give equal sums.
        let mut parts: Vec<_> = self.group_tokens.iter().collect();
        parts.sort_unstable_by_key(|(key, _)| **key);
        let mut sums: Vec<Option<f64>> = Vec::new();
        for ((group, model), tokens) in parts {
            if let (Some(cost), Some(sum)) =
                (prices.cost(&self.models.name(*model), tokens), entry(&mut sums, *group))
            {
                *sum = Some(sum.unwrap_or_default() + cost);
            }
        }
        for (counts, sum) in self.counts.iter_mut().zip(sums) {
            counts.cost = sum.map(|sum| prices.sum(sum));
        }
        without
    }

    fn group_rows(&mut self) -> Vec<GroupRow> {
        let counts = std::mem::take(&mut self.counts).into_iter().enumerate();
        let rows = counts.map(|(number, counts)| GroupRow { name: self.groups.name(number), counts });
        let size = |row: &GroupRow| {
            let Counts { requests, tool_calls, tokens, .. } = &row.counts;
            (tokens.input.saturating_add(tokens.output), requests.saturating_add(*tool_calls))
        };
        largest(rows, |row| (size(row), Arc::clone(&row.name)))
    }

    fn tools(&self) -> Vec<ToolRow> {
        let rows = self.tool_rows.iter().enumerate();
        let rows = rows.map(|(number, (calls, denied))| ToolRow {
            tool: self.tools.name(number),
            calls: *calls,
            denied: *denied,
        });
        largest(rows, |row| (row.calls, Arc::clone(&row.tool)))
    }

    fn denied(&self) -> Vec<RuleRow> {
        let rows = self.rule_rows.iter().enumerate().filter(|(_, row)| row.iter().any(|count| *count > 0));
        let rows = rows.map(|(number, [calls, requests, connections, would_deny])| RuleRow {
            rule: self.rules.name(number),
            calls: *calls,
            requests: *requests,
            connections: *connections,
            would_deny: *would_deny,
        });
        let size = |row: &RuleRow| row.calls.saturating_add(row.requests).saturating_add(row.connections);
        largest(rows, |row| ((size(row), row.would_deny), Arc::clone(&row.rule)))
    }

    fn limits(&self) -> Vec<LimitRow> {
        let rows = self.limits.iter().map(|((rule, reason), count)| LimitRow {
            rule: self.rules.name(*rule),
            reason: self.reasons.name(*reason),
            count: *count,
        });
        largest(rows, |row| (row.count, Arc::clone(&row.rule), Arc::clone(&row.reason)))
    }

    fn findings(&self) -> Vec<FindingRow> {
        let rows = self.findings.iter().map(|((detector, action), count)| FindingRow {
            detector: self.words.name(*detector),
            action: self.words.name(*action),
            count: *count,
        });
        largest(rows, |row| (row.count, Arc::clone(&row.detector), Arc::clone(&row.action)))
    }

    fn repeated(&self) -> Vec<RepeatedCall> {
        let rows = self.repeated.iter().filter(|(_, count)| **count >= REPEATED);
        let rows = rows.map(|((session, tool, hash), count)| RepeatedCall {
            session: self.sessions.name(*session),
            tool: self.tools.name(*tool),
            input_sha256: format!("{hash:016x}"),
            count: *count,
        });
        largest(rows, |row| {
            (row.count, Arc::clone(&row.session), Arc::clone(&row.tool), row.input_sha256.clone())
        })
    }
}

/// Adds a count, which a line may have at will.
fn add(so_far: &mut u64, count: u64) {
    *so_far = so_far.saturating_add(count);
}

/// The model that answered, else the one that was asked.
fn model(event: &Event) -> Option<&str> {
    let provider = event.provider.as_ref()?;
    provider.response_model.as_deref().or(provider.model.as_deref())
}

/// The largest rows by a key, in one order.
fn largest<T, K: Ord>(rows: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut rows: Vec<T> = rows.collect();
    rows.sort_by_cached_key(|row| std::cmp::Reverse(key(row)));
    rows.truncate(MOST_ROWS);
    rows
}

/// The ids of the rules of a policy that have a name.
fn rules_of(document: &Document) -> Vec<String> {
    let spec = serde_json::to_value(&document.spec).unwrap_or_default();
    let named =
        ["destinations", "tools", "rules"].into_iter().filter_map(|section| spec.get(section)?.as_array());
    let names = named.flatten().filter_map(|rule| rule.get("name")?.as_str());
    names.map(|name| format!("{}/{name}", document.id())).collect()
}

#[cfg(test)]
mod tests;
