//! The decision by index and in two phases against a slow one that reads like the design: every rule, one by one.

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
        let start = started(&policy, name);
        prop_assert!(!start.starts_with("starts") || expected == "Allow", "{}", start);
        prop_assert!(!start.starts_with("stops") || expected == "Deny", "{}", start);
        prop_assert!(start != "observed" || expected == "Allow", "{}", start);
    }
}
