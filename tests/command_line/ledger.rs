//! `postern ledger`: what is found in files of events, whoever wrote them.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Place, Said};

const RUNS: &str = ".local/state/postern/runs";

fn id(number: u64) -> String {
    format!("01a2008d-747b-7101-8101-{number:012}")
}

/// A tool call of a run, at a second of one minute.
fn call(number: u64, tool: &str, verdict: &str) -> Value {
    json!({
        "apiVersion": "postern.dev/event/v1",
        "id": id(number),
        "time": format!("2026-11-22T00:00:{number:02}.000Z"),
        "sequence": number,
        "count": 1,
        "kind": "ToolCall",
        "direction": "Inbound",
        "session": "s-1",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "provider": {"name": "anthropic", "api": "messages", "model": "claude-sonnet-5-5"},
        "toolCall": {"id": format!("toolu_{number}"), "name": tool, "inputBytes": 2},
        "decision": {"verdict": verdict, "rule": "agents/coders/no-rm", "reason": "Not here"},
        "exchange": id(900 + number / 2),
    })
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// A home with an older and a newer run.
fn place() -> Place {
    let place = Place::new();
    place.write(&format!("{RUNS}/20261121T000000Z-1.jsonl"), &lines(&[call(9, "Old", "Deny")]));
    let events = [call(1, "Bash", "Allow"), call(2, "Bash", "Deny"), call(3, "Read", "Allow")];
    place.write(&format!("{RUNS}/20261122T000000Z-1.jsonl"), &lines(&events));
    place
}

/// The numbers of the events in lines of JSON.
fn numbers(said: &Said) -> Vec<u64> {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    said.stdout.lines().map(|line| event(line)["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn the_newest_run_is_read_where_nothing_else_is_named() {
    let place = place();
    let said = place.run(&["ledger", "query"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 3);
    let line = said.stdout.lines().nth(1).unwrap();
    assert_eq!(
        line,
        format!(
            "2026-11-22T00:00:02.000Z Deny      ToolCall   Bash at api.anthropic.com:443  \
             agents/coders/no-rm: Not here  {}",
            id(2)
        )
    );
    assert_eq!(numbers(&place.run(&["ledger", "tail", "-n", "2", "-o", "json"])), [2, 3]);
    assert_eq!(numbers(&place.run(&["ledger", "query", "--ledger", RUNS, "-o", "json"])), [9, 1, 2, 3]);
    let yaml = place.run(&["ledger", "query", "-o", "yaml", "--verdict", "Deny"]);
    assert_eq!(serde_yaml::from_str::<Value>(&yaml.stdout).unwrap(), call(2, "Bash", "Deny"));
}

#[test]
fn filters_hold_together_and_their_values_one_by_one() {
    let place = place();
    let found = |options: &[&str]| {
        numbers(&place.run(&[&["ledger", "query", "-o", "json", "--ledger", RUNS], options].concat()))
    };
    assert_eq!(found(&["--verdict", "deny"]), [9, 2]);
    assert_eq!(found(&["--verdict", "deny", "--tool", "ba*"]), [2]);
    assert_eq!(found(&["--tool", "Old,Read"]), [9, 3]);
    assert_eq!(found(&["--rule", "no-rm", "--kind", "ToolCall", "--tool", "Read"]), [3]);
    assert_eq!(found(&["--since", "2026-11-22T00:00:02Z", "--until", "2026-11-22T00:00:03Z"]), [2, 3]);
    assert_eq!(
        found(&["--host", "*.anthropic.com", "--model", "claude-*", "--session", "s-1"]),
        [9, 1, 2, 3]
    );
    assert_eq!(found(&["--exchange", &id(901)]), [2, 3]);
    assert_eq!(found(&["--host", "other.example"]), [] as [u64; 0]);
    assert_eq!(found(&["--until", "2026-11-21"]), [] as [u64; 0]);
    let said = place.run(&["ledger", "query", "--limit", "1"]);
    assert_eq!(said.stdout.lines().count(), 1);
    assert!(said.stderr.contains("there are more"), "{said:?}");
    assert_eq!(place.run(&["ledger", "query", "--verdict", "No"]).code, Some(2));
    assert_eq!(place.run(&["ledger", "query", "--since", "soon"]).code, Some(2));
}

#[test]
fn an_event_is_shown_with_those_of_its_exchange_from_whichever_run() {
    let place = place();
    let said = place.run(&["ledger", "show", &id(2)]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.stdout.contains("  decision.rule              agents/coders/no-rm\n"), "{said:?}");
    assert!(said.stdout.contains("of the same exchange:\n2026-11-22T00:00:03.000Z Allow"), "{said:?}");
    let json = place.run(&["ledger", "show", &id(2), "-o", "json"]).json();
    assert_eq!((&json["event"]["id"], json["exchange"].as_array().unwrap().len()), (&id(2).into(), 1));
    assert_eq!(place.run(&["ledger", "show", &id(9), "-o", "json"]).json()["event"]["sequence"], 9);
    for (missing, why) in [(id(77), "no event"), ("x".to_owned(), "is no id of an event")] {
        let said = place.run(&["ledger", "show", &missing]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
        assert!(said.stderr.contains(why), "{said:?}");
    }
}

#[test]
fn an_event_of_standard_input_is_shown_and_the_copy_of_it_is_not_named() {
    let place = place();
    let show = |id: &str| {
        let events = std::fs::File::open(place.path().join("mixed.jsonl")).unwrap();
        place.start(&["ledger", "show", "--ledger", "-", id], &[], events.into())
    };
    let run = place.run(&["ledger", "query", "-o", "json"]).stdout;
    place.write("mixed.jsonl", &format!("a line of a log\n{run}"));
    let said = show(&id(2));
    assert!(said.stdout.contains("  decision.rule              agents/coders/no-rm\n"), "{said:?}");
    assert_eq!(
        said.stderr,
        "postern: standard input: 1 line is no event, or too long, and was passed over\n"
    );
    assert!(show(&id(77)).stderr.contains("in standard input"));
}

#[test]
fn an_event_is_written_as_a_test_that_its_policy_passes_and_another_does_not() {
    let place = Place::new();
    let input = r#"{"command": "rm -rf /"}"#;
    let mut whole = call(1, "Bash", "Deny");
    whole["toolCall"] = json!({
        "id": "toolu_1", "name": "Bash", "kindsBy": "Catalogue", "kinds": ["Shell"], "input": input, "inputBytes": 23,
        "inputSha256": "fe344b7018d3de052905ad6b3edd7235eba9773c7e4753fc6cee1a6224765d91",
    });
    let request = json!({
        "apiVersion": "postern.dev/event/v1", "id": id(2), "time": "2026-11-22T00:00:02.000Z", "sequence": 2, "count": 1,
        "kind": "Request", "direction": "Outbound",
        "destination": {"host": "paste.example.org", "port": 443, "action": "Inspect", "intercepted": true},
        "http": {"method": "POST", "path": "/new", "version": "HTTP/2"},
        "decision": {"verdict": "Deny", "rule": "postern/builtin/default-deny"},
    });
    let started = json!({
        "apiVersion": "postern.dev/event/v1", "id": id(3), "time": "2026-11-22T00:00:03.000Z", "sequence": 3, "count": 1,
        "kind": "Lifecycle", "direction": "Inbound", "decision": {"verdict": "Allow"},
    });
    place.write("events.jsonl", &lines(&[whole, request, started]));
    let rule = "tools: [{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm']}}]";
    let policy = |rule: &str| {
        format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: coders, namespace: agents}}\n\
             spec: {{podSelector: {{}}, destinations: [{{name: all, hosts: [api.anthropic.com], action: Inspect}}], {rule}}}\n"
        )
    };
    for number in [1, 2] {
        let said = place.run(&["ledger", "show", &id(number), "--ledger", "events.jsonl", "-o", "test"]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        place.write("case.yaml", &said.stdout);
        place.write("policy.yaml", &policy(rule));
        let held = place.run(&["policy", "test", "case.yaml"]);
        assert_eq!(held.code, Some(0), "{}{held:?}", said.stdout);
        place.write(
            "policy.yaml",
            &policy(rule).replace("['rm']", "['mv']").replace("api.anthropic.com", "paste.example.org"),
        );
        let broken = place.run(&["policy", "test", "case.yaml"]);
        assert_eq!(broken.code, Some(1), "{}{broken:?}", said.stdout);
    }
    let whole = place.run(&["ledger", "show", &id(1), "--ledger", "events.jsonl", "-o", "test"]).stdout;
    assert!(whole.contains("command: rm -rf /") && !whole.contains("from:"), "{whole}");
    let none = place.run(&["ledger", "show", &id(3), "--ledger", "events.jsonl", "-o", "test"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");
    let elsewhere = place.run(&["ledger", "query", "--ledger", "events.jsonl", "-o", "test"]);
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (Some(2), ""), "{elsewhere:?}");
}

#[test]
fn an_id_that_was_counted_with_others_is_found() {
    let place = Place::new();
    let counted = json!({
        "apiVersion": "postern.dev/event/v1", "id": "01a2008d-7400-7101-8101-010101010101",
        "time": "2026-11-22T00:00:00.000Z", "last": "2026-11-22T00:00:01.000Z", "sequence": 1, "count": 40,
        "kind": "Connection", "direction": "Outbound", "decision": {"verdict": "Deny"},
    });
    place.write("events.jsonl", &lines(&[counted]));
    let shown = |id: &str| place.run(&["ledger", "show", "--ledger", "events.jsonl", id]);
    // Made 123 ms later.
    let said = shown("01a2008d-747b-7101-8101-020202020202");
    assert!(said.stdout.starts_with("no event has this id alone"), "{said:?}");
    assert!(said.stdout.contains("×40"), "{said:?}");
    assert_eq!(shown("01a2108d-747b-7101-8101-020202020202").code, Some(1));
}

#[test]
fn an_event_is_found_in_an_older_run_before_one_that_only_counted_others_meanwhile() {
    let place = place();
    // A newer run counted refusals from before the older event until after it.
    let counted = json!({
        "apiVersion": "postern.dev/event/v1", "id": id(50), "time": "2020-01-01T00:00:00.000Z",
        "last": "2030-01-01T00:00:00.000Z", "sequence": 50, "count": 40,
        "kind": "Connection", "direction": "Outbound", "decision": {"verdict": "Deny"},
    });
    place.write(&format!("{RUNS}/20261123T000000Z-1.jsonl"), &lines(&[counted]));
    let shown =
        |id: &str| place.run(&["ledger", "show", "-o", "json", id]).json()["event"]["sequence"].clone();
    assert_eq!(shown(&id(9)), 9);
    assert_eq!(shown(&id(77)), 50, "what no event has alone was counted");
}

#[test]
fn standard_input_is_a_ledger() {
    let place = place();
    let file = || std::fs::File::open(place.path().join(format!("{RUNS}/20261122T000000Z-1.jsonl"))).unwrap();
    let piped = |arguments: &[&str]| {
        let arguments = [&["ledger"], arguments, &["--ledger", "-", "-o", "json"]].concat();
        place.start(&arguments, &[], file().into())
    };
    assert_eq!(numbers(&piped(&["query", "--verdict", "Deny"])), [2]);
    assert_eq!(numbers(&piped(&["tail", "-n", "1"])), [3]);
    assert_eq!(piped(&["show", &id(2)]).json()["exchange"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_event_is_passed_over_and_said_and_a_torn_line_is_left() {
    let place = Place::new();
    let torn = call(2, "Torn", "Deny").to_string();
    let long = format!("{{\"apiVersion\":\"{}\"}}", "x".repeat(9 << 20));
    let text = format!(
        "a line of a log\n{{}}\n\n{}{long}\n\u{0}\u{ff}\n{}",
        lines(&[call(1, "Bash", "Allow")]),
        &torn[..torn.len() - 1]
    );
    place.write("events.jsonl", &text);
    for command in ["query", "tail"] {
        let said = place.run(&["ledger", command, "--ledger", "events.jsonl", "-o", "json"]);
        assert_eq!((said.code, said.stdout.lines().count()), (Some(0), 1), "{said:?}");
        assert!(said.stderr.contains("4 lines are no events, or too long, and were passed over"), "{said:?}");
        assert!(
            said.stderr.contains(&format!("the last line is torn ({} bytes)", torn.len() - 1)),
            "{said:?}"
        );
    }
}

#[test]
fn what_an_event_says_moves_no_terminal() {
    let place = Place::new();
    let evil = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\r\n2026 Allow\u{202e}\u{7f}";
    let mut event = call(1, evil, "Deny");
    event["decision"]["reason"] = json!(evil);
    event["destination"]["host"] = json!(evil);
    event["http"] = json!({"method": evil, "path": evil});
    event["session"] = json!(evil);
    event[evil] = json!(evil);
    place.write("events.jsonl", &lines(&[event.clone()]));
    place.write("policy.yaml", POLICY);
    let id = id(1);
    for arguments in [
        &["ledger", "query"][..],
        &["ledger", "tail"],
        &["ledger", "show", &id],
        &["policy", "explain", "--policy", "policy.yaml", "--event", &id],
    ] {
        for output in ["text", "json", "yaml"] {
            let arguments = [arguments, &["--ledger", "events.jsonl", "-o", output]].concat();
            let said = place.run(&arguments);
            assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
            let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!said.stdout.contains(obeyed), "{arguments:?}: {:?}", said.stdout);
            assert!(!said.stdout.lines().any(|line| line.starts_with("2026 Allow")), "{said:?}");
        }
    }
    let said = place.run(&["ledger", "query", "--ledger", "events.jsonl", "-o", "json"]);
    assert_eq!(said.json(), event, "the escapes mean the same");
}

const POLICY: &str = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: coders, namespace: agents}\n\
                      spec:\n  tools: [{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]\n";

#[test]
fn an_event_that_does_not_keep_its_input_is_not_decided_by_what_it_has_instead() {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    let explained = |call: Value| {
        let event = json!({
            "apiVersion": "postern.dev/event/v1", "id": id(1), "kind": "ToolCall", "toolCall": call,
            "decision": {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"},
        });
        place.write("event.json", &event.to_string());
        let said = place.run(&["policy", "explain", "--policy", "policy.yaml", "event.json", "-o", "json"]);
        said.json()
    };
    let other = "0".repeat(64);
    for call in [
        json!({"name": "Bash", "inputBytes": 9, "inputSha256": other}),
        json!({"name": "Bash", "inputBytes": 9, "inputSha256": other, "input": "{\"command\":\"ls …\"}"}),
    ] {
        let explained = explained(call);
        assert_eq!(explained["decision"]["verdict"], "NeedsInput", "{explained}");
        assert_eq!(explained["recordedDecision"]["rule"], "agents/coders/no-rm");
    }
    for (call, reason) in [
        (json!({"name": "Bash", "incomplete": true}), "The answer ended before the call was complete"),
        (json!({"name": "Bash", "input": "{\"command\":"}), "The tool's input is not JSON that can be read"),
        (
            json!({"name": "Bash", "input": "{\"command\":\"ls\",\"command\":\"rm\"}"}),
            "The tool's input has two readings",
        ),
    ] {
        let explained = explained(call);
        assert_eq!(explained["decision"]["rule"], "postern/builtin/unparseable", "{explained}");
        assert!(explained["decision"]["reason"].as_str().unwrap().starts_with(reason), "{explained}");
    }
    let whole = explained(json!({"name": "Bash", "input": "{\"command\":\"ls\"}"}));
    assert_eq!(whole["decision"]["verdict"], "Allow", "{whole}");
    let said = place.run(&["policy", "explain", "--policy", "policy.yaml", "event.json"]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    let line = lines.iter().find(|line| line.starts_with("the gateway decided: ")).unwrap();
    assert!(
        line.starts_with("the gateway decided: Deny by agents/coders/no-rm: Not here (not as here: "),
        "{line}"
    );
}

#[test]
fn a_run_is_followed_while_it_is_written() {
    let place = place();
    let file = place.path().join(format!("{RUNS}/20261122T000000Z-1.jsonl"));
    let mut tail = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["ledger", "tail", "-f", "-n", "1", "--verdict", "Deny", "-o", "json"])
        .env_clear()
        .env("HOME", place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(tail.stderr.take().unwrap()).lines();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next =
        || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["sequence"].clone();
    assert_eq!(next(), 2);
    assert_eq!(said.next().unwrap().unwrap(), format!("postern: following {}", file.display()));
    let mut writer = OpenOptions::new().append(true).open(file).unwrap();
    let (line, allowed) = (call(5, "Bash", "Deny").to_string(), call(4, "Bash", "Allow"));
    let (begun, rest) = line.split_at(40);
    write!(writer, "{allowed}\n{begun}").unwrap();
    writeln!(writer, "{rest}").unwrap();
    assert_eq!(next(), 5);
    tail.kill().unwrap();
    tail.wait().unwrap();
}

#[test]
fn without_a_run_it_is_said_what_to_do() {
    let place = Place::new();
    for arguments in [&["ledger", "tail"][..], &["ledger", "query"], &["ledger", "show", &id(1)]] {
        let said = place.run(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains("start one with `postern run -- COMMAND`"), "{said:?}");
    }
    // What lies among the runs and is no file of events is not opened: an agent could put it there.
    std::fs::create_dir_all(place.path().join(RUNS).join("20991231T000000Z-1.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path().join(RUNS).join("20991231T000000Z-2.jsonl"))
        .unwrap();
    assert!(place.run(&["ledger", "tail"]).stderr.contains("no run has written events"));
}
