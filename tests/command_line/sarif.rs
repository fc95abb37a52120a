//! `postern ledger sarif`: denials for what shows the results of code scanners.

use serde_json::{Value, json};

use super::{Place, Said};

const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  tools:
    - {name: no-rm, tools: [Bash], action: Deny}
";

fn denied(number: u64, tool: &str) -> Value {
    json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": "2026-11-22T00:00:00.000Z", "sequence": number, "count": 1, "kind": "ToolCall", "direction": "Inbound",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "toolCall": {"name": tool, "inputBytes": 2},
        "decision": {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"},
    })
}

fn lines(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|event| format!("{event}\n")).collect()
}

#[track_caller]
fn results(said: &Said) -> Vec<Value> {
    assert_eq!(said.code, Some(0), "{said:?}");
    let log = said.json();
    assert_eq!(log["version"], "2.1.0");
    log["runs"][0]["results"].as_array().unwrap().clone()
}

#[test]
fn denials_are_results_at_the_line_of_their_rule() {
    let place = Place::new();
    place.write("policies/coders.yaml", POLICY);
    place.write("events/1.jsonl", &lines([denied(1, "Bash"), denied(2, "Read")]));
    place.write("events/2.jsonl", &lines([denied(3, "Bash")]));
    let place_of =
        |result: &Value| result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();

    let plain = results(&place.run(&["ledger", "sarif", "--ledger", "events"]));
    assert_eq!(plain.len(), 3);
    assert_eq!(place_of(&plain[0]), "postern/agents/coders.yaml");

    let absolute = place.path().canonicalize().unwrap().join("policies");
    for policy in ["policies", absolute.to_str().unwrap()] {
        let grouped =
            results(&place.run(&["ledger", "sarif", "--ledger", "events", "--group", "--policy", policy]));
        let counts: Vec<&Value> = grouped.iter().map(|result| &result["occurrenceCount"]).collect();
        assert_eq!(counts, [1, 2]);
        assert_eq!(place_of(&grouped[0]), "policies/coders.yaml");
        assert_eq!(grouped[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
    }
}

#[test]
fn a_name_in_a_report_is_a_text_wherever_it_is_shown() {
    let place = Place::new();
    let evil =
        "[click](https://evil.example) <img src=x onerror=alert(1)> `x` @you {0}\u{1b}[2J\u{202e}\n# x";
    let mut event = denied(1, evil);
    event["destination"]["host"] = json!(evil);
    event["decision"]["rule"] = json!(format!("a/b/{evil}"));
    event["decision"]["reason"] = json!(evil);
    event["session"] = json!(evil);
    place.write("events.jsonl", &lines([event]));
    let said = place.run(&["ledger", "sarif", "--ledger", "events.jsonl"]);
    assert!(!said.stdout.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{said:?}");
    let result = &results(&said)[0];
    let (text, markdown) = (&result["message"]["text"], result["message"]["markdown"].as_str().unwrap());
    assert!(!text.as_str().unwrap().contains("]("), "{text}");
    assert!(text.as_str().unwrap().starts_with(r"Tool call \[click\] (https://evil.example)"), "{text}");
    // The names are fenced by two backticks, since they have one; nothing of them stands outside.
    let outside: String = markdown.split("``").step_by(2).collect();
    assert_eq!(
        outside, "Tool call  at  was denied by : . Event `01a2008d-747b-7101-8101-000000000001`.",
        "{markdown}"
    );
    assert_eq!(result["properties"]["proxy_tool"], evil, "programs read the name as it is");
}

#[test]
fn a_report_of_nothing_is_not_made() {
    let place = Place::new();
    place.write("none.jsonl", "not an event\n{}\n");
    place.write("allowed.jsonl", &lines([denied(1, "Bash")]).replace("Deny", "Allow"));
    place.write("wrong.yaml", &POLICY.replace("tools:", "toolz:"));
    let said = place.run(&["ledger", "sarif", "--ledger", "none.jsonl"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("2 lines are no events") && said.stderr.contains("no event was read"));
    let said = place.run(&["ledger", "sarif", "--ledger", "allowed.jsonl", "--policy", "wrong.yaml"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.starts_with("wrong.yaml:5:3: spec.toolz:"), "{said:?}");
    assert_eq!(
        results(&place.run(&["ledger", "sarif", "--ledger", "allowed.jsonl"])),
        [] as [Value; 0],
        "all was allowed, and that is a report"
    );
}

#[test]
fn the_newest_25_000_are_reported_and_the_others_are_said() {
    let place = Place::new();
    place.write("events.jsonl", &lines((1..=25_002).map(|number| denied(number, "Bash"))));
    let said = place.run(&["ledger", "sarif", "--ledger", "events.jsonl"]);
    let results = results(&said);
    assert_eq!(results.len(), 25_000);
    assert_eq!(results[0]["guid"], "01a2008d-747b-7101-8101-000000000003");
    assert!(said.stderr.contains("2 older results were left out"), "{said:?}");
}
