//! What the policies of a pod name, as far as its agent may know it: no condition, pattern, address range or credential.

use serde_json::{Map, Value, json};

use crate::policy::Policy;

/// The fields that are told of each entry of a section. What is not listed is not told.
const TOLD: [(&str, &[&str]); 3] = [
    ("destinations", &["rule", "action", "hosts", "ports", "endpoints"]),
    ("tools", &["rule", "action", "kind", "tools", "reason"]),
    ("limits", &["name", "most", "rule"]),
];

/// Lists hosts with their paths, tools, and limits, each with its rule. Beside enforced policies, what Audit policies
/// name is left out: it decides nothing.
pub fn permissions(policy: &Policy) -> Value {
    // Of plain data no serialisation fails.
    let listed = serde_json::to_value(policy.listing()).unwrap_or_default();
    let is_told = |entry: &&Value| {
        let is_aside = entry["enforcement"] == "Audit" && listed["enforcement"] != "Audit";
        !is_aside && entry.get("cidrs").is_none()
    };
    let mut told = Map::new();
    told.insert("enforcement".to_owned(), listed["enforcement"].clone());
    for (section, fields) in TOLD {
        let entries = listed[section].as_array().into_iter().flatten().filter(is_told);
        told.insert(section.to_owned(), entries.map(|entry| pick(entry, fields)).collect());
    }
    told.insert("toolDefault".to_owned(), json!(listed["toolDefault"]["action"]));
    Value::Object(told)
}

fn pick(entry: &Value, fields: &[&str]) -> Value {
    let fields = fields.iter().filter_map(|field| Some(((*field).to_owned(), entry.get(*field)?.clone())));
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::testing::policy;

    const SPEC: &str = "destinations:
- {name: git, hosts: [github.com], action: Inspect, endpoints: [{methods: [GET], path: /acme/**}]}
- {name: net, cidrs: [192.0.2.0/24], ports: [5432], action: Tunnel}
tools: [{name: no, kind: Shell, action: Deny, reason: Not here, when: {param: command, operator: Contains, values: [canary]}}]
hostedTools: {action: Strip, allow: [canary_type]}
credentials: [{name: canary-key, hosts: [github.com], fromEnv: CANARY, placeholder: canary-placeholder}]
limits: {tokensPerDay: 5}";

    #[test]
    fn hosts_paths_tools_and_limits_are_told() {
        let told = permissions(&policy(&[SPEC]));
        assert_eq!(told["enforcement"], "Enforce");
        let destinations = told["destinations"].as_array().unwrap();
        assert_eq!(destinations.len(), 1, "no address range: {told}");
        assert_eq!(destinations[0]["hosts"], json!(["github.com"]));
        assert_eq!(destinations[0]["endpoints"], json!(["GET /acme/**"]));
        assert_eq!(told["tools"][0]["kind"], "Shell");
        assert_eq!(told["tools"][0]["reason"], "Not here");
        assert_eq!(told["limits"][0]["most"], 5);
        assert_eq!(told["toolDefault"], "Allow");
    }

    #[test]
    fn conditions_credentials_and_lists_of_what_is_let_through_are_not_told() {
        let told = permissions(&policy(&[SPEC])).to_string();
        assert!(!told.contains("canary") && !told.contains("CANARY") && !told.contains("192.0.2"), "{told}");
    }

    #[test]
    fn what_only_records_is_told_where_nothing_is_enforced() {
        let audit = "enforcement: Audit\ntools: [{name: aside, tools: [x], action: Deny}]";
        assert_eq!(permissions(&policy(&[SPEC, audit]))["tools"].as_array().unwrap().len(), 1);
        assert_eq!(permissions(&policy(&[audit]))["tools"].as_array().unwrap().len(), 1);
    }
}
