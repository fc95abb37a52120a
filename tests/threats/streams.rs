//! Streams out of which calls are taken: every copy of them goes, everything else stays, in an order that clients accept.

use serde_json::{Value, json};

use super::model::{
    Model, NO_DELETE, NO_FORCE, assert_without, call, call_with, choice, chunks, message, named, text,
};
use crate::parity::anthropic::Anthropic;
use crate::parity::bedrock::{Converse, Invoke};
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Said};
use crate::parity::responses::{self, Responses};
use crate::parity::{frames, gemini};
use crate::support::body::whole;
use crate::support::h2;
use crate::support::upstream::{Gate, Step};

const EVERY: [&dyn Dialect; 7] =
    [&Anthropic, &Chat, &Responses, &gemini::Sse, &gemini::Array, &Converse, &Invoke];

fn said(calls: &[(&str, &'static str, &'static str)]) -> Said {
    let called = |(id, name, input): &(&str, &'static str, &'static str)| Called {
        id: (*id).to_owned(),
        namespace: None,
        name,
        input,
    };
    Said { text: "so", calls: calls.iter().map(called).collect() }
}

/// Whether a refusal, whose last line names its event, ends right before a text.
fn ends_before(text: &str, next: &str) -> bool {
    text.match_indices(next).any(|(at, _)| {
        let last = text[..at].lines().last().unwrap_or_default();
        last.strip_prefix("Event: ").is_some_and(|id| id.len() == 36)
    })
}

/// F7: the text that replaces a call is a paragraph of its own, for clients that join it to the text around it.
#[test]
fn a_refusal_is_a_paragraph_of_its_own() {
    let model = Model::under(NO_DELETE);
    for dialect in EVERY {
        for mode in [Whole, Streamed].into_iter().filter(|mode| dialect.place(*mode).is_some()) {
            let said = said(&[("call_1", "delete_file", "{}"), ("call_2", "delete_file", "{}")]);
            let heard = model.hear(dialect, mode, dialect.answer(&said, mode).concat());
            assert!(ends_before(&heard.text, "\n\n[postern]"), "{}", heard.text);
        }
    }
    let function = json!({"name": "delete_file", "arguments": "{}"});
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
    let stream = chunks(&[
        choice(0, json!({"role": "assistant", "content": "so"}), None),
        choice(0, json!({"tool_calls": [call]}), None),
        choice(0, json!({"content": "behind"}), None),
        choice(0, json!({}), Some("tool_calls")),
    ]);
    let heard = Chat.hear(&model.ask(&Chat, Streamed, stream).body, Streamed);
    assert!(heard.text.starts_with("so\n\n[postern]"), "{}", heard.text);
    assert!(ends_before(&heard.text, "\n\nbehind"), "{}", heard.text);
}

/// F8: a reason for stopping is changed only where it speaks of calls and none is left.
#[test]
fn only_a_reason_that_speaks_of_calls_is_changed_and_only_without_any() {
    let model = Model::under(NO_DELETE);
    let denied = |index| call(index, "toolu_1", "delete_file", &["{}"]);
    let stop_of = |body: &str| {
        let delta = body.split("\n\n").find(|event| event.contains("message_delta")).unwrap();
        let data: Value = serde_json::from_str(delta.split_once("data: ").unwrap().1).unwrap();
        data["delta"]["stop_reason"].as_str().unwrap().to_owned()
    };
    for (blocks, stop, expected) in [
        (vec![denied(0)], "tool_use", "end_turn"),
        (vec![denied(0)], "max_tokens", "max_tokens"),
        (vec![denied(0)], "refusal", "refusal"),
        (vec![denied(0)], "pause_turn", "pause_turn"),
        (vec![denied(0)], "stop_sequence", "stop_sequence"),
        (vec![text(0, "so")], "end_turn", "end_turn"),
        (vec![text(0, "so")], "tool_use", "tool_use"),
    ] {
        let answer = model.ask(&Anthropic, Streamed, named(&message(&blocks, stop)));
        assert_eq!(stop_of(&answer.text()), expected, "{stop} {blocks:?}");
        assert!(answer.text().contains(r#""usage":{"output_tokens":9}"#), "{}", answer.text());
    }

    let start = |name: &str| {
        let function = json!({"name": name, "arguments": "{}"});
        json!({"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    };
    for (name, finish, expected) in [
        ("delete_file", "tool_calls", "stop"),
        ("delete_file", "stop", "stop"),
        ("delete_file", "length", "length"),
        ("delete_file", "content_filter", "content_filter"),
    ] {
        let stream = chunks(&[choice(0, start(name), None), choice(0, json!({}), Some(finish))]);
        let answer = model.ask(&Chat, Streamed, stream);
        let expected = format!(r#""finish_reason":"{expected}""#);
        assert!(answer.text().contains(&expected), "{name} {finish}: {}", answer.text());
    }
}

/// F10: every copy of a denied call goes, the one in the end of the response too, and copies that disagree end it.
#[test]
fn every_copy_of_a_call_goes_with_it() {
    let model = Model::under(NO_FORCE);
    let stream = |events: &[Value]| named(events);
    let denied = responses::events(&said(&[("call_1", "Bash", r#"{"command":"rm -rf /"}"#)]));
    let answer = model.ask(&Responses, Streamed, stream(&denied));
    assert_without(&answer, &["\"call_1\"", "rm -rf", "function_call"]);
    assert!(Responses.hear(&answer.body, Streamed).text.contains("Rule: agents/test/no-force"));

    let allowed = responses::events(&said(&[("call_2", "Bash", r#"{"command":"ls"}"#)]));
    model.assert_passes(&Responses, Streamed, stream(&allowed));
    let last = allowed.len() - 1;
    let at = |name: &str| allowed.iter().position(|event| event["type"] == name).unwrap();
    let added = allowed.iter().rposition(|event| event["type"] == "response.output_item.added").unwrap();
    let evil = Value::from(r#"{"command":"rm -rf /"}"#);
    let done = allowed.iter().rposition(|event| event["type"] == "response.output_item.done").unwrap();
    for (number, place) in [
        (at("response.function_call_arguments.done"), "/arguments"),
        (done, "/item/arguments"),
        (last, "/response/output/1/arguments"),
    ] {
        let mut events = allowed.clone();
        *events[number].pointer_mut(place).unwrap() = evil.clone();
        let answer = model.ask(&Responses, Streamed, stream(&events));
        assert_without(&answer, &["rm -rf", "response.completed"]);
        let end = answer.text();
        assert!(end.contains("event: response.failed\n") && end.contains("invalid_prompt"), "{place}: {end}");
    }
    for (number, place) in [(done, "/item/name"), (last, "/response/output/1/name"), (added, "/item/name")] {
        let mut events = allowed.clone();
        *events[number].pointer_mut(place).unwrap() = "get_weather".into();
        let answer = model.ask(&Responses, Streamed, stream(&events));
        assert!(!answer.text().contains("response.completed"), "{place}: {}", answer.text());
    }
}

/// F10: a call that only one of the copies has is judged by that one.
#[test]
fn a_call_that_comes_in_one_copy_alone_is_judged() {
    let model = Model::under(NO_FORCE);
    let all = |command: &str| {
        let input = json!({"command": command}).to_string();
        let mut events = responses::events(&said(&[("call_1", "Bash", "{}")]));
        let last = events.len() - 1;
        events[last]["response"]["output"][1]["arguments"] = input.clone().into();
        let done = events.iter().rposition(|event| event["type"] == "response.output_item.done").unwrap();
        events[done]["item"]["arguments"] = input.into();
        (events, done)
    };
    let numbered = |mut events: Vec<Value>| {
        events.iter_mut().enumerate().for_each(|(number, event)| event["sequence_number"] = number.into());
        named(&events)
    };
    let only_done = |command: &str| {
        let (events, done) = all(command);
        let is_call = |event: &Value| event["output_index"] == 1;
        let kept = events.iter().enumerate().filter(|(number, event)| !is_call(event) || *number == done);
        numbered(kept.map(|(_, event)| event.clone()).collect())
    };
    let only_last = |command: &str| {
        let (events, _) = all(command);
        numbered(events.into_iter().filter(|event| event["output_index"] != 1).collect())
    };

    for stream in [only_done("rm -rf /"), only_last("rm -rf /")] {
        let answer = model.ask(&Responses, Streamed, stream);
        assert_without(&answer, &["\"call_1\"", "rm -rf"]);
        assert!(answer.text().contains("Rule: agents/test/no-force"), "{}", answer.text());
    }
    model.assert_passes(&Responses, Streamed, only_done("ls"));
    model.assert_passes(&Responses, Streamed, only_last("ls"));
}

/// F12: a frame of an AWS event stream whose checksum is wrong ends the answer.
#[test]
fn a_frame_with_a_wrong_checksum_ends_the_answer() {
    let model = Model::under(NO_FORCE);
    let said = said(&[("call_1", "Bash", r#"{"command":"ls"}"#), ("call_2", "get_weather", "{}")]);
    for dialect in [&Converse as &dyn Dialect, &Invoke] {
        let fine = dialect.answer(&said, Streamed);
        for broken in [3, 5] {
            let mut pieces: Vec<Vec<u8>> = fine.iter().map(|piece| piece.to_vec()).collect();
            let middle = pieces[broken].len() - 20;
            pieces[broken][middle] ^= 1;
            let answer = model.ask(dialect, Streamed, pieces.concat());
            assert!(answer.text().contains("validationException"), "{}", answer.text());
            assert_without(&answer, &["call_1", "call_2"]);
        }
    }
    let exception = frames::frame("throttlingException", br#"{"message":"slow down"}"#);
    model.assert_passes(&Converse, Streamed, exception);
}

/// F13: a call of Gemini that comes in pieces is one call, in either framing.
#[test]
fn a_call_in_pieces_is_judged_whole() {
    let model = Model::under(NO_FORCE);
    let chunk =
        |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]});
    let piece = |value: &str, more: bool| {
        let argument = json!({"jsonPath": "$.command", "stringValue": value, "willContinue": more});
        chunk(json!({"functionCall": {"partialArgs": [argument], "willContinue": true}}))
    };
    let all = |command: [&str; 2]| {
        let last = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP", "index": 0}]});
        vec![
            chunk(json!({"text": "so"})),
            chunk(json!({"functionCall": {"id": "call_1", "name": "Bash", "willContinue": true}})),
            piece(command[0], true),
            piece(command[1], false),
            chunk(json!({"functionCall": {}})),
            last,
        ]
    };
    let events =
        |chunks: &[Value]| -> String { chunks.iter().map(|c| format!("data: {c}\r\n\r\n")).collect() };
    let array = |chunks: &[Value]| {
        let chunks: Vec<String> = chunks.iter().map(Value::to_string).collect();
        format!("[{}\n]", chunks.join("\n,\r\n"))
    };
    let (evil, fine) = (all(["rm -", "rf /"]), all(["l", "s"]));

    for (dialect, stream) in [(&gemini::Sse as &dyn Dialect, events(&evil)), (&gemini::Array, array(&evil))] {
        let heard = model.hear(dialect, Streamed, stream);
        assert!(heard.calls.is_empty(), "{heard:?}");
        assert!(
            heard.text.contains("Rule: agents/test/no-force") && heard.text.ends_with("done"),
            "{heard:?}"
        );
    }
    model.assert_passes(&gemini::Sse, Streamed, events(&fine));
    model.assert_passes(&gemini::Array, Streamed, array(&fine));
}

/// F18: a call that the provider has run already is recorded; under a denial it and its result are one text.
#[test]
fn a_call_that_ran_at_the_provider_is_judged_with_its_result() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!([{"type": "web_search_result", "url": "https://example.com/found", "title": "t"}]);
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found});
    let blocks = [
        call_with(0, search, &[r#"{"query":"q"}"#]),
        call_with(1, result, &[]),
        text(2, "found it"),
        call(3, "toolu_1", "get_weather", &["{}"]),
    ];
    let stream = named(&message(&blocks, "tool_use"));

    let denying = Model::under("tools: [{name: no-search, tools: [web_search], action: Deny}]");
    let answer = denying.ask(&Anthropic, Streamed, &stream);
    assert_without(&answer, &["srvtoolu_1", "example.com/found"]);
    let heard = Anthropic.hear(&answer.body, Streamed);
    assert_eq!(heard.text.matches("Rule: agents/test/no-search").count(), 1, "{}", heard.text);
    assert!(heard.text.ends_with("found it"), "{}", heard.text);
    assert_eq!(heard.calls.len(), 1);
    assert_eq!(denying.event("srvtoolu_1")["toolCall"]["hosted"], true);
    denying.assert_verdict("srvtoolu_1", Some("no-search"));

    let other = Model::under(NO_DELETE);
    other.assert_passes(&Anthropic, Streamed, &stream);
    other.assert_verdict("srvtoolu_1", None);
}

/// F19: what only looks like a call is text, and stays as it is.
#[test]
fn text_that_looks_like_a_call_is_left_alone() {
    let model = Model::under(&format!("toolDefault: Deny\n{NO_FORCE}"));
    let looks = [
        r#"<tool_call>{"name":"delete_file","arguments":{"id":7}}</tool_call>"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"rm -rf /"}}"#,
        "<function=Bash>rm -rf /</function>",
    ];
    for dialect in EVERY {
        for looks in looks {
            let body = dialect.answer(&Said { text: looks, calls: Vec::new() }, Streamed).concat();
            model.assert_passes(dialect, Streamed, body);
        }
    }
    let called = model.gateway.events().into_iter().filter(|event| event["kind"] == "ToolCall").count();
    assert_eq!(called, 0);
}

/// F20: an allowed answer is the provider's, byte by byte; beside a denied call, what is signed and counted stays.
#[test]
fn signatures_and_usage_stay_as_they_are() {
    let model = Model::under(NO_FORCE);
    let stream = |command: &str| {
        format!(
            "event: message_start\n\
             data: {{\"type\": \"message_start\", \"message\": {{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-5\",\"stop_reason\":null,\"usage\":{{\"input_tokens\":1.0e+2,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}}}}\n\n\
             event: ping\ndata: {{\"type\": \"ping\"}}\n\n\
             event: content_block_start\n\
             data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}}}\n\n\
             event: content_block_delta\n\
             data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"thinking_delta\",\"thinking\":\"\\u00e9t\\u00e9 \\/ \"}}}}\n\n\
             event: content_block_delta\n\
             data: {{\"index\":0,\"type\":\"content_block_delta\",\"delta\":{{\"signature\":\"EqQBCgIYAhIM1gbcDa9GJwZA2b3h\",\"type\":\"signature_delta\"}}}}\n\n\
             event: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":0 }}\n\n\
             {}\
             event: message_delta\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"tool_use\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":65}}   }}\n\n\
             event: message_stop\ndata: {{\"type\":\"message_stop\"       }}\n\n",
            named(&call(1, "toolu_1", "Bash", &[r#"{"command":"#, &format!("{command:?}}}")]))
        )
    };
    model.assert_passes(&Anthropic, Streamed, stream("ls"));

    let (sent, answer) = (stream("rm -rf /"), model.ask(&Anthropic, Streamed, stream("rm -rf /")));
    let before = |body: &str, at: &str| body.split_once(at).unwrap().0.to_owned();
    let call = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1";
    assert_eq!(before(&answer.text(), call), before(&sent, call));
    assert!(answer.text().contains(r#""usage":{"output_tokens":65}"#), "{}", answer.text());
    let event = model.gateway.wait_for_event("the usage", |event| {
        event["kind"] == "Response" && event["usage"]["outputTokens"] == 65
    });
    assert_eq!(event["usage"]["cacheReadTokens"], 3, "{event}");
}

/// F21: an upstream that breaks off inside a held call leaves no call, an error that its client understands, and a
/// record that says so.
#[test]
fn a_call_that_breaks_off_is_given_up_and_said() {
    let model = Model::under(NO_FORCE);
    let half = r#"{"command":"ls"#;
    let anthropic = {
        let mut events = message(&[text(0, "so"), call(1, "toolu_1", "Bash", &[half])], "tool_use");
        events.truncate(events.len() - 3);
        named(&events)
    };
    let chat = {
        let function = json!({"name": "Bash", "arguments": half});
        let start = json!({"index": 0, "id": "toolu_2", "type": "function", "function": function});
        let both = [
            choice(0, json!({"role": "assistant", "content": "so"}), None),
            choice(0, json!({"tool_calls": [start]}), None),
        ];
        chunks(&both).replace("data: [DONE]\n\n", "")
    };
    let responses = {
        let mut events = responses::events(&said(&[("toolu_3", "Bash", r#"{"command":"ls"}"#)]));
        events.truncate(events.len() - 4);
        named(&events)
    };
    for (id, dialect, stream, error) in [
        ("toolu_1", &Anthropic as &dyn Dialect, anthropic, "event: error\n"),
        ("toolu_2", &Chat, chat, r#"data: {"error":{"#),
        ("toolu_3", &Responses, responses, "event: response.failed\n"),
    ] {
        let gate = Gate::new();
        let steps = vec![Step::Data(stream.into()), Step::Wait(gate.clone()), Step::Abort];
        model.says(&[("content-type", "text/event-stream")], steps);
        let mut connection = model.listen(dialect);
        connection.read_until(br#""so""#);
        gate.open();
        let rest = connection.read_until(error.as_bytes());
        assert!(!String::from_utf8_lossy(&rest).contains(id), "{}", String::from_utf8_lossy(&rest));
        connection.ending();
        let event = model.event(id);
        assert_eq!(event["toolCall"]["incomplete"], true, "{event}");
        assert_eq!(event["decision"]["verdict"], "Deny", "{event}");
        assert!(event["toolCall"].get("inputSha256").is_none(), "{event}");
    }

    let whole = named(&message(&[call(0, "toolu_4", "Bash", &[half, "\"}"])], "tool_use"));
    model.assert_passes(&Anthropic, Streamed, whole);
    assert!(model.event("toolu_4")["toolCall"].get("incomplete").is_none());
}

/// F21: over h2 the error comes before the reset, too.
#[test]
fn over_h2_the_error_comes_before_the_reset() {
    let model = Model::under(NO_FORCE);
    let mut events =
        message(&[text(0, "so"), call(1, "toolu_1", "Bash", &[r#"{"command":"ls"#])], "tool_use");
    events.truncate(events.len() - 3);
    let gate = Gate::new();
    let steps = vec![Step::Data(named(&events).into()), Step::Wait(gate.clone()), Step::Abort];
    model.says(&[("content-type", "text/event-stream")], steps);
    let (host, path) = Anthropic.place(Streamed).unwrap();
    let connection = model.gateway.agent().h2(host);
    let question = Anthropic.request(&["Bash".to_owned()], Streamed).to_string();
    let headers = [("content-type", "application/json")];
    let body = whole(question.into(), None);
    let request = h2::request("POST", &format!("https://{host}{path}"), &headers, body);

    let mut answer = connection.send(request).head().unwrap();
    let mut came = String::new();
    while !came.contains("\"so\"") {
        came.push_str(std::str::from_utf8(&answer.chunk().unwrap()).unwrap());
    }
    gate.open();
    let rest = answer.rest();

    assert!(rest.text().contains("event: error\n"), "{came}{}", rest.text());
    assert!(!rest.complete && !came.contains("toolu_1") && !rest.text().contains("toolu_1"));
}
