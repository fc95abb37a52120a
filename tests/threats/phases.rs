//! When a verdict falls: by the name at a call's start, by the input only where a rule asks for it; and what is said of it.

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::model::{
    Model, NO_DELETE, NO_FORCE, assert_without, call, choice, chunks, message, named, policy, request, text,
};
use crate::parity::anthropic::Anthropic;
use crate::parity::chat::Chat;
use crate::parity::dialect::Dialect;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::support::Connection;
use crate::support::upstream::{Gate, Step};

const STREAM: [(&str, &str); 1] = [("content-type", "text/event-stream")];

/// A stream that waits for the gate behind the part that ends with `at`.
fn halting(model: &Model, dialect: &dyn Dialect, stream: &str, at: &str) -> (Connection, Gate) {
    let gate = Gate::new();
    let cut = stream.find(at).unwrap() + at.len();
    let (first, last) = stream.split_at(cut);
    let steps = [first, last].map(|part| Step::Data(part.to_owned().into()));
    let [first, last] = steps;
    model.says(&STREAM, vec![first, Step::Wait(gate.clone()), last]);
    (model.listen(dialect), gate)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// K9: a call that is denied by its name is replaced at its start, whatever else is to come of it.
#[test]
fn a_call_that_its_name_denies_is_replaced_at_its_start() {
    let model = Model::under(NO_DELETE);
    let blocks = [text(0, "so"), call(1, "toolu_1", "delete_file", &[r#"{"id":"#, "7}"]), text(2, "then")];
    let stream = named(&message(&blocks, "tool_use"));
    let start = r#""name":"delete_file","input":{}}}"#.to_owned() + "\n\n";
    let (mut connection, gate) = halting(&model, &Anthropic, &stream, &start);

    let read = lossy(&connection.read_until(b"Rule: agents/test/no-delete"));
    model.assert_verdict("toolu_1", Some("no-delete"));
    gate.open();
    let rest = lossy(&connection.read_until(b"message_stop\"}"));

    assert!(!read.contains("toolu_1") && !rest.contains("toolu_1"), "{read}{rest}");
    assert!(rest.contains("then") && rest.contains("end_turn"), "{rest}");
    let event = model.event("toolu_1");
    assert_eq!(event["toolCall"]["inputBytes"], 0, "the verdict came before the input: {event}");
}

/// K9: a call that no rule asks about streams through while it is being written.
#[test]
fn a_call_that_no_rule_conditions_streams_through() {
    let model = Model::under(NO_FORCE);
    let blocks = [call(0, "toolu_1", "get_weather", &[r#"{"location":"#, r#""Bern"}"#])];
    let stream = named(&message(&blocks, "tool_use"));
    let (mut connection, gate) = halting(&model, &Anthropic, &stream, "\\\"location\\\":\"}}\n\n");

    let read = lossy(&connection.read_until(b"\\\"location\\\":"));
    assert!(read.contains("toolu_1"), "{read}");
    gate.open();

    connection.read_until(b"message_stop\"}");
    model.assert_verdict("toolu_1", None);
}

/// K9: only a call that a condition needs is held; the text before it, and in Chat beside it, keeps flowing.
#[test]
fn while_a_call_is_held_the_text_flows() {
    let model = Model::under(NO_FORCE);
    for (command, denied) in [("rm -rf /", true), ("ls", false)] {
        let rest = format!("{command:?}}}");
        let blocks = [text(0, "thinking aloud"), call(1, "toolu_1", "Bash", &[r#"{"command":"#, &rest])];
        let stream = named(&message(&blocks, "tool_use"));
        let (mut connection, gate) = halting(&model, &Anthropic, &stream, "\\\"command\\\":\"}}\n\n");
        let read = lossy(&connection.read_until(b"thinking aloud"));
        gate.open();
        let read = read + &lossy(&connection.read_until(b"message_stop\"}"));
        assert_eq!(read.contains("toolu_1"), !denied, "{read}");

        let function = |body: Value| json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": body}]});
        let stream = chunks(&[
            choice(0, function(json!({"name": "Bash", "arguments": r#"{"command":"#})), None),
            choice(0, json!({"role": "assistant", "content": "meanwhile"}), None),
            choice(0, json!({"tool_calls": [{"index": 0, "function": {"arguments": rest}}]}), None),
            choice(0, json!({}), Some("tool_calls")),
        ]);
        let beside = "\"meanwhile\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
        let (mut connection, gate) = halting(&model, &Chat, &stream, beside);
        let read = lossy(&connection.read_until(b"meanwhile"));
        assert!(!read.contains("call_1"), "{read}");
        gate.open();
        let read = lossy(&connection.read_until(b"[DONE]"));
        assert_eq!(read.contains("call_1"), !denied, "{read}");
    }
}

/// J8: no verdict is kept: on an open connection a changed policy decides the next call.
#[test]
fn a_changed_policy_decides_the_next_call_of_an_open_connection() {
    let model = Model::under("");
    let input = r#"{"path":"/w/a.txt"}"#;
    let stream = named(&message(&[call(0, "toolu_1", "delete_file", &[input])], "tool_use"));
    let data = vec![Step::Data(stream.clone().into())];
    model.says(&STREAM, data);
    let (host, path) = Anthropic.place(Streamed).unwrap();
    let question = request(host, path, &Anthropic.request(&["delete_file".to_owned()], Streamed).to_string());
    let mut connection = model.gateway.agent().tls(host);
    let mut ask = || {
        connection.send(&question);
        connection.read_answer().text()
    };

    assert_eq!(ask(), stream);
    model.gateway.reload_policy(&policy(NO_DELETE), "success");
    assert!(!ask().contains("toolu_1"));
    model.gateway.reload_policy(&policy(NO_FORCE), "success");
    assert_eq!(ask(), stream);
    assert_eq!(model.upstream.requests().len(), 3);
}

/// G9: events keep of an input what `audit.toolInputs` says, and no more.
#[test]
fn an_event_keeps_of_an_input_what_policy_says() {
    let input = r#"{"location":"Bern","days":3}"#;
    let stream = |id: &str| named(&message(&[call(0, id, "get_weather", &[input])], "tool_use"));
    let hash: String =
        digest(&SHA256, input.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect();
    for (keeps, has_hash, kept) in [
        ("None", false, Value::Null),
        ("Hash", true, Value::Null),
        ("Redacted", true, json!(r#"{"location":"[4 bytes]","days":3}"#)),
        ("Full", true, json!(input)),
    ] {
        let model = Model::under(&format!("audit: {{toolInputs: {keeps}}}\n{NO_FORCE}"));
        model.assert_passes(&Anthropic, Streamed, stream("toolu_1"));
        let event = &model.event("toolu_1")["toolCall"];
        assert_eq!(event["inputBytes"], input.len(), "{keeps}");
        assert_eq!(event["inputSha256"], if has_hash { json!(hash) } else { Value::Null }, "{keeps}");
        assert_eq!(event["input"], kept, "{keeps}");
        assert_eq!(event["name"], "get_weather");
        let elsewhere = model.gateway.log() + &model.gateway.admin("/metrics").text();
        assert!(!elsewhere.contains("Bern"), "{elsewhere}");
    }
}

/// G9: under `Redacted` a command keeps its programs and the names of its options; no operand is in any output.
#[test]
fn a_command_keeps_its_programs_and_options_and_no_operand() {
    let model = Model::under(&format!("audit: {{toolInputs: Redacted}}\n{NO_DELETE}"));
    for (number, (command, kept)) in [
        (
            json!("git push --force canary && ls -la /canary > canary.txt"),
            json!("git … --force … && ls -la … > …"),
        ),
        (json!("mysql -pcanary --password=canary"), json!("mysql -p… --password=…")),
        (json!("echo $(cat canary)"), json!("…")),
        (json!("ls"), json!("ls")),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, input) = (format!("toolu_{number}"), json!({"command": command, "description": "canary"}));
        let stream = named(&message(&[call(0, &id, "Bash", &[&input.to_string()])], "tool_use"));
        model.assert_passes(&Anthropic, Streamed, stream);
        let event = model.event(&id);
        let told: Value = serde_json::from_str(event["toolCall"]["input"].as_str().unwrap()).unwrap();
        assert_eq!(told, json!({"command": kept, "description": "[6 bytes]"}));
        assert!(!event.to_string().contains("canary"), "{event}");
    }
}

/// Calls and tokens are counted, by tool, verdict and model.
#[test]
fn calls_and_tokens_are_counted() {
    let model = Model::under(NO_DELETE);
    let blocks = [call(0, "toolu_1", "delete_file", &["{}"]), call(1, "toolu_2", "get_weather", &["{}"])];
    model.hear(&Anthropic, Streamed, named(&message(&blocks, "tool_use")));
    let counted = |name: &str, labels: &[(&str, &str)]| {
        model.gateway.wait_for_metric(name, labels, 1.0);
        model.gateway.metric(name, labels)
    };
    let calls = |tool, verdict| {
        counted(
            "postern_tool_calls_total",
            &[("provider", "anthropic"), ("tool", tool), ("verdict", verdict)],
        )
    };
    let tokens = |kind| {
        counted(
            "postern_tokens_total",
            &[("provider", "anthropic"), ("model", "claude-sonnet-5"), ("type", kind)],
        )
    };

    assert_eq!((calls("delete_file", "Deny"), calls("get_weather", "Allow")), (1.0, 1.0));
    assert_eq!((tokens("input"), tokens("output")), (7.0, 9.0));

    let run = |id, command: &str| call(0, id, "Bash", &[&json!({"command": command}).to_string()]);
    for command in ["ls", "$X", "ls -l"] {
        model.hear(&Anthropic, Streamed, named(&message(&[run("toolu_3", command)], "tool_use")));
    }
    model.gateway.wait_for_metric("postern_shell_commands_total", &[("read", "Literal")], 2.0);
    assert_eq!(model.gateway.metric("postern_shell_commands_total", &[("read", "Opaque")]), 1.0);
}

/// F14: an answer that is no JSON outside of its calls is refused, or passes with a warning under `failurePolicy: Open`.
#[test]
fn an_answer_that_cannot_be_read_is_refused_or_passes_with_a_warning() {
    let broken = r#"{"id":"msg_1","type":"message","content":[{"type":"text","text":"so"}"#;
    let events = named(&message(&[text(0, "so"), call(1, "toolu_1", "get_weather", &["{}"])], "tool_use"));
    let broken_stream = events.replace(r#"{"type":"content_block_stop","index":0}"#, "{\"type\":");
    let model = Model::under(NO_FORCE);
    model.ask(&Anthropic, Whole, broken).assert_refused_by_provider("postern/builtin/unparseable");
    let answer = model.ask(&Anthropic, Streamed, &broken_stream);
    assert_without(&answer, &["toolu_1"]);
    assert!(answer.text().contains("event: error\n"), "{}", answer.text());

    let open = Model::under(&format!("failurePolicy: Open\n{NO_FORCE}"));
    open.assert_passes(&Anthropic, Whole, broken);
    open.assert_passes(&Anthropic, Streamed, &broken_stream);
    let denied =
        broken_stream.replace("get_weather", "Bash").replace("\"{}\"", r#""{\"command\":\"rm -rf /\"}""#);
    let answer = open.ask(&Anthropic, Streamed, &denied);
    assert_without(&answer, &["toolu_1", "rm -rf"]);
    assert!(answer.text().contains("Rule: agents/test/no-force"), "{}", answer.text());
    let warning = open.gateway.wait_for("Policy", "Audit");
    assert_eq!(warning["decision"]["rule"], "postern/builtin/unparseable", "{warning}");
    for model in [&model, &open] {
        model.assert_passes(&Anthropic, Streamed, &events);
    }
}
