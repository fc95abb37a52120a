//! The decision by index and in two phases against a slow one that reads like the design: every rule, one by one.

use postern::call::{CallVerdict, Input, Tool, ToolCall};
use postern::policy::Policy;
use postern::policy::explain::Applies;
use proptest::prelude::*;

use super::{audit, cluster, complete, namespaced, policy, started};

#[derive(Debug, Clone)]
struct Rule {
    cluster: bool,
    audits: bool,
    pattern: &'static str,
    action: &'static str,
    /// Whether the command must contain this; none without a condition.
    contains: Option<&'static str>,
}

fn rule() -> impl Strategy<Value = Rule> {
    let pattern = prop::sample::select(vec!["Glob", "glob", "G*", "*b", "*", "Grep"]);
    let action = prop::sample::select(vec!["Deny", "Allow", "Allow", "Audit"]);
    let contains = prop::sample::select(vec![None, None, Some("x"), Some("y")]);
    (any::<bool>(), prop::bool::weighted(0.2), pattern, action, contains).prop_map(
        |(cluster, audits, pattern, action, contains)| Rule { cluster, audits, pattern, action, contains },
    )
}

impl Rule {
    fn covers(&self, name: &str) -> bool {
        let fold = |text: &str| if self.action == "Allow" { text.to_owned() } else { text.to_lowercase() };
        let pattern = fold(self.pattern).replace('*', ".*");
        regex::Regex::new(&format!("^{pattern}$")).unwrap().is_match(&fold(name))
    }

    fn holds(&self, name: &str, command: &str) -> bool {
        self.covers(name) && self.contains.is_none_or(|text| command.contains(text))
    }
}

/// Section 5.2 word for word.
fn slow(rules: &[Rule], closed: bool, name: &str, command: &str) -> &'static str {
    let holds = |action: &str| {
        rules.iter().any(|rule| !rule.audits && rule.action == action && rule.holds(name, command))
    };
    if holds("Deny") || (!holds("Allow") && closed) { "Deny" } else { "Allow" }
}

/// What is explained of a call agrees with what is decided about it.
fn explained(policy: &Policy, name: &str, command: &str, verdict: &CallVerdict) -> Result<(), TestCaseError> {
    let input = serde_json::json!({ "command": command });
    let tool = Tool::named(name);
    let explanation =
        policy.explain_call(&ToolCall { tool, input: Input::Json(&input), facts: None, derived: &[] });
    prop_assert_eq!(explanation.decision.verdict, verdict.decision.verdict.as_str());
    prop_assert_eq!(&explanation.decision.rule, &verdict.decision.rule.as_ref().map(ToString::to_string));
    let applies = |action: &str| {
        let said =
            explanation.rules.iter().filter(|rule| rule.enforcement == "Enforce" && rule.action == action);
        said.into_iter().any(|rule| rule.applies == Applies::Yes)
    };
    prop_assert!(!applies("Deny") || explanation.decision.verdict == "Deny");
    prop_assert!(
        applies("Deny")
            || applies("Allow")
            || explanation.decision.rule.as_deref() == Some("agents/default/toolDefault")
    );
    let decides = explanation.rules.iter().filter(|rule| rule.why.iter().any(|why| why == "it decides"));
    let decides: Vec<&str> = decides.map(|rule| rule.rule.as_str()).collect();
    let by_rule = explanation.decision.rule.as_deref().filter(|rule| !rule.ends_with("/toolDefault"));
    prop_assert_eq!(decides, by_rule.into_iter().collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #[test]
    fn both_phases_decide_as_a_look_at_every_rule_does(
        rules in prop::collection::vec(rule(), 0..7),
        closed in any::<bool>(),
        name in prop::sample::select(vec!["Glob", "glob", "GLOB", "Grep", "Grob", "other"]),
        command in prop::sample::select(vec!["", "x", "y", "xy"]),
    ) {
        let default = if closed { "Deny" } else { "Allow" };
        let mut documents = vec![namespaced("default", &format!("toolDefault: {default}"))];
        for (number, rule) in rules.iter().enumerate() {
            let when = rule.contains.map(|text| {
                format!(", when: {{param: command, operator: Contains, values: [{text}]}}")
            });
            let when = when.unwrap_or_default();
            let spec = format!("tools: [{{name: r, tools: ['{}'], action: {}{when}}}]", rule.pattern, rule.action);
            let name = format!("p{number}");
            let document = if rule.cluster { cluster(&name, &spec) } else { namespaced(&name, &spec) };
            documents.push(if rule.audits { audit(&document) } else { document });
        }
        let policy = policy(&documents);
        let expected = slow(&rules, closed, name, command);
        let verdict = complete(&policy, name, &serde_json::json!({"command": command}));
        prop_assert_eq!(verdict.decision.verdict.as_str(), expected);
        explained(&policy, name, command, &verdict)?;
        let start = started(&policy, name);
        prop_assert!(!start.starts_with("starts") || expected == "Allow", "{}", start);
        prop_assert!(!start.starts_with("stops") || expected == "Deny", "{}", start);
        prop_assert!(start != "observed" || expected == "Allow", "{}", start);
    }
}
