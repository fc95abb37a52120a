//! Tests of whole reports.

use serde_json::{Value, json};

use super::*;

fn denied(number: u64, change: impl FnOnce(&mut Value)) -> Event {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": format!("2026-11-22T00:00:00.{number:03}Z"), "sequence": number, "count": 1, "kind": "ToolCall",
        "direction": "Inbound", "session": "s-1", "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
        "workload": {"namespace": "agents", "pod": "coder-0"},
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "http": {"method": "POST", "path": "/v1/messages", "version": "HTTP/2"},
        "provider": {"name": "anthropic", "api": "messages"},
        "toolCall": {"id": "toolu_1", "name": "Bash", "inputBytes": 2},
        "decision": {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"},
        "exchange": "01a2008d-747b-7101-8101-000000000900",
        "transforms": [{"name": "hosted-tool"}, {"name": "request"}],
    });
    change(&mut event);
    Event::read(event.to_string().as_bytes()).unwrap()
}

fn report(groups: bool, events: &[Event]) -> Value {
    let mut report = SarifReport::new(groups);
    events.iter().for_each(|event| report.take(event));
    serde_json::to_value(report.into_log(&RulePlaces::default())).unwrap()
}

fn results(log: &Value) -> &[Value] {
    log["runs"][0]["results"].as_array().unwrap()
}

#[test]
fn a_denial_is_a_result_with_its_rule_its_place_and_what_the_event_says() {
    let log = report(false, &[denied(1, |_| {})]);
    let mut result = results(&log)[0].clone();
    let fingerprint = result["partialFingerprints"]["postern/v1"].as_str().unwrap().to_owned();
    assert_eq!(fingerprint.len(), 64);
    assert_eq!(result["partialFingerprints"]["primaryLocationLineHash"], fingerprint + ":1");
    result["partialFingerprints"].take();
    assert_eq!(
        result,
        json!({
            "ruleId": "agents/coders/no-rm", "ruleIndex": 0, "level": "error",
            "message": {
                "text": "Tool call Bash at api.anthropic.com:443 was denied by agents/coders/no-rm: Not here. \
                         Event 01a2008d-747b-7101-8101-000000000001.",
                "markdown": "Tool call `Bash` at `api.anthropic.com:443` was denied by `agents/coders/no-rm`: `Not here`. \
                             Event `01a2008d-747b-7101-8101-000000000001`.",
            },
            "guid": "01a2008d-747b-7101-8101-000000000001",
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": "postern/agents/coders.yaml"}, "region": {"startLine": 1},
            }}],
            "partialFingerprints": null,
            "occurrenceCount": 1,
            "provenance": {
                "firstDetectionTimeUtc": "2026-11-22T00:00:00.001Z", "lastDetectionTimeUtc": "2026-11-22T00:00:00.001Z",
            },
            "properties": {
                "proxy_event_id": "01a2008d-747b-7101-8101-000000000001", "proxy_session_id": "s-1",
                "proxy_event_kind": "ToolCall", "proxy_direction": "Inbound", "proxy_payload_kind": "messages",
                "proxy_trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
                "proxy_tracking_id": "01a2008d-747b-7101-8101-000000000900",
                "proxy_transform": "hosted-tool,request", "proxy_verdict": "Deny", "proxy_host": "api.anthropic.com",
                "proxy_tool": "Bash", "proxy_workload": "agents/coder-0",
            },
        })
    );
    let rule = &log["runs"][0]["tool"]["driver"]["rules"][0];
    assert_eq!(rule["id"], "agents/coders/no-rm");
    assert_eq!(rule["properties"]["security-severity"], "8.0");
    assert_eq!(rule["properties"]["tags"], json!(["security", "egress", "ToolCall"]));
}

#[test]
fn what_was_found_where_nothing_was_denied_is_a_result_of_its_detector() {
    let found = |number, detector: &str, action: &str| {
        denied(number, |event| {
            event["kind"] = "Request".into();
            event["decision"] = json!({"verdict": "Allow"});
            event.as_object_mut().unwrap().remove("toolCall");
            let finding = |detector: &str, action: &str, location: &str| json!({"detector": detector, "kind": "Secrets", "confidence": "High", "location": location, "action": action, "at": 1, "length": 9});
            let low = json!({"detector": "low", "kind": "Secrets", "confidence": "Low", "location": "body", "action": "Audit", "at": 1, "length": 9});
            event["dlp"] = json!([
                finding(detector, "Audit", "body/a"),
                finding(detector, action, "body/b"),
                finding("jwt", "Audit", "body/c"),
                low
            ]);
        })
    };
    let log = report(true, &[found(1, "github-token", "Redact"), found(2, "github-token", "Redact")]);
    let told: Vec<[&Value; 3]> = results(&log)
        .iter()
        .map(|result| [&result["ruleId"], &result["level"], &result["occurrenceCount"]])
        .collect();
    assert_eq!(
        told,
        [["dlp/github-token", "warning"], ["dlp/jwt", "note"]]
            .map(|[rule, level]| [json!(rule), json!(level), json!(2)])
            .each_ref()
            .map(|row| row.each_ref())
    );
    assert_eq!(
        results(&log)[0]["message"]["text"],
        "Request POST /v1/messages at api.anthropic.com:443 went on without what was found by dlp/github-token, in body/b. \
         Event 01a2008d-747b-7101-8101-000000000002."
    );
    assert!(results(&log)[0].get("guid").is_none());
    let rule = &log["runs"][0]["tool"]["driver"]["rules"][0];
    assert_eq!(rule["shortDescription"]["text"], "Found by dlp/github-token");
    assert_eq!(rule["properties"]["security-severity"], "8.0");
}

#[test]
fn what_denies_nothing_is_no_result() {
    let of = |verdict: &'static str, kind: &'static str| {
        denied(1, |event| {
            event["decision"]["verdict"] = json!(verdict);
            event["kind"] = json!(kind);
        })
    };
    for (verdict, kind, levels) in [
        ("Allow", "ToolCall", &[][..]),
        ("Audit", "Policy", &[]),
        ("Later", "Later", &[]),
        ("Deny", "Lifecycle", &[]),
        ("WouldDeny", "Policy", &["warning"]),
        ("Deny", "Later", &["error"]),
    ] {
        let log = report(false, &[of(verdict, kind)]);
        let found: Vec<&Value> = results(&log).iter().map(|result| &result["level"]).collect();
        assert_eq!(found, levels, "{verdict} {kind}");
    }
}

#[test]
fn the_same_denial_twice_has_one_fingerprint_and_another_rule_host_or_tool_a_different_one() {
    let fingerprint = |change: fn(&mut Value)| {
        results(&report(false, &[denied(1, change)]))[0]["partialFingerprints"]["postern/v1"].clone()
    };
    let first = fingerprint(|_| {});
    let same: fn(&mut Value) = |event| {
        event["id"] = json!("01a2008d-747b-7101-8101-000000000777");
        event["session"] = json!("s-2");
        event["workload"]["pod"] = json!("coder-1");
        event["decision"]["reason"] = json!("other words");
        event["decision"]["verdict"] = json!("WouldDeny");
    };
    assert_eq!(first, fingerprint(same));
    let others: [fn(&mut Value); 4] = [
        |event| event["decision"]["rule"] = json!("agents/coders/no-rmdir"),
        |event| event["destination"]["host"] = json!("api.openai.com"),
        |event| event["toolCall"]["name"] = json!("Read"),
        |event| {
            event["destination"]["host"] = json!("api.anthropic.comB");
            event["toolCall"]["name"] = json!("ash");
        },
    ];
    for other in others {
        assert_ne!(first, fingerprint(other));
    }
}

#[test]
fn equal_denials_are_grouped_whatever_order_they_come_in() {
    let other = denied(9, |event| event["toolCall"]["name"] = json!("Read"));
    let several = denied(3, |event| {
        event["count"] = json!(40);
        event["last"] = json!("2026-11-22T00:01:00.000Z");
    });
    let log = report(true, &[denied(2, |_| {}), several, other, denied(1, |_| {})]);
    let [read, bash] = results(&log) else { panic!("{log}") };
    assert_eq!((&read["occurrenceCount"], &read["properties"]["proxy_tool"]), (&json!(1), &json!("Read")));
    assert_eq!(bash["occurrenceCount"], 42);
    assert_eq!(bash["guid"], "01a2008d-747b-7101-8101-000000000003", "the newest stands for all");
    assert_eq!(
        bash["provenance"],
        json!({
            "firstDetectionTimeUtc": "2026-11-22T00:00:00.001Z", "lastDetectionTimeUtc": "2026-11-22T00:01:00.000Z",
        })
    );
}

#[test]
fn the_newest_are_kept_and_the_others_counted() {
    for groups in [false, true] {
        let mut report = SarifReport::with_bound(groups, 3);
        for number in [5, 1, 4, 2, 3, 5] {
            report.take(&denied(number, |event| event["toolCall"]["name"] = json!(format!("T{number}"))));
        }
        let left_out = report.left_out();
        let log = serde_json::to_value(report.into_log(&RulePlaces::default())).unwrap();
        let tools: Vec<&Value> =
            results(&log).iter().map(|result| &result["properties"]["proxy_tool"]).collect();
        assert_eq!((tools, left_out), (vec![&json!("T3"), &json!("T4"), &json!("T5")], 2));
    }
}

#[test]
fn a_rule_is_described_once_and_weighs_what_its_denials_do() {
    let of = |number: u64, rule: &'static str, kind: &'static str| {
        denied(number, |event| {
            event["decision"]["rule"] = json!(rule);
            event["kind"] = json!(kind);
        })
    };
    let log = report(
        false,
        &[
            of(1, "postern/builtin/placeholder", "Request"),
            of(2, "postern/builtin/bound", "Request"),
            of(3, "postern/builtin/of-a-later-version", "Request"),
            of(4, "agents/coders/api", "Connection"),
            of(5, "agents/coders/api", "Request"),
            of(6, "agents/coders/limits", "Request"),
        ],
    );
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let weights: Vec<(&str, &str)> = rules
        .iter()
        .map(|rule| (rule["id"].as_str().unwrap(), rule["properties"]["security-severity"].as_str().unwrap()))
        .collect();
    assert_eq!(
        weights,
        [
            ("agents/coders/api", "5.0"),
            ("agents/coders/limits", "3.0"),
            ("postern/builtin/bound", "3.0"),
            ("postern/builtin/of-a-later-version", "5.0"),
            ("postern/builtin/placeholder", "8.0"),
        ]
    );
    for result in results(&log) {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
}
