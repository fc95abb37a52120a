//! `postern policy learn` and `policy diff`: from events to a policy, and from one policy to the next.

use serde_json::{Value, json};

use super::super::{Place, Said};

/// Events of a policy in Audit: twice a model, a package and a call, once another host.
fn events() -> String {
    let mut facts = Vec::new();
    for _ in 0..2 {
        facts.push(request("api.anthropic.com", "POST", "/v1/messages"));
        facts.push(request("packages.example.com", "GET", "/simple/left-pad"));
        facts.push(json!({"kind": "ToolCall", "toolCall": {"name": "mcp__tickets__list", "inputBytes": 2}}));
    }
    facts.push(request("once.example", "GET", "/"));
    let line = |(number, facts): (usize, Value)| {
        let mut event = json!({
            "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
            "time": "2026-11-22T00:00:00.000Z", "sequence": number + 1, "count": 1, "direction": "Outbound",
            "decision": {"verdict": "WouldDeny", "rule": "postern/builtin/default-deny", "enforcement": "Audit"},
        });
        event.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        format!("{event}\n")
    };
    facts.into_iter().enumerate().map(line).collect()
}

fn request(host: &str, method: &str, path: &str) -> Value {
    json!({"kind": "Request", "http": {"method": method, "path": path, "version": "HTTP/2"},
        "destination": {"host": host, "port": 443, "action": "Inspect", "intercepted": true}})
}

#[track_caller]
fn printed(said: &Said) -> &str {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    &said.stdout
}

/// A directory with events, and the policy that is learnt of them.
fn place() -> Place {
    let place = Place::new();
    place.write("events.jsonl", &events());
    let learnt = place.run(&["policy", "learn", "--ledger", "events.jsonl"]);
    place.write("learned.yaml", printed(&learnt));
    place
}

#[test]
fn a_draft_passes_the_check_and_is_the_same_when_it_is_made_again() {
    let place = place();
    let checked = place.run(&["policy", "check", "--strict", "learned.yaml"]);
    assert!(printed(&checked).starts_with("1 policy, 3 rules"), "{checked:?}");
    let again = place.run(&["policy", "learn", "--ledger", "."]);
    assert_eq!(printed(&again), std::fs::read_to_string(place.path().join("learned.yaml")).unwrap());
    assert!(again.stdout.contains("#   once.example:443 GET /  seen too seldom (--min) (1)"), "{again:?}");
    let once = place.run(&["policy", "learn", "--ledger", "events.jsonl", "--min", "1", "-o", "json"]);
    let document: Value = serde_json::from_str(printed(&once)).unwrap();
    assert_eq!(document["spec"]["destinations"][1]["hosts"], json!(["once.example"]), "{document}");
}

#[test]
fn where_there_are_no_events_nothing_is_drafted() {
    let place = Place::new();
    place.write("events.jsonl", "no event\n");
    let said = place.run(&["policy", "learn", "--ledger", "events.jsonl"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("no event was read: events.jsonl: 1 line is no event"), "{said:?}");
}

#[test]
fn a_change_is_marked_and_replayed() {
    let place = place();
    let old =
        std::fs::read_to_string(place.path().join("learned.yaml")).unwrap().replace(": Audit", ": Enforce");
    place.write("old.yaml", &old);
    place.write(
        "new.yaml",
        &old.replace("/simple/left-pad", "/other").replace("- mcp__tickets__list", "- mcp__tickets__open"),
    );
    let diff = |more: &[&str]| {
        let mut arguments = vec!["policy", "diff", "old.yaml", "new.yaml", "--ledger", "events.jsonl"];
        arguments.extend(more);
        place.run(&arguments)
    };
    let said = diff(&[]);
    let text = printed(&said);
    for part in [
        "other    default/learned/packages-example-com  endpoints: - GET /simple/left-pad, + GET /other\n",
        "other    default/learned/seen  tools: - mcp__tickets__list, + mcp__tickets__open\n",
        "7 decisions: 3 the same, 4 would be denied, 0 would be allowed, 0 cannot be said\n",
        "  denied       2  postern/builtin/endpoint  GET packages.example.com:443  e.g. 01a2008d-747b-7101-8101-000000000001\n",
        "  denied       2  default/learned/toolDefault  mcp__tickets__list  e.g. ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(diff(&["--fail-on", "loosening"]).code, Some(0));
    assert_eq!(diff(&["--fail-on", "any"]).code, Some(1));
    let same = place.run(&[
        "policy",
        "diff",
        "old.yaml",
        "old.yaml",
        "--ledger",
        "events.jsonl",
        "--fail-on",
        "any",
    ]);
    assert_eq!(
        printed(&same),
        "nothing is changed\n7 decisions: 7 the same, 0 would be denied, 0 would be allowed, 0 cannot be said\n"
    );
    let back =
        place.run(&["policy", "diff", "new.yaml", "learned.yaml", "--fail-on", "loosening", "-o", "json"]);
    assert_eq!(back.code, Some(1), "{back:?}");
    let changes: Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!(
        changes["changes"][0],
        json!({"mark": "looser", "rule": "default/learned/enforcement", "what": "Enforce becomes Audit"})
    );
}
