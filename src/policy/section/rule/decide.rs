//! What rules say of a request.

use super::written::RuleAction;
use super::{FactRule, FactRules};
use crate::call::Judgement;
use crate::decision::{Decision, Enforcement, RuleId, Verdict};
use crate::policy::Policy;
use crate::policy::cel::{Facts, Failure};
use crate::policy::explain::{Applies, RuleExplanation};
use crate::policy::outcome::Outcome;

/// What rules say of a request.
#[derive(Debug)]
pub struct RulesVerdict {
    pub judgement: Judgement,
    /// The records of Audit rules.
    pub audits: Vec<Decision>,
    /// Rules that have no value for it, and why.
    pub failures: Vec<(RuleId, Failure)>,
}

impl Policy {
    /// Whether a rule is asked about requests at all.
    pub fn has_rules(&self) -> bool {
        !self.sections.rules.0.is_empty()
    }

    /// Asks all rules about a request; each may cost `most_cost`. A Deny rule without a value denies.
    pub fn judge_facts(&self, facts: &Facts<'_>, most_cost: u64) -> RulesVerdict {
        let FactRules(rules) = &self.sections.rules;
        let asked: Vec<(&FactRule, Result<bool, Failure>)> =
            rules.iter().map(|rule| (rule, rule.expression.holds(facts, most_cost))).collect();
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

    /// Says of each rule that it is asked once a request is there.
    pub(in crate::policy) fn fact_rules_explained(&self) -> impl Iterator<Item = RuleExplanation> {
        self.sections.rules.0.iter().map(|rule| RuleExplanation {
            rule: rule.id.to_string(),
            action: rule.action.as_str(),
            enforcement: Enforcement::of(rule.audit).as_str(),
            applies: Applies::Unknown,
            why: vec![format!(
                "asked with the facts of each request, which are not known here: {}",
                rule.source.trim()
            )],
            tests: Vec::new(),
        })
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
        policy.judge_facts(&Facts { method: Some(method), ..Facts::default() }, u64::MAX)
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
        let verdict = policy(POSTS, false).judge_facts(&Facts::default(), 1);
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
    fn what_this_version_cannot_ask_is_refused() {
        for (when, part) in [
            ("size(event.dlp) > 0", "event.dlp is not known yet"),
            ("event.kind == 'ToolCall'", "never holds for a request"),
            ("event.direction == 'Inbound' && event.http.method == 'GET'", "never holds for a request"),
            ("event.toolCall.name == 'Bash'", "event.toolCall.name is not known yet"),
        ] {
            let said = problems(&format!("  - {{name: a, when: \"{when}\", action: Deny}}\n")).join("; ");
            assert!(said.contains(part), "{when}: {said}");
        }
        let many: String =
            (0..65).map(|n| format!("  - {{name: r{n}, when: 'true', action: Deny}}\n")).collect();
        assert!(problems(&many)[0].contains("at most 64"));
        assert_eq!(problems("  - {name: a}\n").len(), 2);
    }
}
