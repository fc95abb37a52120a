//! `postern ledger stats`: what it counts, for people and for programs.

use serde_json::{Value, json};

use super::Place;

fn event(number: u64, fields: &Value) -> String {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": format!("2026-11-22T00:00:{number:02}.000Z"), "sequence": number, "count": 1,
        "kind": "Request", "direction": "Outbound", "session": "s-1",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "provider": {"name": "anthropic", "api": "messages", "model": "claude-sonnet-5-5"},
        "decision": {"verdict": "Allow", "rule": "agents/coders/anthropic"},
    });
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("{event}\n")
}

fn place() -> Place {
    let place = Place::new();
    let denied = json!({"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"});
    let lines = [
        event(1, &json!({})),
        event(
            2,
            &json!({"kind": "ToolCall", "toolCall": {"name": "Bash\u{1b}[2J", "inputBytes": 2}, "decision": denied}),
        ),
        event(
            3,
            &json!({"kind": "Response", "usage": {"inputTokens": 2_000_000, "outputTokens": 100_000, "cacheReadTokens": 1_000_000}}),
        ),
    ];
    place.write("events.jsonl", &lines.concat());
    let policy = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: coders, namespace: agents}\nspec:\n  \
                  tools: [{name: no-rm, tools: [Bash], action: Deny}, {name: spare, tools: [Read], action: Deny}]\n";
    place.write("policy.yaml", policy);
    place.write(
        "prices.yaml",
        "currency: EUR\nmodels: [{model: claude-*, input: 3, output: 15, cacheRead: 0.3}]\n",
    );
    place
}

#[test]
fn people_read_what_was_counted_and_no_name_moves_their_terminal() {
    let options = ["--by", "model", "--prices", "prices.yaml", "--policy", "policy.yaml"];
    let said = place().run(&[&["ledger", "stats", "--ledger", "events.jsonl"], &options[..]].concat());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    insta::assert_snapshot!(said.stdout, @r"
    3 events, 2026-11-22T00:00:01.000Z to 2026-11-22T00:00:03.000Z
    1 requests, 1 tool calls, 1 calls denied; tokens: 2000000 in (1000000 read from caches), 100000 out; 4.80 EUR

    By model
      claude-sonnet-5-5                         1 requests, 1 tool calls, 1 calls denied; tokens: 2000000 in (1000000 read from caches), 100000 out; 4.80 EUR

    Tools
      Bash\u{1b}[2J                             1 calls, 1 denied

    Denied by rule
      agents/coders/no-rm                       1 calls

    Rules that no event names
      agents/coders/spare

    No signals: they want 3 days of events.
    ");
}

#[test]
fn programs_read_the_same_as_json_and_yaml_and_money_with_prices_alone() {
    let place = place();
    let stats =
        |options: &[&str]| place.run(&[&["ledger", "stats", "--ledger", "events.jsonl"], options].concat());
    let json = stats(&["-o", "json"]).json();
    assert_eq!(
        (&json["events"], &json["total"]["tokens"]["cacheRead"]),
        (&3.into(), &1_000_000.into()),
        "{json}"
    );
    assert!(json["total"].get("cost").is_none() && json.get("signals").is_none(), "{json}");
    let yaml: Value = serde_yaml::from_str(&stats(&["-o", "yaml"]).stdout).unwrap();
    assert_eq!(yaml, json);
    let priced = stats(&["-o", "json", "--prices", "prices.yaml"]).json();
    assert_eq!(priced["total"]["cost"], json!({"amount": 4.8, "currency": "EUR"}), "{priced}");
    let later = stats(&["-o", "json", "--since", "2026-11-22T00:00:03Z"]).json();
    assert_eq!((&later["events"], &later["total"]["toolCalls"]), (&1.into(), &0.into()), "{later}");
}

#[test]
fn a_mistake_in_prices_or_policies_is_said() {
    let place = place();
    place.write("wrong.yaml", "models: [{model: a, input: -3, output: 1}]\n");
    for (option, file, why) in [
        ("--prices", "wrong.yaml", "models[0] (a): a price is a number from 0"),
        ("--prices", "policy.yaml", "policy.yaml is no list of prices"),
        ("--prices", "none.yaml", "none.yaml"),
        ("--policy", "prices.yaml", "prices.yaml"),
    ] {
        let said = place.run(&["ledger", "stats", "--ledger", "events.jsonl", option, file]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
    }
    assert_eq!(place.run(&["ledger", "stats", "--by", "host"]).code, Some(2));
}
