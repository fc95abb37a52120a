//! What rules say of a request, a tool call or an answer.

use super::written::RuleAction;
use super::{CallReads, FactRule, Place};
use crate::call::{Advice, FactsDeny, Judgement};
use crate::decision::{Decision, Enforcement, RuleId, Verdict};
use crate::policy::Policy;
use crate::policy::cel::{Facts, Failure};
use crate::policy::outcome::Outcome;
use crate::policy::scope::Mode;

/// What rules say of a request, a call or an answer.
#[derive(Debug)]
pub struct RulesVerdict {
    pub judgement: Judgement,
    /// The records of Audit rules.
    pub audits: Vec<Decision>,
    /// Rules that have no value for it, and why.
    pub failures: Vec<(RuleId, Failure)>,
}

/// What rules say of a call.
#[derive(Debug)]
pub enum CallRuling {
    /// A rule asks for what only the whole call tells; whether one that may deny it does.
    NeedsInput { denies: bool },
    /// They say this, with the advice for the agent where they deny it.
    Decided(RulesVerdict, Advice),
}

/// What is known of a call.
#[derive(Debug, Clone, Copy)]
pub struct KnownCall {
    pub kinds: bool,
    pub input: bool,
}

impl Policy {
    /// Whether a rule is asked at a place at all.
    pub fn has_rules_at(&self, place: Place) -> bool {
        self.sections.rules.0.iter().any(|rule| rule.places.has(place))
    }

    /// Whether a rule is asked anywhere.
    pub fn has_rules(&self) -> bool {
        !self.sections.rules.0.is_empty()
    }

    /// Whether rules could deny calls.
    pub fn facts_deny_calls(&self) -> FactsDeny {
        let denying = self.sections.rules.0.iter().filter(|rule| self.denies_calls(rule));
        let by_call = denying.map(|rule| rule.reads.any);
        match by_call.reduce(|one, other| one || other) {
            None => FactsDeny::Never,
            Some(false) => FactsDeny::Alike,
            Some(true) => FactsDeny::ByCall,
        }
    }

    fn denies_calls(&self, rule: &FactRule) -> bool {
        let is_enforced = self.mode != Mode::AuditOnly && !rule.audit;
        rule.action == RuleAction::Deny && is_enforced && rule.places.has(Place::Call)
    }

    /// Asks the rules of a place; each may cost `most_cost`. A Deny rule without a value denies.
    pub fn judge_facts(&self, place: Place, facts: &Facts<'_>, most_cost: u64) -> RulesVerdict {
        let rules = self.sections.rules.0.iter().filter(|rule| rule.places.has(place));
        self.ask(rules.collect(), facts, most_cost)
    }

    /// Asks about a call as far as it is known.
    pub fn judge_call(&self, facts: &Facts<'_>, known: KnownCall, most_cost: u64) -> CallRuling {
        let rules = self.sections.rules.0.iter().filter(|rule| rule.places.has(Place::Call));
        let waits = |rule: &&FactRule| {
            let CallReads { kinds, input, .. } = rule.reads;
            (kinds && !known.kinds) || (input && !known.input)
        };
        let (waiting, ready): (Vec<&FactRule>, Vec<&FactRule>) = rules.partition(waits);
        let verdict = self.ask(ready, facts, most_cost);
        if !waiting.is_empty() && !verdict.judgement.denies() {
            return CallRuling::NeedsInput { denies: waiting.iter().any(|rule| self.denies_calls(rule)) };
        }
        let by_input = self
            .sections
            .rules
            .0
            .iter()
            .any(|rule| rule.reads.input && Some(&rule.id) == verdict.judgement.decision.rule.as_ref());
        CallRuling::Decided(verdict, if by_input { Advice::NotThisUse } else { Advice::NotAvailable })
    }

    fn ask(&self, rules: Vec<&FactRule>, facts: &Facts<'_>, most_cost: u64) -> RulesVerdict {
        let values = rules.into_iter().map(|rule| (rule, rule.expression.holds(facts, most_cost)));
        self.ruled(&values.collect::<Vec<_>>())
    }

    /// What rules say that have these values.
    pub(super) fn ruled(&self, asked: &[(&FactRule, Result<bool, Failure>)]) -> RulesVerdict {
        let judgement = self.weigh(|scope| {
            let mut denials =
                asked.iter().filter(|(rule, _)| rule.action == RuleAction::Deny && scope.shows(rule.audit));
            let denial = denials.find_map(|(rule, held)| match held {
                Ok(holds) => holds.then(|| rule.decision(Verdict::Deny)),
                Err(failure) => Some(rule.failed(*failure)),
            });
            denial.map_or(Outcome::Allowed(None), Outcome::Denied)
        });
        let recording =
            asked.iter().filter(|(rule, held)| rule.action == RuleAction::Audit && *held == Ok(true));
        let audits = recording.map(|(rule, _)| rule.decision(Verdict::Audit)).collect();
        let failures = asked.iter().filter_map(|(rule, held)| Some((rule.id.clone(), held.err()?))).collect();
        RulesVerdict { judgement, audits, failures }
    }
}

impl FactRule {
    fn decision(&self, verdict: Verdict) -> Decision {
        Decision::by(self.id.clone(), verdict, self.reason.clone()).under(Enforcement::of(self.audit))
    }

    /// The denial by a rule without a value.
    fn failed(&self, failure: Failure) -> Decision {
        let reason = format!("Rule {} cannot be evaluated: {failure}", self.id);
        Decision::builtin("evaluation-error", reason).under(Enforcement::of(self.audit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document::parse;

    fn policy(rules: &str, audit: bool) -> Policy {
        let enforcement = if audit { "Audit" } else { "Enforce" };
        let text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p}}\nspec:\n  \
             enforcement: {enforcement}\n  rules:\n{rules}"
        );
        let documents = parse("p.yaml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
        Policy::compile(&documents, &Default::default()).unwrap()
    }

    fn problems(rules: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n{rules}"
        );
        parse("p.yaml", &text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    const POSTS: &str =
        "  - {name: posts, when: 'event.http.method == \"POST\"', action: Deny, reason: No posts}\n";

    fn asked(policy: &Policy, method: &str) -> RulesVerdict {
        policy.judge_facts(Place::Request, &Facts { method: Some(method), ..Facts::default() }, u64::MAX)
    }

    #[test]
    fn a_deny_rule_that_holds_denies_with_its_reason() {
        let decision = asked(&policy(POSTS, false), "POST").judgement.decision;
        assert_eq!(
            (decision.verdict, decision.rule_id(), decision.why()),
            (Verdict::Deny, "default/p/posts", "No posts")
        );
        assert!(!asked(&policy(POSTS, false), "GET").judgement.denies());
    }

    #[test]
    fn an_audit_policy_denies_nothing_and_says_what_it_would() {
        let decision = asked(&policy(POSTS, true), "POST").judgement.decision;
        assert_eq!((decision.verdict, decision.rule_id()), (Verdict::WouldDeny, "default/p/posts"));
    }

    #[test]
    fn an_audit_rule_records_and_a_failing_one_denies_nothing() {
        let rules = "  - {name: seen, when: event.http.method == 'POST', action: Audit}\n  \
                     - {name: odd, when: 1 / event.destination.port == 1, action: Audit}\n";
        let verdict = asked(&policy(rules, false), "POST");
        assert!(!verdict.judgement.denies());
        assert_eq!(verdict.audits[0].rule_id(), "default/p/seen");
        assert_eq!((verdict.audits.len(), verdict.failures.len()), (1, 1));
    }

    #[test]
    fn a_deny_rule_without_a_value_denies() {
        let rules = "  - {name: odd, when: 1 / event.destination.port == 1, action: Deny}\n";
        let verdict = asked(&policy(rules, false), "GET");
        let decision = &verdict.judgement.decision;
        assert_eq!(
            (decision.verdict, decision.rule_id()),
            (Verdict::Deny, "postern/builtin/evaluation-error")
        );
        assert_eq!(decision.why(), "Rule default/p/odd cannot be evaluated: a division by zero");
    }

    #[test]
    fn a_rule_that_costs_more_than_the_gateway_allows_denies() {
        let verdict = policy(POSTS, false).judge_facts(Place::Request, &Facts::default(), 1);
        assert_eq!(verdict.judgement.decision.rule_id(), "postern/builtin/evaluation-error");
    }

    #[test]
    fn mistakes_have_their_places_in_the_file() {
        assert_eq!(
            problems("  - {name: a, when: event.foo == 1, action: Deny}\n"),
            [
                "p.yaml:6:27: spec.rules[0].when: line 1, column 7 (offset 6): `event` has no field \"foo\"; there are kind, \
              direction, session, trace, time, workload, credential, destination, http, provider, conversation, payload, \
              usage, toolCall, dlp, spent"
            ]
        );
        let block = "  - name: a\n    action: Deny\n    when: |\n      event.kind == 'a' ||\n        event.http.methd == 'b'\n";
        assert!(
            problems(block)[0].starts_with("p.yaml:10:20: spec.rules[0].when: line 2, column 14"),
            "{:?}",
            problems(block)
        );
        assert!(
            problems("  - {name: a, when: \"event.knd == 'a'\", action: Deny}\n")[0]
                .starts_with("p.yaml:6:28:")
        );
    }

    #[test]
    fn a_rule_is_asked_where_its_kind_and_direction_may_hold() {
        let asked = |when: &str, action: &str| {
            let policy = policy(&format!("  - {{name: a, when: \"{when}\", action: {action}}}\n"), false);
            policy.sections.rules.0[0].places.words().join(" ")
        };
        for (when, places) in [
            ("event.http.method == 'GET'", "Request ToolCall Response"),
            ("event.direction == 'Inbound' && event.http.method == 'GET'", "ToolCall Response"),
            ("event.kind == 'ToolCall'", "ToolCall"),
            ("event.kind in ['Request', 'Response']", "Request Response"),
            ("!(event.kind == 'ToolCall') && size(event.dlp) > 0", "Request Response"),
        ] {
            assert_eq!(asked(when, "Deny"), places, "{when}");
        }
        assert_eq!(asked("event.usage.outputTokens > 9", "Audit"), "ResponseEnd");
        assert_eq!(asked("has(event.provider.responseModel)", "Audit"), "ResponseEnd");
    }

    #[test]
    fn a_rule_that_holds_nowhere_or_denies_too_late_is_refused() {
        for (when, action, part) in [
            ("event.kind == 'Conection'", "Deny", "never holds"),
            ("event.kind == 'ToolCall' && event.direction == 'Outbound'", "Audit", "never holds"),
            ("event.kind == 'ToolCall' && event.usage.inputTokens > 0", "Audit", "never holds"),
            ("event.usage.inputTokens > 9", "Deny", "(offset 12): event.usage.inputTokens is known once"),
            ("true || has(event.provider.responseModel)", "Deny", "nothing is left to deny"),
        ] {
            let said = problems(&format!("  - {{name: a, when: \"{when}\", action: {action}}}\n")).join("; ");
            assert!(said.contains(part), "{when}: {said}");
        }
        let many: String =
            (0..65).map(|n| format!("  - {{name: r{n}, when: 'true', action: Deny}}\n")).collect();
        assert!(problems(&many)[0].contains("at most 64"));
        assert_eq!(problems("  - {name: a}\n").len(), 2);
    }

    #[test]
    fn a_call_is_held_for_a_rule_that_reads_its_input_and_denied_at_its_start_by_one_that_does_not() {
        const NOTHING: KnownCall = KnownCall { kinds: false, input: false };
        const ALL: KnownCall = KnownCall { kinds: true, input: true };
        let rule = |when: &str| format!("  - {{name: a, when: \"{when}\", action: Deny}}\n");
        let facts = Facts {
            kind: "ToolCall",
            call_name: Some("Bash"),
            call_kinds: &["Shell"],
            call_input_bytes: Some(90),
            ..Facts::default()
        };
        let advised = |rules: &str, known| match policy(rules, false).judge_call(&facts, known, u64::MAX) {
            CallRuling::Decided(verdict, advice) if verdict.judgement.denies() => advice.as_str(),
            CallRuling::Decided(..) => "allowed",
            CallRuling::NeedsInput { denies: true } => "held",
            CallRuling::NeedsInput { denies: false } => "watched",
        };
        let never = Advice::NotAvailable.as_str();
        assert_eq!(advised(&rule("event.toolCall.name == 'Bash'"), NOTHING), never);
        assert_eq!(advised(&rule("event.toolCall.name == 'Read'"), NOTHING), "allowed");
        assert_eq!(advised(&rule("event.kind == 'Request'"), NOTHING), "allowed");
        let (long, of_kind) = ("event.toolCall.inputBytes > 80", "'Shell' in event.toolCall.kinds");
        assert_eq!(advised(&rule(long), NOTHING), "held");
        assert_eq!(advised(&rule("size(event.dlp) > 0"), NOTHING), "held");
        assert_eq!(advised(&rule(of_kind), NOTHING), "held");
        assert_eq!(advised(&rule(of_kind), KnownCall { kinds: true, input: false }), never);
        assert_eq!(advised(&rule(long), ALL), Advice::NotThisUse.as_str());
        assert_eq!(advised(&rule("size(event.dlp) > 0"), ALL), "allowed");
        let both = rule(long) + "  - {name: b, when: event.toolCall.name == 'Bash', action: Deny}\n";
        assert_eq!(advised(&both, NOTHING), never);
        assert_eq!(advised(&rule(long).replace("Deny", "Audit"), NOTHING), "watched");
    }

    #[test]
    fn rules_deny_all_calls_alike_or_by_what_they_are() {
        let denies = |when: &str, action: &str, audit| {
            let rules = format!("  - {{name: a, when: \"{when}\", action: {action}}}\n");
            policy(&rules, audit).facts_deny_calls()
        };
        let hours = "event.time.getHours() < 7";
        assert_eq!(denies(hours, "Deny", false), FactsDeny::Alike);
        assert_eq!(denies("size(event.dlp) > 0", "Deny", false), FactsDeny::ByCall);
        for (when, action, audit) in
            [(hours, "Deny", true), (hours, "Audit", false), ("event.kind == 'Request'", "Deny", false)]
        {
            assert_eq!(denies(when, action, audit), FactsDeny::Never);
        }
    }
}
