//! Tables of answers of Bedrock with what becomes of them, streamed, whole, and inside InvokeModel.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::testing::{Turns, frame, frames, guard, lines, streamed, whole};
use crate::provider::answer::testing::Names;
use crate::wire::event_stream::{self, Header, Value};

const CONVERSE: &str = "amazon.nova-pro-v1%3A0/converse-stream";
const CLAUDE: &str = "anthropic.claude-v2/invoke-with-response-stream";
const NOVA: &str = "amazon.nova-pro-v1%3A0/invoke-with-response-stream";

/// A block that calls a tool; `kind` is more of its start.
fn call(index: u32, name: &str, input: &str, kind: &str) -> Vec<String> {
    let (start, end) = input.split_at(input.len() / 2);
    let piece = |text: &str| {
        let text = serde_json::Value::from(text);
        format!(
            r#"contentBlockDelta {{"contentBlockIndex":{index},"delta":{{"toolUse":{{"input":{text}}}}},"p":"ab"}}"#
        )
    };
    vec![
        format!(
            r#"contentBlockStart {{"contentBlockIndex":{index},"p":"a","start":{{"toolUse":{{"name":"{name}","toolUseId":"t{index}"{kind}}}}}}}"#
        ),
        piece(start),
        piece(end),
        format!(r#"contentBlockStop {{"contentBlockIndex":{index},"p":"abc"}}"#),
    ]
}

fn text(index: u32, text: &str) -> Vec<String> {
    vec![
        format!(r#"contentBlockDelta {{"contentBlockIndex":{index},"delta":{{"text":"{text}"}}}}"#),
        format!(r#"contentBlockStop {{"contentBlockIndex":{index}}}"#),
    ]
}

/// A stream of these blocks.
fn message(blocks: &[Vec<String>]) -> Vec<String> {
    let mut all = vec![r#"messageStart {"role":"assistant","p":"abcd"}"#.to_owned()];
    all.extend(blocks.iter().flatten().cloned());
    all.push(r#"messageStop {"stopReason":"tool_use","p":"x"}"#.to_owned());
    all.push(r#"metadata {"usage":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":4}}"#.to_owned());
    all
}

fn bytes(all: &[String]) -> Vec<u8> {
    frames(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What a stream becomes where `Denied` is denied at its start, and `Held` where its input says `forbidden`.
fn judged(all: &[String]) -> Vec<String> {
    let (out, ended) = streamed(CONVERSE, Names::default(), &bytes(all), 1 << 20);
    assert_eq!(ended, Ok(()));
    lines(&out)
}

/// A line without the text that stands in a call's place.
fn short(line: &str) -> String {
    match line.split_once("[postern]") {
        Some((before, _)) => format!("{before}…"),
        None => line.to_owned(),
    }
}

#[test]
fn a_denied_call_becomes_a_text_with_the_same_number() {
    for (name, input) in [("Denied", "{}"), ("Held", r#"{"a":"forbidden"}"#), ("Held", "{"), ("Held", "[1]")]
    {
        let all = message(&[text(0, "hi"), call(1, name, input, ""), text(2, "bye")]);
        let out: Vec<String> = judged(&all).iter().map(|line| short(line)).collect();
        let mut expected = all[..3].to_vec();
        expected.push(r#"contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"…"#.to_owned());
        expected.extend_from_slice(&all[6..9]);
        expected.push(r#"messageStop {"stopReason":"end_turn","p":"x"}"#.to_owned());
        expected.push(all[10].clone());
        assert_eq!(out, expected, "{name} {input}");
    }
}

#[test]
fn what_is_allowed_stays_byte_for_byte() {
    for (name, input, kind) in [
        ("Held", r#"{"a":1}"#, ""),
        ("Held", "", ""),
        ("Free", r#"{"a":"forbidden"}"#, ""),
        ("Free", "{", ""),
        ("Held", "{}", r#","type":"tool_use""#),
        ("Held", "{}", r#","type":"server_tool_use""#),
    ] {
        let all =
            message(&[text(0, "hi"), call(1, name, input, kind), call(2, name, input, kind), text(3, "bye")]);
        assert_eq!(judged(&all), all, "{name} {input}");
    }
}

#[test]
fn the_reason_to_stop_stays_while_a_call_is_left() {
    let stop = |blocks: &[Vec<String>]| judged(&message(blocks)).iter().rev().nth(1).cloned().unwrap();
    let (denied, free) = (call(0, "Denied", "{}", ""), call(1, "Free", "{}", ""));
    assert!(stop(&[denied.clone(), free]).contains("tool_use"));
    assert!(stop(&[denied.clone(), call(1, "Held", "{}", "")]).contains("tool_use"));
    assert!(stop(&[denied.clone(), call(1, "Held", r#"{"a":"forbidden"}"#, "")]).contains("end_turn"));
    let mut all = message(&[denied]);
    let last = all.len() - 2;
    all[last] = r#"messageStop {"stopReason":"max_tokens"}"#.to_owned();
    assert!(judged(&all)[last - 2].contains("max_tokens"), "only what said tool_use is changed");
}

#[test]
fn a_hosted_call_goes_with_its_result_and_later_blocks_count_less() {
    let result = vec![
        r#"contentBlockStart {"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"t0","status":"success"}}}"#.to_owned(),
        r#"contentBlockDelta {"contentBlockIndex":1,"delta":{"toolResult":[{"json":{"stdOut":"secret"}}]}}"#.to_owned(),
        r#"contentBlockStop {"contentBlockIndex":1}"#.to_owned(),
    ];
    for name in ["Denied", "Held"] {
        let hosted = call(0, name, r#"{"a":"forbidden"}"#, r#","type":"server_tool_use""#);
        let all = message(&[hosted, result.clone(), text(2, "bye"), call(3, "Free", "{}", "")]);
        let out = judged(&all);
        assert!(out[1].contains(r#""contentBlockIndex":0,"delta":{"text":"[postern]"#), "{out:?}");
        assert!(!out.concat().contains("secret"));
        assert_eq!(out[3], r#"contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"bye"}}"#);
        assert_eq!(out[5], all[10].replace(r#"Index":3"#, r#"Index":2"#));
        assert_eq!(out[9], all[14], "a call of the client's is left");
    }
    let free = call(0, "Free", "{}", r#","type":"server_tool_use""#);
    let all = message(&[free, result, text(2, "bye")]);
    assert_eq!(judged(&all), all);
}

#[test]
fn a_stream_with_two_readings_is_broken_off_by_an_exception() {
    let start = |index: u32| call(index, "Held", "{}", "")[0].clone();
    let piece = |index: u32| call(index, "Held", "{}", "")[1].clone();
    let stop = |index: u32| call(index, "Held", "{}", "")[3].clone();
    let held = |start: &str| vec![start.to_owned()];
    for blocks in [
        vec![start(0), start(1)],
        vec![start(0), piece(1)],
        vec![start(0), stop(1)],
        vec![start(0), text(0, "x")[0].clone()],
        vec![start(0), stop(0), stop(0)],
        vec![start(0), stop(0), start(0)],
        vec![start(1), stop(1), start(0)],
        vec![piece(0)],
        vec![text(0, "x")[0].clone(), piece(0)],
        vec![text(0, "x")[0].clone(), text(1, "y")[0].clone()],
        held(r#"newEvent {"x":[{"toolUse":{"name":"Denied"}}]}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"1"}}}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":1}}}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"a","name":"b"}}}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"a","input":{"b":1}}}}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"a"},"toolResult":{}}}"#),
        held(r#"contentBlockStart {"contentBlockIndex":0,"contentBlockIndex":1,"start":{}}"#),
        held(r#"contentBlockStart {"start":{"toolUse":{"name":"a"}}}"#),
        vec![
            start(0),
            r#"contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":{}}}}"#.to_owned(),
        ],
    ] {
        let (out, ended) =
            streamed(CONVERSE, Names::default(), &bytes(&message(std::slice::from_ref(&blocks))), 1 << 20);
        assert!(ended.is_err(), "{blocks:?}");
        let out = lines(&out);
        assert!(out.last().unwrap().starts_with(r#"validationException {"message":"[postern]"#), "{out:?}");
        assert!(!out.concat().contains("messageStop"), "{out:?}");
    }
}

#[test]
fn exceptions_and_unknown_events_go_on_as_they_came() {
    let all = [
        r#"messageStart {"role":"assistant"}"#,
        r#"newEvent {"x":1}"#,
        r#"throttlingException {"message":"slow down"}"#,
    ];
    let (out, ended) = streamed(CONVERSE, Names::default(), &frames(&all), 5);
    assert_eq!((lines(&out), ended), (all.map(str::to_owned).to_vec(), Ok(())));
}

#[test]
fn what_an_answer_cost_is_read() {
    let mut guard = guard(CONVERSE, Names::default());
    guard.write(bytes(&message(&[])).into(), &mut Vec::new()).unwrap();
    let router = r#"{"usage":{"inputTokens":1},"trace":{"promptRouter":{"invokedModelId":"arn:x/claude"}}}"#;
    let usage = guard.facts().usage;
    assert_eq!((usage.input, usage.output, usage.cache_read), (Some(5), Some(2), Some(4)));
    assert_eq!(guard.facts().model.as_deref(), Some("amazon.nova-pro-v1:0"));
    guard.write(frame("metadata", router).into(), &mut Vec::new()).unwrap();
    assert_eq!(guard.facts().model.as_deref(), Some("arn:x/claude"));
}

#[test]
fn whole_answers_meet_the_same_verdicts() {
    let body = |blocks: &str, reason: &str| {
        format!(
            r#"{{"output": {{"message": {{"content": [{blocks}], "role": "assistant"}}}}, "stopReason": "{reason}"}}"#
        )
    };
    let call = |name: &str, kind: &str| {
        format!(
            r#"{{"toolUse": {{"toolUseId": "t", "name": "{name}", "input": {{"a": "forbidden"}}{kind}}}}}"#
        )
    };
    let said = |blocks: &str| whole("x.y/converse", Names::default(), &body(blocks, "tool_use"));
    let (free, hosted) = (call("Free", ""), r#", "type": "server_tool_use""#);
    assert_eq!(said(&free).unwrap(), body(&free, "tool_use"));
    for name in ["Denied", "Held"] {
        let out = said(&format!(r#"{{"text": "hi"}}, {}"#, call(name, ""))).unwrap();
        assert!(
            out.contains(r#"[{"text": "hi"}, {"text":"[postern]"#)
                && out.contains(r#""stopReason": "end_turn""#),
            "{out}"
        );
        let out = said(&format!("{}, {free}", call(name, ""))).unwrap();
        assert!(out.contains(&free) && out.contains(r#""stopReason": "tool_use""#), "{out}");
        let result = r#"{"toolResult": {"toolUseId": "t", "content": []}}"#;
        let out = said(&format!("{}, {result}", call(name, hosted))).unwrap();
        assert!(!out.contains("toolResult") && !out.contains("toolUse"), "{out}");
    }
    for blocks in [
        r#"{"toolUse": {"name": "Free"}, "toolUse": {"name": "Denied"}}"#,
        r#"{"toolUse": {"name": "Free"}, "text": "x"}"#,
        r#"{"toolUse": {"input": {}}}"#,
    ] {
        assert!(said(blocks).is_err(), "{blocks}");
    }
    let error = r#"{"message": "The provided model identifier is invalid."}"#;
    assert_eq!(whole("x.y/converse", Names::default(), error).unwrap(), error);
}

/// Frames of InvokeModel around these events.
fn chunks(events: &[&str]) -> Vec<u8> {
    let wrapped = |event: &&str| {
        frame("chunk", &format!(r#"{{"bytes":"{}","p":"abc"}}"#, BASE64_STANDARD.encode(event)))
    };
    events.iter().flat_map(wrapped).collect()
}

/// What stands in frames of InvokeModel.
fn unwrapped(stream: &[u8]) -> Vec<String> {
    let lines = lines(stream);
    let inner = lines.iter().filter_map(|line| line.strip_prefix("chunk "));
    let decoded = inner.map(|json| {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        BASE64_STANDARD.decode(json["bytes"].as_str().unwrap()).unwrap()
    });
    decoded.map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

const MESSAGES: [&str; 7] = [
    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"NAME","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"forbidden\"}"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}"#,
    r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":1,"outputTokenCount":3}}"#,
];

#[test]
fn messages_inside_invoke_meet_the_same_verdicts() {
    for (name, is_denied) in [("Denied", true), ("Held", true), ("Free", false)] {
        let start = MESSAGES[1].replace("NAME", name);
        let events = [MESSAGES[0], &start, MESSAGES[2], MESSAGES[3], MESSAGES[4], MESSAGES[5], MESSAGES[6]];
        let stream = chunks(&events);
        let (out, ended) = streamed(CLAUDE, Names::default(), &stream, stream.len());
        assert_eq!(ended, Ok(()), "{name}");
        assert_eq!(out != stream, is_denied, "{name}");
        let inner = unwrapped(&out).concat();
        assert_eq!(inner.contains("end_turn") && inner.contains("[postern]"), is_denied, "{inner}");
        assert_eq!(inner.contains("tool_use"), !is_denied, "{inner}");
        assert!(out.ends_with(&chunks(&events[6..])), "what is not edited is the frame that came");
        for piece in [1, 100] {
            assert_eq!(streamed(CLAUDE, Names::default(), &stream, piece).0, out);
        }
    }
}

#[test]
fn novas_own_stream_meets_the_same_verdicts() {
    let keyed =
        |line: &String| line.split_once(' ').map(|(name, json)| format!(r#"{{"{name}":{json}}}"#)).unwrap();
    for (name, is_denied) in [("Denied", true), ("Held", true), ("Free", false)] {
        let all: Vec<String> =
            message(&[call(0, name, r#"{"a":"forbidden"}"#, "")]).iter().map(keyed).collect();
        let stream = chunks(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let (out, ended) = streamed(NOVA, Names::default(), &stream, 64);
        assert_eq!((ended, out != stream), (Ok(()), is_denied), "{name}");
        let inner = unwrapped(&out).join("\n");
        let text = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"[postern]"#;
        assert_eq!(inner.contains(text) && inner.contains("end_turn"), is_denied, "{inner}");
    }
}

#[test]
fn chat_completions_inside_invoke_meet_the_same_verdicts() {
    let path = "openai.gpt-oss-120b-1%3A0/invoke-with-response-stream";
    let chunk = |delta: &str, reason: &str| {
        format!(
            r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}"#
        )
    };
    for (name, is_denied) in [("Denied", true), ("Held", true), ("Free", false)] {
        let function = format!(r#"{{"name":"{name}","arguments":"{{\"a\":\"forbidden\"}}"}}"#);
        let call = format!(
            r#"{{"role":"assistant","tool_calls":[{{"index":0,"id":"t","type":"function","function":{function}}}]}}"#
        );
        let metrics =
            r#"{"choices":[],"amazon-bedrock-invocationMetrics":{"inputTokenCount":1,"outputTokenCount":3}}"#;
        let stream = chunks(&[&chunk(&call, "null"), &chunk("{}", "\"tool_calls\""), metrics]);
        let (out, ended) = streamed(path, Names::default(), &stream, 64);
        assert_eq!((ended, out != stream), (Ok(()), is_denied), "{name}");
        let inner = unwrapped(&out).concat();
        assert_eq!(inner.contains("[postern]") && !inner.contains("tool_calls"), is_denied, "{inner}");
        let whole_answer = format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"t","type":"function","function":{function}}}]}},"finish_reason":"tool_calls"}}]}}"#
        );
        let out = whole("openai.gpt-oss-120b-1%3A0/invoke", Names::default(), &whole_answer).unwrap();
        assert_eq!(out.contains("[postern]") && !out.contains("tool_calls"), is_denied, "{out}");
    }
}

#[test]
fn what_may_be_a_call_in_an_api_that_is_not_known_is_refused() {
    let judged =
        |events: &[&str]| streamed("x.y/invoke-with-response-stream", Names::default(), &chunks(events), 64);
    for event in [
        r#"{"outputText":"hi","index":0,"completionReason":null}"#,
        r#"{"generation":"hi","stop_reason":"tool_use"}"#,
        r#"{"choices":[{"delta":{"content":"hi","tool_calls":null}}]}"#,
        r#"{"event_type":"stream-end","response":{"tool_calls":[]}}"#,
    ] {
        assert_eq!(judged(&[event]), (chunks(&[event]), Ok(())), "{event}");
    }
    for event in [
        r#"{"event_type":"tool-calls-generation","tool_calls":[{"name":"Denied"}]}"#,
        r#"{"generation":"x","toolCalls":[{"name":"Denied"}]}"#,
        r#"{"a":[[{"function_call":{"name":"Denied"}}]]}"#,
    ] {
        let (out, ended) = judged(&[event]);
        assert!(ended.is_err(), "{event}");
        assert!(lines(&out)[0].starts_with("validationException"), "{event}");
        assert!(whole("x.y/invoke", Names::default(), event).is_err(), "{event}");
    }
    let (out, ended) = judged(&[MESSAGES[0], r#"{"messageStop":{}}"#]);
    assert!(ended.is_err() && lines(&out).len() == 2, "an answer does not change its API");
    let broken = frame("chunk", r#"{"bytes":"%"}"#);
    assert!(streamed(CLAUDE, Names::default(), &broken, 64).1.is_err());
}

#[test]
fn a_whole_answer_of_invoke_is_that_of_its_api() {
    let claude = r#"{"id":"m","type":"message","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t","name":"NAME","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let nova = r#"{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"NAME","input":{}}}],"role":"assistant"}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2}}"#;
    for (path, body) in [("anthropic.claude-v2/invoke", claude), ("amazon.nova-pro-v1%3A0/invoke", nova)] {
        let free = body.replace("NAME", "Free");
        assert_eq!(whole(path, Turns::AllowAll, &free).unwrap(), free);
        let denied = whole(path, Names::default(), &body.replace("NAME", "Denied")).unwrap();
        assert!(
            denied.contains("[postern]") && denied.contains("end_turn") && !denied.contains("tool_use"),
            "{denied}"
        );
    }
}

#[test]
fn nothing_keeps_the_watchdog_and_a_call_that_never_ends_is_given_up() {
    let mut guard = guard(CONVERSE, Names::default());
    let mut out = Vec::new();
    let start = frames(&[&call(0, "Held", "{}", "")[0]]);
    guard.write(start.clone().into(), &mut out).unwrap();
    assert!(guard.held() >= start.len() && guard.keep_alive().is_none());
    out.clear();
    guard.broken_off(&mut out);
    let notes = guard.take_notes();
    assert!(notes.len() == 1 && notes[0].incomplete && guard.held() == 0);
    assert!(lines(&out.concat())[0].starts_with("validationException"));
}

#[test]
fn a_frame_that_clients_take_for_different_things_does_not_go_on() {
    let denied = r#"{"type":"message_start","message":{"content":[{"type":"tool_use","id":"t","name":"Denied","input":{}}]}}"#;
    let payload = format!(r#"{{"bytes":"{}"}}"#, BASE64_STANDARD.encode(denied));
    let chunk = Header::string(":event-type", "chunk");
    for headers in [
        vec![chunk.clone()],
        vec![chunk.clone(), Header::string(":message-type", "Event")],
        vec![chunk, Header { name: ":message-type".to_owned(), value: Value::Bytes("event".into()) }],
    ] {
        let mut stream = Vec::new();
        event_stream::encode(&headers, payload.as_bytes(), &mut stream).unwrap();
        let (out, ended) = streamed(CLAUDE, Names::default(), &stream, 1 << 20);
        assert!(ended.is_err_and(|broken| !broken.forgivable), "{headers:?}");
        assert!(lines(&out).iter().all(|line| !line.contains("bytes")));
    }
}
