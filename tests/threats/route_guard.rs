//! Threats of tool calls, where a model of Chat Completions answers an agent of Messages by a route: what the guard judges is
//! what the agent would read.

use serde_json::{Value, json};

use super::model::{Model, NO_DELETE, NO_FORCE, assert_without, choice, chunks};
use crate::parity::dialect::Dialect;
use crate::parity::dialect::Mode::{self, Streamed, Whole};
use crate::parity::routed::Routed;
use crate::routing::events;
use crate::support::Answer;
use crate::support::coding::encode;
use crate::support::upstream::{Gate, Step};

const UNPARSEABLE: &str = "postern/builtin/unparseable";

/// A stream of these pieces of calls, behind a text, which ends so.
fn stream_that_ends(pieces: &[Value], finish: &str) -> String {
    let mut choices = vec![choice(0, json!({"role": "assistant", "content": "so"}), None)];
    choices.extend(pieces.iter().map(|piece| choice(0, json!({"tool_calls": [piece]}), None)));
    choices.push(choice(0, json!({}), Some(finish)));
    chunks(&choices)
}

fn stream(pieces: &[Value]) -> String {
    stream_that_ends(pieces, "tool_calls")
}

fn start(index: u64, id: &str, name: &str, arguments: impl Into<Value>) -> Value {
    let mut call = json!({"index": index, "id": id, "type": "function", "function": {"name": name}});
    call["function"]["arguments"] = arguments.into();
    call
}

fn more(index: u64, arguments: &str) -> Value {
    json!({"index": index, "function": {"arguments": arguments}})
}

fn whole(calls: &[Value]) -> String {
    let message = json!({"role": "assistant", "content": "so", "tool_calls": calls});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        .to_string()
}

/// The ids of the calls that an agent gets, whether it reads a stream or a document, and even where that breaks off.
fn called(answer: &Answer) -> Vec<String> {
    let id = |block: &Value| block["id"].as_str().unwrap_or_default().to_owned();
    if answer.header("content-type").is_some_and(|kind| kind.contains("event-stream")) {
        let blocks: Vec<Value> = events(answer).iter().map(|event| event["content_block"].clone()).collect();
        return blocks.iter().filter(|block| block["type"] == "tool_use").map(id).collect();
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "tool_use")
        .map(id)
        .collect()
}

/// The last event of a stream.
fn last(answer: &Answer) -> Value {
    events(answer).pop().unwrap_or_default()
}

/// F1, F7: calls whose pieces interleave are judged each by itself, and reach the agent one after the other.
#[test]
fn calls_of_a_stand_in_that_interleave_are_judged_each_by_itself() {
    let model = Model::routed(NO_FORCE);
    for (number, (first, second, passing)) in
        [("rm -rf /", "ls", "b"), ("ls", "rm -rf /", "a"), ("rm -rf /", "rm  -rf .", ""), ("ls", "pwd", "ab")]
            .into_iter()
            .enumerate()
    {
        let [a, b] = ["a", "b"].map(|name| format!("call_{name}{number}"));
        let pieces = [
            start(0, &a, "Bash", r#"{"comm"#),
            start(1, &b, "Bash", r#"{"command"#),
            more(0, r#"and":""#),
            more(1, &format!(r#"":"{second}"}}"#)),
            more(0, &format!(r#"{first}"}}"#)),
        ];
        let heard = model.hear(&Routed, Streamed, stream(&pieces));
        let left: Vec<&str> = heard.calls.iter().map(|call| call.id.as_str()).collect();
        let expected: Vec<&String> = [("a", &a), ("b", &b)]
            .iter()
            .filter(|(name, _)| passing.contains(name))
            .map(|(_, id)| *id)
            .collect();
        assert_eq!(left, expected, "{first} {second}");
        assert_eq!(heard.ends_in_calls, Some(!passing.is_empty()));
        model.assert_verdict(&a, (!passing.contains('a')).then_some("no-force"));
        model.assert_verdict(&b, (!passing.contains('b')).then_some("no-force"));
    }
}

/// F2: arguments that are an object in the place of its text are the input.
#[test]
fn arguments_of_a_stand_in_that_are_an_object_are_judged() {
    let model = Model::routed(NO_FORCE);
    for (command, passes) in [("rm -rf /", false), ("ls", true)] {
        let call = start(0, "call_1", "Bash", json!({"command": command}));
        for (mode, body) in [(Streamed, stream(std::slice::from_ref(&call))), (Whole, whole(&[call]))] {
            let heard = model.hear(&Routed, mode, body);
            assert_eq!(heard.calls.len(), usize::from(passes), "{command} {mode:?}");
            assert!(heard.calls.iter().all(|call| call.input == json!({"command": command})));
        }
    }
}

/// F3: a name that comes in two pieces, or changes, is no name: the answer ends, and nothing of such a call goes on.
#[test]
fn a_name_of_a_stand_in_in_two_pieces_is_none() {
    let model = Model::routed("tools: [{name: no-shell, tools: [bash], action: Deny}]");
    for second in
        [start(0, "call_1", "sh", ""), json!({"index": 0, "function": {"name": "sh", "arguments": "{}"}})]
    {
        let answer = model.ask(&Routed, Streamed, stream(&[start(0, "call_1", "ba", ""), second]));
        assert_eq!(last(&answer)["type"], "error", "{}", answer.text());
        assert!(
            !answer.text().contains("bash") && !answer.text().contains("message_stop"),
            "{}",
            answer.text()
        );
    }
    // Another id begins another call, which is judged by its own name.
    let answer = model.ask(
        &Routed,
        Streamed,
        stream(&[start(0, "call_1", "ba", "{}"), start(0, "call_2", "bash", "{}")]),
    );
    assert_eq!(called(&answer), ["call_1"], "{}", answer.text());
    // The same name once more is a repetition, and the twin has one.
    for pieces in [
        vec![start(0, "call_3", "bashful", ""), start(0, "call_3", "bashful", "{}")],
        vec![start(0, "call_3", "bashful", "{}")],
    ] {
        assert_eq!(called(&model.ask(&Routed, Streamed, stream(&pieces))), ["call_3"]);
    }
}

/// F4: an input that is complete and no object, or breaks off, is denied under either failure policy.
#[test]
fn an_input_of_a_stand_in_that_is_no_json_is_denied() {
    for failure in ["Closed", "Open"] {
        let model = Model::routed(&format!("failurePolicy: {failure}\n{NO_FORCE}"));
        for (number, (input, finish)) in [
            (r#"{"command":"rm -rf"#, "length"),
            (r#"{"command":"ls"} {}"#, "tool_calls"),
            (r#"{"command":"ls","command":"rm -rf /"}"#, "tool_calls"),
            (r#"["rm -rf /"]"#, "tool_calls"),
            ("{'command':'rm -rf /'}", "tool_calls"),
            ("rm -rf /", "stop"),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("call_{number}");
            let call = start(0, &id, "Bash", input);
            let answer = model.ask(&Routed, Streamed, stream_that_ends(std::slice::from_ref(&call), finish));
            assert_eq!(called(&answer), Vec::<String>::new(), "{failure} {input}: {}", answer.text());
            model.assert_verdict(&id, Some(UNPARSEABLE));
            let answer = model.ask(&Routed, Whole, whole(&[call]));
            assert_eq!(called(&answer), Vec::<String>::new(), "{failure} {input}: {}", answer.text());
            assert!(answer.status == 502 || answer.text().contains(UNPARSEABLE), "{}", answer.text());
        }
        let fine = [start(0, "call_9", "Bash", ""), more(0, r#"{"command":"l"#), more(0, r#"s"}"#)];
        assert_eq!(model.hear(&Routed, Streamed, stream(&fine)).calls[0].input, json!({"command": "ls"}));
    }
}

/// F5, F6: a rule holds whatever the name is dressed as, over all separators; a rule that allows holds for that very name.
#[test]
fn a_name_of_a_stand_in_in_another_dress_is_denied_by_the_same_rule() {
    let deny = Model::routed(
        "tools: [{name: no-shell, tools: [bash, 'mcp__*__bash', 'mcp__github__*'], action: Deny}]",
    );
    let allow = Model::routed("toolDefault: Deny\ntools: [{name: shell, tools: [bash], action: Allow}]");
    let dressed = [
        "𝐛𝐚𝐬𝐡",
        "ba\u{200b}sh",
        " bash",
        "bash\t",
        "BASH",
        "mcp__srv__bash",
        "mcp__srv__BASH",
        "mcp__github__a/b.c",
        "MCP__GitHub__a",
    ];
    for name in dressed {
        let call = start(0, "call_1", name, "{}");
        for (mode, body) in [(Streamed, stream(std::slice::from_ref(&call))), (Whole, whole(&[call]))] {
            for (model, rule) in [(&deny, "no-shell"), (&allow, "toolDefault")] {
                let heard = model.hear(&Routed, mode, &body);
                assert!(heard.calls.is_empty(), "{name:?}");
                assert!(
                    heard.text.contains(&format!("Rule: agents/test/{rule}")),
                    "{name:?}: {}",
                    heard.text
                );
            }
        }
    }
    for name in ["bashful", "mcp__bash__run", "b4sh", "xmcp__github__a"] {
        assert_eq!(
            deny.hear(&Routed, Streamed, stream(&[start(0, "call_1", name, "{}")])).calls[0].name,
            name
        );
    }
    assert_eq!(allow.hear(&Routed, Streamed, stream(&[start(0, "call_1", "bash", "{}")])).calls.len(), 1);
}

/// F8: an answer ends in calls where the agent has one, whatever the stand-in says; a limit stays a limit.
#[test]
fn the_reason_of_an_end_follows_the_calls_that_are_left() {
    let model = Model::routed(NO_DELETE);
    for (name, finish, expected) in [
        ("delete_file", "tool_calls", "end_turn"),
        ("delete_file", "stop", "end_turn"),
        ("delete_file", "length", "max_tokens"),
        ("delete_file", "content_filter", "end_turn"),
        ("get_weather", "stop", "tool_use"),
        ("get_weather", "tool_calls", "tool_use"),
        ("get_weather", "length", "max_tokens"),
    ] {
        let call = start(0, "call_1", name, "{}");
        let answer = model.ask(&Routed, Streamed, stream_that_ends(&[call], finish));
        let stop = events(&answer).into_iter().find(|event| event["type"] == "message_delta").unwrap();
        assert_eq!(stop["delta"]["stop_reason"], expected, "{name} {finish}");
    }
}

/// F15: a content coding hides nothing, in a stream and whole.
#[test]
fn a_coded_answer_of_a_stand_in_is_judged() {
    let model = Model::routed(NO_DELETE);
    for coding in ["gzip", "deflate", "br", "zstd"] {
        for (name, passes) in [("delete_file", false), ("get_weather", true)] {
            let call = start(0, "call_1", name, "{}");
            for (mode, body) in [(Streamed, stream(std::slice::from_ref(&call))), (Whole, whole(&[call]))] {
                let headers = [("content-type", Routed.content_type(mode)), ("content-encoding", coding)];
                model.says(&headers, vec![Step::Data(encode(coding, body.as_bytes()).into())]);
                let answer = model.question(&Routed, mode);
                assert_eq!(
                    (answer.status, called(&answer).len()),
                    (200, usize::from(passes)),
                    "{coding} {name}: {}",
                    answer.text()
                );
                assert_eq!(answer.header("content-encoding"), None);
            }
        }
    }
    model.says(
        &[("content-type", "application/json"), ("content-encoding", "of-tomorrow")],
        vec![Step::Data("x".into())],
    );
    assert_eq!(model.question(&Routed, Whole).status, 502);
}

/// E13: what an answer calls itself changes nothing: it is read as that, and else it is none.
#[test]
fn a_false_label_of_a_stand_ins_answer_hides_nothing() {
    let model = Model::routed(NO_DELETE);
    let labels = [
        "text/event-stream",
        "application/json",
        "text/plain",
        "text/html",
        "application/octet-stream",
        "application/x-ndjson",
        "",
    ];
    for label in labels {
        for (name, is_denied) in [("delete_file", true), ("get_weather", false)] {
            let call = start(0, "call_1", name, "{}");
            for (written, body) in [
                ("text/event-stream", stream(std::slice::from_ref(&call))),
                ("application/json", whole(&[call])),
            ] {
                for mode in [Streamed, Whole] {
                    model.says(&[("content-type", label)], vec![Step::Data(body.clone().into())]);
                    let answer = model.question(&Routed, mode);
                    let passes = label == written && !is_denied;
                    assert_eq!(
                        called(&answer).len(),
                        usize::from(passes),
                        "{label} {written} {mode:?}: {}",
                        answer.text()
                    );
                    assert_eq!(
                        answer.status == 200,
                        label == written,
                        "{label} {written}: {}",
                        answer.text()
                    );
                }
            }
        }
    }
}

/// F37, E13: no status hides a call, and no answer without success is one.
#[test]
fn an_answer_of_a_stand_in_with_another_status_is_none() {
    let model = Model::routed(NO_DELETE);
    for status in [300, 302, 307, 399, 400, 404, 429, 500, 503] {
        for name in ["delete_file", "get_weather"] {
            let call = start(0, "call_1", name, "{}");
            for (mode, body) in [(Streamed, stream(std::slice::from_ref(&call))), (Whole, whole(&[call]))] {
                let headers =
                    [("content-type", Routed.content_type(mode)), ("location", "https://elsewhere.example/")];
                model.says_with(status, &headers, vec![Step::Data(body.into())]);
                let answer = model.question(&Routed, mode);
                assert!(answer.status >= 400 && answer.json()["type"] == "error", "{status}: {answer:?}");
                assert_without(&answer, &["call_1", "delete_file", "get_weather"]);
            }
        }
    }
}

/// F21: a call that a stand-in did not finish reaches the agent in no form that completes it; the stream ends with an error.
#[test]
fn a_call_that_a_stand_in_breaks_off_is_not_completed() {
    let model = Model::routed(NO_FORCE);
    let call = start(0, "call_1", "Bash", r#"{"command":"ls"#);
    let said = choice(0, json!({"role": "assistant", "content": "so"}), None);
    let half =
        chunks(&[said, choice(0, json!({"tool_calls": [call]}), None)]).replace("data: [DONE]\n\n", "");
    for ending in [vec![], vec![Step::Abort]] {
        let gate = Gate::new();
        let mut steps = vec![Step::Data(half.clone().into()), Step::Wait(gate.clone())];
        steps.extend(ending);
        steps.push(Step::Data(Vec::new().into()));
        model.says(&[("content-type", "text/event-stream")], steps);
        let mut connection = model.listen(&Routed);
        connection.read_until(br#""so""#);
        gate.open();
        let rest = String::from_utf8_lossy(&connection.read_until(b"event: error\n")).into_owned();
        assert!(!rest.contains("call_1") && !rest.contains("message_stop"), "{rest}");
    }
    let event = model.event("call_1");
    assert_eq!(
        (&event["toolCall"]["incomplete"], &event["decision"]["verdict"]),
        (&json!(true), &json!("Deny")),
        "{event}"
    );
}

/// F22: a stand-in that tries what is denied over and over is stopped as any model is.
#[test]
fn denials_of_a_stand_in_in_a_row_end_the_conversation() {
    let model = Model::routed(&format!("{NO_DELETE}\nlimits: {{consecutiveDenials: 2}}"));
    let body = |name: &str| whole(&[start(0, "call_1", name, "{}")]);
    for name in ["delete_file", "get_weather", "delete_file", "delete_file"] {
        assert_eq!(model.ask(&Routed, Whole, body(name)).status, 200);
    }
    let asked = model.upstream.requests().len();
    model.ask(&Routed, Whole, body("get_weather")).assert_refused_by_provider("agents/test/limits");
    assert_eq!(model.upstream.requests().len(), asked);
}

/// F33, D7: keys in another case, which some servers read, make no call that is not judged; keys that stand twice end it.
#[test]
fn keys_of_a_stand_in_in_another_case_or_twice_make_no_call() {
    let model = Model::routed(NO_DELETE);
    let body = |mode: Mode, name: &str| {
        let call = start(0, "call_1", name, r#"{"place":"a-secret-place"}"#);
        if mode == Streamed { stream(&[call]) } else { whole(&[call]) }
    };
    for (mode, keys) in [
        (Streamed, ["choices", "delta", "tool_calls", "function", "name", "arguments"]),
        (Whole, ["choices", "message", "tool_calls", "function", "name", "arguments"]),
    ] {
        for key in keys {
            let (plain, other) =
                (format!("\"{key}\":"), format!("\"{}{}\":", key[..1].to_uppercase(), &key[1..]));
            let denied = body(mode, "delete_file");
            for altered in [
                denied.replace(&plain, &other),
                denied.replace(&plain, &format!("{other}null,{plain}")),
                denied.replace(&plain, &format!("{plain}null,{plain}")),
            ] {
                assert_ne!(altered, denied);
                let answer = model.ask(&Routed, mode, altered);
                assert_without(&answer, &["a-secret-place"]);
                assert_eq!(called(&answer), Vec::<String>::new(), "{key}: {}", answer.text());
            }
        }
        assert_eq!(called(&model.ask(&Routed, mode, body(mode, "get_weather"))), ["call_1"]);
    }
    let twice = r#"{"command":"ls","COMMAND":"rm -rf /"}"#;
    let model = Model::routed(NO_FORCE);
    assert!(model.hear(&Routed, Streamed, stream(&[start(0, "call_2", "Bash", twice)])).calls.is_empty());
    assert_eq!(
        model
            .hear(&Routed, Streamed, stream(&[start(0, "call_3", "Bash", r#"{"command":"ls"}"#)]))
            .calls
            .len(),
        1
    );
}
