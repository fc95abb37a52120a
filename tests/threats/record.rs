//! Attacks on what judges and shows the record: hostile expressions, and names that are markup.

use serde_json::Value;

use super::model::{Model, call, message, named};
use crate::gateway::{INSPECT_API, inspected};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;
use crate::support::journal::poll;
use crate::support::setup::policy;

/// J16: an expression that would eat stack, memory or time is refused when it is loaded, and what is in force stays; an
/// ordinary one is in force.
#[test]
fn a_hostile_expression_changes_nothing() {
    let test = inspected();
    let under = |when: &str| {
        let rule = format!("  rules: [{{name: posts, when: '{when}', action: Deny}}]\n");
        policy(&[INSPECT_API]) + &rule
    };
    let list = format!("[{}]", ["1"; 100].join(", "));
    for (when, why) in [
        ("(".repeat(500) + "true" + &")".repeat(500), "more than 32 brackets"),
        (format!("{list}.all(a, {list}.all(b, {list}.all(c, a == c)))"), "more than 2 of all"),
        (format!("{list}.all(a, {list}.all(b, a == b))"), "at most 10000 is allowed"),
        ("9".repeat(1_000) + " > 1", "too large"),
        ("!".repeat(2_000) + "true", "at most 1024"),
        ("event.http.path.matches(\"(a{1000}){1000}\")".to_owned(), "more than 1 MiB"),
    ] {
        test.gateway.reload_policy(&under(&when), "failure");
        poll(why, || {
            let told = test.gateway.status()["reasons"].to_string();
            (told.contains("spec.rules[0].when") && told.contains(why)).then_some(())
        });
        assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    }
    test.gateway.reload_policy(&under("event.http.method == \"POST\""), "success");
    let denied = test.gateway.agent().request("POST", "https://api.example.com/echo", &[], b"hello");
    denied.assert_refused(403, "agents/test/posts");
}

/// J18: a name that is Markdown or HTML is a text in a report, and a plain one is as it is.
#[test]
fn a_name_is_no_markup_in_a_report() {
    let model = Model::under("toolDefault: Deny");
    let names = ["[click](https://evil.example) <img src=x> @you {0}", "mcp__srv__do.it"];
    for (number, name) in names.into_iter().enumerate() {
        let id = format!("toolu_{number}");
        model.hear(&Anthropic, Streamed, named(&message(&[call(0, &id, name, &["{}"])], "tool_use")));
        model.gateway.write("events.jsonl", &format!("{}\n", model.event(&id)));

        let report = model.gateway.run(&["ledger", "sarif", "--ledger", "events.jsonl"]);

        let report: Value = serde_json::from_str(&report).unwrap();
        let said = &report["runs"][0]["results"][0]["message"];
        let (text, markdown) = (said["text"].as_str().unwrap(), said["markdown"].as_str().unwrap());
        assert!(!text.contains("](") && !text.replace("{{0}}", "").contains("{0}"), "{text}");
        let outside: String = markdown.split('`').step_by(2).collect();
        assert!(!outside.contains("click") && !outside.contains("<img"), "{markdown}");
        assert!(number != 1 || (text.contains(name) && markdown.contains(name)), "the twin: {text}");
    }
}
