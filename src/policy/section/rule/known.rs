//! Rules over facts of which some are not known: those of past events, and of calls and requests that nobody sent.

use super::written::RuleAction;
use super::{FactRule, Place, RulesVerdict};
use crate::decision::{Enforcement, RuleId};
use crate::policy::Policy;
use crate::policy::cel::{Facts, Failure, Field, MOST_COST};
use crate::policy::explain::{Applies, RuleExplanation};
use crate::policy::scope::Mode;

/// A rule that could deny and reads what is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule} reads event.{field}, which is not known here")]
pub struct UnknownFact {
    pub rule: RuleId,
    /// Its path below `event.`
    pub field: &'static str,
}

impl Policy {
    /// Asks the rules of a place. Fields whose paths begin with one of `unknown` are not known: a denial by the other
    /// rules stands whatever they are.
    ///
    /// # Errors
    /// No rule denies by what is known, and one could that reads an unknown field.
    pub fn judge_known(
        &self,
        place: Place,
        facts: &Facts<'_>,
        unknown: &[&str],
    ) -> Result<RulesVerdict, UnknownFact> {
        let rules = self.sections.rules.0.iter().filter(|rule| rule.places.has(place));
        let (mut asked, mut blind) = (Vec::new(), Vec::new());
        for rule in rules {
            match rule.value(facts, unknown) {
                Value::Known(value) => asked.push((rule, value)),
                Value::DependsOn(field) => blind.push((rule, field)),
            }
        }
        let verdict = self.ruled(&asked);
        let decides = &verdict.judgement.decision;
        if decides.denies() || decides.would_deny() {
            return Ok(verdict);
        }
        let could_deny = |rule: &FactRule| {
            rule.action == RuleAction::Deny && (self.mode == Mode::AuditOnly || !rule.audit)
        };
        let first = blind.into_iter().find(|(rule, _)| could_deny(rule));
        first.map_or(Ok(verdict), |(rule, field)| Err(UnknownFact { rule: rule.id.clone(), field }))
    }

    /// Says of each rule whether it holds at a place, as far as that is known.
    pub fn explain_facts(&self, place: Place, facts: &Facts<'_>, unknown: &[&str]) -> Vec<RuleExplanation> {
        let explained = self.sections.rules.0.iter().map(|rule| {
            let (applies, why) = rule.said_at(place, facts, unknown);
            RuleExplanation {
                rule: rule.id.to_string(),
                action: rule.action.as_str(),
                enforcement: Enforcement::of(rule.audit).as_str(),
                applies,
                why: vec![format!("{why}: {}", rule.source.trim())],
                tests: Vec::new(),
            }
        });
        explained.collect()
    }
}

/// The value of a rule's expression.
enum Value {
    Known(Result<bool, Failure>),
    /// This field decides, and is not known.
    DependsOn(&'static str),
}

impl FactRule {
    fn value(&self, facts: &Facts<'_>, unknown: &[&str]) -> Value {
        let is_known = |field: &Field| !unknown.iter().any(|prefix| field.path.starts_with(prefix));
        match (self.expression.reads(unknown), self.expression.settled_by(facts, is_known)) {
            (None, _) => Value::Known(self.expression.holds(facts, MOST_COST)),
            (Some(_), Some(value)) => Value::Known(Ok(value)),
            (Some((field, _)), None) => Value::DependsOn(field.path),
        }
    }

    fn said_at(&self, place: Place, facts: &Facts<'_>, unknown: &[&str]) -> (Applies, String) {
        if !self.places.has(place) {
            return (Applies::No, format!("it is asked about each {} alone", self.places.words().join(", ")));
        }
        match self.value(facts, unknown) {
            Value::Known(Ok(true)) => (Applies::Yes, "its expression holds".to_owned()),
            Value::Known(Ok(false)) => (Applies::No, "its expression does not hold".to_owned()),
            Value::Known(Err(failure)) => {
                (Applies::Yes, format!("its expression cannot be evaluated ({failure})"))
            }
            Value::DependsOn(field) => {
                (Applies::Unknown, format!("it reads event.{field}, which is not known here"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document::parse;

    fn policy(rules: &str) -> Policy {
        let text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n{rules}"
        );
        let documents = parse("p.yaml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
        Policy::compile(&documents, &Default::default()).unwrap()
    }

    const RULES: &str = "  - {name: spent, when: event.spent.tokensToday > 9, action: Deny}\n  \
                         - {name: posts, when: event.http.method == 'POST', action: Deny}\n";

    fn facts(method: &str) -> Facts<'_> {
        Facts { method: Some(method), ..Facts::default() }
    }

    #[test]
    fn a_denial_by_what_is_known_stands_and_else_the_unknown_is_said() {
        let policy = policy(RULES);
        let asked = |method| policy.judge_known(Place::Request, &facts(method), &["spent."]);
        assert_eq!(asked("POST").unwrap().judgement.decision.rule_id(), "default/p/posts");
        let unknown = asked("GET").unwrap_err().to_string();
        assert_eq!(unknown, "default/p/spent reads event.spent.tokensToday, which is not known here");
    }

    #[test]
    fn an_unknown_fact_that_only_a_recording_rule_reads_keeps_nothing_from_being_decided() {
        let policy = policy("  - {name: spent, when: event.spent.tokensToday > 9, action: Audit}\n");
        assert!(!policy.judge_known(Place::Request, &facts("GET"), &["spent."]).unwrap().judgement.denies());
    }

    #[test]
    fn what_is_known_settles_a_rule_that_reads_what_is_not() {
        let policy = policy(
            "  - {name: late, when: event.http.method == 'POST' && event.spent.tokensToday > 9, action: Deny}\n",
        );
        let asked = |method| policy.judge_known(Place::Request, &facts(method), &["spent."]);
        assert!(!asked("GET").unwrap().judgement.denies());
        assert!(asked("POST").is_err());
    }

    #[test]
    fn each_rule_says_whether_it_holds() {
        let policy = policy(RULES);
        let said = |place| {
            let explained = policy.explain_facts(place, &facts("POST"), &["spent."]);
            explained.iter().map(|rule| (rule.applies, rule.why.join("; "))).collect::<Vec<_>>()
        };
        let (unknown, holds) =
            ("it reads event.spent.tokensToday, which is not known here", "its expression holds");
        assert_eq!(
            said(Place::Request),
            [
                (Applies::Unknown, format!("{unknown}: event.spent.tokensToday > 9")),
                (Applies::Yes, format!("{holds}: event.http.method == 'POST'")),
            ]
        );
        assert!(said(Place::End).iter().all(|(applies, _)| *applies == Applies::No));
    }
}
