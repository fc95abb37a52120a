//! What becomes of answers: calls that flow, wait or are denied, in every shape that they come in.

use serde_json::{Value, json};

use super::super::EVENTS;
use super::*;
use crate::provider::adapter::Framing;
use crate::provider::answer::Guard;
use crate::provider::answer::testing::{Names, fed, guarded, settings};

/// A stream of these events, with the name that their type is.
pub(super) fn stream(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

/// The events of a stream.
pub(super) fn events(stream: &str) -> Vec<Value> {
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|json| serde_json::from_str(json).unwrap())
        .collect()
}

fn guard() -> Guard {
    Guard::new(Box::new(MessagesTranscript::default()), Framing::Events(EVENTS), settings(Names::default()))
}

/// What goes on of a stream, in whatever pieces it comes.
fn passed(stream: &str) -> (String, Result<(), BrokenAnswer>) {
    let whole = guarded(Box::new(MessagesTranscript::default()), Framing::Events(EVENTS), stream.as_bytes());
    for piece in [1, 7, 64] {
        assert_eq!(fed(guard(), stream.as_bytes(), piece), whole, "in pieces of {piece}");
    }
    (String::from_utf8(whole.0).unwrap(), whole.1)
}

fn start() -> Value {
    start_with(&json!([]), &Value::Null)
}

fn start_with(content: &Value, stop_reason: &Value) -> Value {
    json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude",
        "content":content,"stop_reason":stop_reason,"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}})
}

fn block(index: u64, block: &Value) -> Value {
    json!({"type":"content_block_start","index":index,"content_block":block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type":"content_block_delta","index":index,"delta":delta})
}

fn stop(index: u64) -> Value {
    json!({"type":"content_block_stop","index":index})
}

fn ending(reason: &str) -> [Value; 2] {
    [
        json!({"type":"message_delta","delta":{"stop_reason":reason},"usage":{"output_tokens":9}}),
        json!({"type":"message_stop"}),
    ]
}

fn text(index: u64, said: &str) -> Vec<Value> {
    vec![
        block(index, &json!({"type":"text","text":""})),
        delta(index, &json!({"type":"text_delta","text":said})),
        stop(index),
    ]
}

fn call(index: u64, name: &str, pieces: &[&str]) -> Vec<Value> {
    let mut events =
        vec![block(index, &json!({"type":"tool_use","id":format!("toolu_{index}"),"name":name,"input":{}}))];
    events
        .extend(pieces.iter().map(|it| delta(index, &json!({"type":"input_json_delta","partial_json":it}))));
    events.push(stop(index));
    events
}

fn hosted(index: u64, name: &str) -> Vec<Value> {
    let id = format!("srv_{index}");
    vec![
        block(index, &json!({"type":"server_tool_use","id":id,"name":name,"input":{}})),
        delta(index, &json!({"type":"input_json_delta","partial_json":"{\"q\":\"forbidden\"}"})),
        stop(index),
    ]
}

fn result(index: u64, of: u64) -> Vec<Value> {
    let id = format!("srv_{of}");
    vec![block(index, &json!({"type":"web_search_tool_result","tool_use_id":id,"content":[]})), stop(index)]
}

fn answer(blocks: &[Vec<Value>], reason: &str) -> String {
    let mut events = vec![start()];
    events.extend(blocks.concat());
    events.extend(ending(reason));
    stream(&events)
}

/// What a client has in the end: each block's type with what it says, and the reason why the answer ended.
pub(super) fn seen(stream: &str) -> (Vec<(String, String)>, Option<String>) {
    let (mut blocks, mut reason, mut open) = (Vec::new(), None, None);
    for event in events(stream) {
        match event["type"].as_str().unwrap() {
            "message_start" => {
                let message = &event["message"];
                reason = message["stop_reason"].as_str().map(str::to_owned);
                for block in message["content"].as_array().unwrap() {
                    let says =
                        block["text"].as_str().map_or_else(|| block["input"].to_string(), str::to_owned);
                    blocks.push((block["type"].as_str().unwrap().to_owned(), says));
                }
            }
            "content_block_start" => {
                assert_eq!(open, None, "one block at a time");
                assert_eq!(event["index"], blocks.len() as u64, "numbers without a gap");
                open = event["index"].as_u64();
                blocks.push((event["content_block"]["type"].as_str().unwrap().to_owned(), String::new()));
            }
            "content_block_delta" => {
                assert_eq!(event["index"].as_u64(), open);
                let delta = &event["delta"];
                let said = delta["text"].as_str().or_else(|| delta["partial_json"].as_str());
                blocks.last_mut().unwrap().1.push_str(said.unwrap_or_default());
            }
            "content_block_stop" => {
                assert_eq!(event["index"].as_u64(), open);
                open = None;
            }
            "message_delta" => reason = event["delta"]["stop_reason"].as_str().map(str::to_owned),
            _ => {}
        }
    }
    assert_eq!(open, None, "every block ends");
    (blocks, reason)
}

fn refusal(tool: &str, advice: &str) -> (String, String) {
    let text = format!(
        "[postern] Tool call blocked by policy\nTool: {tool}\nRule: postern/builtin/test\nReason: a test says so\n{advice}\nEvent: 00000000-0000-7000-8000-000000000000\n\n"
    );
    ("text".to_owned(), text)
}

const NEVER: &str = "This tool is not available here.";
const NOT_SO: &str = "The tool itself is allowed; this use of it is not. Do not retry it unchanged.";

fn kinds(blocks: &[(String, String)]) -> Vec<&str> {
    blocks.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn what_is_allowed_passes_byte_for_byte() {
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let odd = "event: later\ndata: {\"type\":\"later\",  \"usage\": {\"n\":1.0} }\n\n";
    let calls = [text(0, "a"), call(1, "Flows", &["", "{\"a\":", "1}"]), call(2, "Held", &["{\"b\"", ":2}"])];
    let body = format!("{}{ping}{odd}", stream(&[start()]))
        + &answer(&calls, "tool_use")
            .replacen(&stream(&[start()]), "", 1)
            .replace("\"index\":1", "\"index\" : 1 ");
    assert_eq!(passed(&body), (body.clone(), Ok(())));
}

#[test]
fn a_call_that_is_denied_by_name_becomes_text_at_once() {
    let mut guard = guard();
    let begun = stream(&[start(), call(0, "Denied", &[])[0].clone()]);
    let mut out = Vec::new();
    guard.write(begun.into(), &mut out).unwrap();
    let begun = String::from_utf8(out.concat()).unwrap();
    assert_eq!(seen(&begun).0, [refusal("Denied", NEVER)]);
    let (done, result) = passed(&answer(&[call(0, "Denied", &["{\"a\"", ":1}"])], "tool_use"));
    assert_eq!(result, Ok(()));
    assert!(done.starts_with(&begun));
    assert_eq!(seen(&done), (vec![refusal("Denied", NEVER)], Some("end_turn".into())));
}

#[test]
fn what_stands_among_the_parts_of_a_denied_call_goes_on_behind_its_text() {
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    for (name, input) in [("Held", "{\"a\":\"forbidden\"}"), ("Denied", "{}")] {
        let held = call(0, name, &[input]);
        let body = format!("{}{ping}{}", stream(&[&[start()], &held[..1]].concat()), stream(&held[1..]));
        let (done, result) = passed(&body);
        assert_eq!((seen(&done).0.len(), result), (1, Ok(())));
        assert!(done.ends_with(ping), "{name}");
    }
}

#[test]
fn a_call_that_a_condition_denies_becomes_text_when_its_input_is_there() {
    let (done, result) =
        passed(&answer(&[text(0, "a"), call(1, "Held", &["{\"c\":\"forb", "idden\"}"])], "tool_use"));
    assert_eq!(result, Ok(()));
    let expected = vec![("text".into(), "a".into()), refusal("Held", NOT_SO)];
    assert_eq!(seen(&done), (expected, Some("end_turn".into())));
    assert!(!done.contains("forb"), "{done}");
}

#[test]
fn the_reason_of_the_end_stays_where_a_call_is_left_or_it_was_another() {
    let blocks = [call(0, "Denied", &["{}"]), call(1, "Held", &["{}"]), call(2, "Denied", &[])];
    let (done, _) = passed(&answer(&blocks, "tool_use"));
    let (blocks, reason) = seen(&done);
    assert_eq!((kinds(&blocks), reason.as_deref()), (vec!["text", "tool_use", "text"], Some("tool_use")));
    let (done, _) = passed(&answer(&[call(0, "Denied", &["{}"])], "max_tokens"));
    assert_eq!(seen(&done).1.as_deref(), Some("max_tokens"));
    let untouched = answer(&[text(0, "a")], "tool_use");
    assert_eq!(passed(&untouched).0, untouched, "what the provider says wrongly is not ours to correct");
}

#[test]
fn only_the_held_call_waits_and_the_watchdog_is_fed() {
    let mut guard = guard();
    let mut out = Vec::new();
    let held = call(1, "Held", &["{\"a\":1}"]);
    let begun = stream(&[[vec![start()], text(0, "a")].concat(), held[..2].to_vec()].concat());
    guard.write(begun.into(), &mut out).unwrap();
    assert!(guard.held() > 0);
    assert_eq!(guard.keep_alive().unwrap(), "event: ping\ndata: {\"type\": \"ping\"}\n\n");
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    guard.write(ping.into(), &mut out).unwrap();
    let now = String::from_utf8(out.concat()).unwrap();
    assert_eq!(seen(&now).0, [("text".to_owned(), "a".to_owned())]);
    guard.write(stream(&held[2..]).into(), &mut out).unwrap();
    assert_eq!(guard.held(), 0);
    assert_eq!(guard.keep_alive(), None);
    let done = String::from_utf8(out.concat()).unwrap();
    assert!(done.ends_with(&format!("{}{ping}{}", stream(&held[..2]), stream(&held[2..]))));
}

#[test]
fn the_input_may_stand_in_the_start_of_the_block() {
    let with = |input: &Value, pieces: &[&str]| {
        let mut events = call(0, "Held", pieces);
        events[0]["content_block"]["input"] = input.clone();
        answer(&[events], "tool_use")
    };
    let forbidden = json!({"a":"forbidden"});
    for pieces in [&[][..], &[""], &["{\"a\": \"forb", "idden\"}"]] {
        let (done, result) = passed(&with(&forbidden, pieces));
        assert_eq!((seen(&done).0, result), (vec![refusal("Held", NOT_SO)], Ok(())), "{pieces:?}");
    }
    let body = with(&json!({"a":1}), &[]);
    assert_eq!(passed(&body).0, body);
    let (done, result) = passed(&with(&json!({"a":1}), &["{\"a\":2}"]));
    assert_eq!(result.map_err(|broken| broken.forgivable), Err(false));
    assert!(!done.contains("tool_use") && events(&done).last().unwrap()["type"] == "error", "{done}");
}

#[test]
fn a_call_may_be_complete_in_the_first_event() {
    let tool = |name: &str, input: Value| json!({"type":"tool_use","id":"t","name":name,"input":input,"caller":{"type":"code_execution_20250825","tool_id":"s"}});
    let body =
        |content: Value| stream(&[start_with(&content, &json!("tool_use")), json!({"type":"message_stop"})]);
    let allowed = body(json!([tool("Held", json!({"a":1}))]));
    assert_eq!(passed(&allowed).0, allowed);
    let (done, _) = passed(&body(json!([tool("Held", json!({"a":"forbidden"})), tool("Denied", json!({}))])));
    let expected = vec![refusal("Held", NOT_SO), refusal("Denied", NEVER)];
    assert_eq!(seen(&done), (expected, Some("end_turn".into())));
    let (done, _) = passed(&body(json!([tool("Denied", json!({})), tool("Flows", json!({"x":1}))])));
    let (blocks, reason) = seen(&done);
    assert_eq!((kinds(&blocks), reason.as_deref()), (vec!["text", "tool_use"], Some("tool_use")));
}

#[test]
fn blocks_go_on_after_those_of_the_first_event() {
    let content = json!([{"type":"server_tool_use","id":"srv_0","name":"Denied","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"srv_0","content":[]}]);
    let mut events = vec![start_with(&content, &Value::Null)];
    events.extend(text(2, "a"));
    events.extend(ending("end_turn"));
    let (done, result) = passed(&stream(&events));
    assert_eq!(result, Ok(()));
    assert_eq!(seen(&done).0, [refusal("Denied", NEVER), ("text".to_owned(), "a".to_owned())]);
}

#[test]
fn a_hosted_call_and_its_result_become_one_text() {
    let blocks = [
        hosted(0, "Denied"),
        hosted(1, "Flows"),
        result(2, 0),
        result(3, 1),
        text(4, "a"),
        call(5, "Held", &["{}"]),
    ];
    let (done, result) = passed(&answer(&blocks, "tool_use"));
    assert_eq!(result, Ok(()));
    let (blocks, reason) = seen(&done);
    assert_eq!(kinds(&blocks), ["text", "server_tool_use", "web_search_tool_result", "text", "tool_use"]);
    assert_eq!(blocks[0], refusal("Denied", NEVER));
    assert_eq!(reason.as_deref(), Some("tool_use"));
}

#[test]
fn a_hosted_call_is_noted_as_such() {
    let mut guard = guard();
    let body = answer(&[hosted(0, "Held"), result(1, 0), call(2, "Denied", &["{}"])], "tool_use");
    let mut out = Vec::new();
    guard.write(body.into(), &mut out).unwrap();
    let noted: Vec<_> =
        guard.take_notes().into_iter().map(|note| (note.name, note.hosted, note.id)).collect();
    assert_eq!(noted, [("Held".into(), true, "srv_0".into()), ("Denied".into(), false, "toolu_2".into())]);
    let done = String::from_utf8(out.concat()).unwrap();
    assert_eq!(
        seen(&done),
        (vec![refusal("Held", NOT_SO), refusal("Denied", NEVER)], Some("end_turn".into()))
    );
}

#[test]
fn calls_of_toolsets_and_mcp_servers_have_their_namespace() {
    let mut toolset = call(0, "Denied", &["{}"]);
    toolset[0]["content_block"]["toolset_name"] = json!("browser");
    let mut mcp = hosted(1, "Denied");
    mcp[0]["content_block"]["type"] = json!("mcp_tool_use");
    mcp[0]["content_block"]["server_name"] = json!("deepwiki");
    let (done, _) = passed(&answer(&[toolset, mcp], "tool_use"));
    let expected = [refusal("browser.Denied", NEVER), refusal("deepwiki.Denied", NEVER)];
    assert_eq!(seen(&done).0, expected);
}

#[test]
fn a_block_of_an_unknown_type_with_name_and_input_is_a_call() {
    let mut later = call(0, "Denied", &["{}"]);
    later[0]["content_block"]["type"] = json!("future_tool_use");
    assert_eq!(seen(&passed(&answer(&[later], "tool_use")).0).0, [refusal("Denied", NEVER)]);
    let other = answer(&[vec![block(0, &json!({"type":"future","name":"a"})), stop(0)]], "end_turn");
    assert_eq!(passed(&other).0, other);
}

#[test]
fn an_input_that_is_no_json_or_too_long_is_denied_with_its_reason() {
    let long = "x".repeat(1 << 12);
    let mut pieces = vec!["{\"a\":\""];
    pieces.extend(vec![long.as_str(); 20]);
    pieces.push("\"}");
    for (pieces, reason) in [
        (vec!["{\"a\":"], "JSON that can be read"),
        (vec!["{\"a\":1,\"\\u0061\":2}"], "two readings"),
        (vec!["[1]"], "no JSON object"),
        (pieces, "limits.toolInputBytes"),
    ] {
        let (done, result) = passed(&answer(&[call(0, "Held", &pieces)], "tool_use"));
        let (blocks, ended) = seen(&done);
        assert_eq!((kinds(&blocks), ended.as_deref(), result), (vec!["text"], Some("end_turn"), Ok(())));
        assert!(blocks[0].1.contains(reason), "{}", blocks[0].1);
    }
}

#[test]
fn what_may_be_read_in_two_ways_goes_no_further() {
    let held = || call(0, "Held", &["{}"]);
    let doubled = |key: &str| {
        let event =
            stream(&held()[..1]).replacen(&format!("\"{key}\":"), &format!("\"{key}\":0,\"{key}\":"), 1);
        format!("{}{event}", stream(&[start()]))
    };
    let after = |events: &[Value]| stream(&[&[start()], events].concat());
    let json = |json: Value| json;
    for (what, body) in [
        ("a second start with another message", after(&[start_with(&json!([]), &json!("end_turn"))])),
        ("a block before the answer starts", stream(&held())),
        (
            "a delta before the answer starts",
            stream(&[delta(0, &json(json!({"type":"text_delta","text":"a"})))]),
        ),
        (
            "two blocks at once",
            after(&[held()[0].clone(), block(1, &json(json!({"type":"text","text":""})))]),
        ),
        ("a gap in the numbers", after(&call(1, "Held", &[]))),
        ("a number twice", after(&[text(0, "a"), held()].concat())),
        ("a number that is none", after(&held()).replace("\"index\":0", "\"index\":0.0")),
        ("no number", after(&held()).replace("\"index\":0,", "")),
        ("two stops", after(&[text(0, "a"), vec![stop(0)]].concat())),
        ("a delta of a closed block", after(&[text(0, "a"), vec![text(0, "a")[1].clone()]].concat())),
        ("a delta of another block", after(&[held()[0].clone(), call(1, "Held", &["{}"])[1].clone()])),
        ("text in a call", after(&[held()[0].clone(), text(0, "a")[1].clone()])),
        ("input in a text", after(&[text(0, "a")[0].clone(), held()[1].clone()])),
        (
            "input that is no string",
            after(&[
                held()[0].clone(),
                delta(0, &json(json!({"type":"input_json_delta","partial_json":{}}))),
            ]),
        ),
        ("a call without a name", after(&held()).replace("\"name\":\"Held\",", "")),
        ("a name that is no string", after(&held()).replace("\"name\":\"Held\"", "\"name\":[\"Held\"]")),
        ("a name twice", doubled("name")),
        ("a block twice", doubled("content_block")),
        ("a type twice", doubled("type")),
        ("an unknown event with a call", after(&[json(json!({"type":"later","x":[{"type":"tool_use"}]}))])),
        ("the end of the body inside a call", after(&held()[..2])),
    ] {
        let (done, result) = passed(&body);
        assert_eq!(
            result.map_err(|broken| (broken.rule, broken.forgivable)),
            Err(("unparseable", false)),
            "{what}"
        );
        let told = events(&done);
        let last = told.last().unwrap();
        assert_eq!(
            (&last["type"], &last["error"]["type"]),
            (&json!("error"), &json!("permission_error")),
            "{what}"
        );
        assert!(!done.contains("\"partial_json\""), "{what}: {done}");
    }
}

#[test]
fn a_start_that_says_nothing_new_passes_and_late_it_does_not() {
    let twice = stream(&[vec![start(), start()], text(0, "a"), ending("end_turn").to_vec()].concat());
    assert_eq!(passed(&twice), (twice.clone(), Ok(())));
    for late in [[text(0, "a"), vec![start()]].concat(), vec![call(0, "Held", &[])[0].clone(), start()]] {
        let (done, result) = passed(&stream(&[vec![start()], late].concat()));
        assert_eq!(result.map_err(|broken| broken.forgivable), Err(false), "{done}");
    }
}

#[test]
fn a_message_may_end_inside_a_block() {
    for (block, reason, expected) in [
        (&text(0, "a")[..2], "max_tokens", "max_tokens"),
        (&call(0, "Held", &["{\"a"])[..2], "max_tokens", "max_tokens"),
        (&call(0, "Held", &["{}"])[..2], "tool_use", "end_turn"),
        (&call(0, "Free", &["{\"a"])[..2], "max_tokens", "max_tokens"),
    ] {
        let body = stream(&[&[start()], block, &ending(reason)].concat());
        let (done, result) = passed(&body);
        assert_eq!(result, Ok(()), "{done}");
        assert!(done.contains(expected) && !done.contains("\"name\":\"Held\""), "{done}");
        assert_eq!(done == body, !body.contains("Held"), "{done}");
    }
    let held = call(0, "Held", &["{}"]);
    let more = stream(&[start(), held[0].clone(), ending("max_tokens")[0].clone(), held[1].clone()]);
    let (done, result) = passed(&more);
    assert!(result.is_err() && !done.contains("partial_json"), "{done}");
}

#[test]
fn an_error_of_the_provider_ends_the_answer_and_what_was_held() {
    let error = json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
    let body = stream(&[vec![start()], call(0, "Held", &["{}"])[..2].to_vec(), vec![error.clone()]].concat());
    let (done, result) = passed(&body);
    assert_eq!((done, result), (stream(&[start(), error]), Ok(())));
}

#[test]
fn where_the_upstream_breaks_off_a_held_call_is_given_up() {
    let mut guard = guard();
    let mut out = Vec::new();
    let begun = stream(&[vec![start()], call(0, "Held", &["{}"])[..2].to_vec()].concat());
    guard.write(begun.into(), &mut out).unwrap();
    guard.broken_off(&mut out);
    let told = events(&String::from_utf8(out.concat()).unwrap());
    assert_eq!(told.last().unwrap()["type"], "error");
    let notes = guard.take_notes();
    assert_eq!((notes.len(), notes[0].incomplete), (1, true));
}

fn whole(body: &Value) -> Result<Value, BrokenAnswer> {
    let bytes = guard().whole(body.to_string().into())?;
    Ok(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn a_whole_answer_meets_the_same_verdicts() {
    let tool = |name: &str, input: Value| json!({"type":"tool_use","id":"t","name":name,"input":input});
    let message = |content: Value, reason: &str| json!({"id":"msg_1","type":"message","role":"assistant","model":"claude","content":content,"stop_reason":reason,"usage":{"input_tokens":1,"output_tokens":2}});
    let text = |(_, text): (String, String)| json!({"type":"text","text":text});
    let said = json!({"type":"text","text":"a"});
    for (content, reason, expected, ended) in [
        (
            json!([said, tool("Held", json!({"a":1}))]),
            "tool_use",
            json!([said, tool("Held", json!({"a":1}))]),
            "tool_use",
        ),
        (
            json!([said, tool("Denied", json!({}))]),
            "tool_use",
            json!([said, text(refusal("Denied", NEVER))]),
            "end_turn",
        ),
        (
            json!([tool("Held", json!({"a":"forbidden"})), tool("Flows", json!({}))]),
            "tool_use",
            json!([text(refusal("Held", NOT_SO)), tool("Flows", json!({}))]),
            "tool_use",
        ),
        (
            json!([{"type":"server_tool_use","id":"s","name":"Denied","input":{}}, {"type":"x_tool_result","tool_use_id":"s"}, said]),
            "pause_turn",
            json!([text(refusal("Denied", NEVER)), said]),
            "pause_turn",
        ),
    ] {
        assert_eq!(whole(&message(content, reason)), Ok(message(expected, ended)));
    }
    let body = "{ \"content\" : [ {\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Held\",\"input\":{\"n\":1.50}} ] }\n";
    assert_eq!(guard().whole(body.into()).unwrap(), body, "byte for byte");
}

#[test]
fn what_is_no_message_passes_unless_it_holds_a_call() {
    let error = json!({"type":"error","error":{"type":"overloaded_error","message":"m"}});
    assert_eq!(whole(&error), Ok(error));
    let hidden = json!({"message":{"content":[{"type":"tool_use","name":"Denied","input":{}}]}});
    assert_eq!(whole(&hidden).map_err(|broken| broken.forgivable), Err(false));
    let twice = r#"{"content":[],"content":[{"type":"tool_use","id":"t","name":"Denied","input":{}}]}"#;
    assert!(guard().whole(twice.into()).is_err());
}

#[test]
fn an_answer_says_its_model_its_id_and_its_tokens() {
    let mut guard = guard();
    guard.write(answer(&[text(0, "a")], "end_turn").into(), &mut Vec::new()).unwrap();
    let facts = guard.facts();
    assert_eq!((facts.model.as_deref(), facts.id.as_deref()), (Some("claude"), Some("msg_1")));
    assert_eq!((facts.usage.input, facts.usage.output, facts.usage.cache_read), (Some(7), Some(9), Some(4)));
    let fallback =
        vec![block(0, &json!({"type":"fallback","from":{"model":"claude"},"to":{"model":"other"}})), stop(0)];
    let mut guard = self::guard();
    guard.write(answer(&[fallback], "end_turn").into(), &mut Vec::new()).unwrap();
    assert_eq!(guard.facts().model.as_deref(), Some("other"));
}

#[test]
fn where_nothing_can_be_denied_bytes_pass_whatever_they_are() {
    let observing = || {
        let observes = settings(Names { observes: true });
        Guard::new(Box::new(MessagesTranscript::default()), Framing::Events(EVENTS), observes)
    };
    for body in [answer(&[call(0, "Denied", &["{}"])], "tool_use"), stream(&[start(), start()])] {
        assert_eq!(fed(observing(), body.as_bytes(), 5), (body.into_bytes(), Ok(())));
    }
}

#[test]
fn an_event_that_says_only_by_its_name_what_it_is_does_not_go_on() {
    let call = json!({"type":"tool_use","id":"t","name":"Held","input":{}});
    let piece = |text: &str| delta(0, &json!({"type":"input_json_delta","partial_json":text}));
    let begun = stream(&[start(), block(0, &call), piece("{\"a\":\"")]);
    let hidden = stream(&[piece("forbidden")]).replacen("\"type\":\"content_block_delta\"", "\"x\":0", 1);
    assert!(hidden.contains("event: content_block_delta") && hidden.contains("\"x\":0"), "{hidden}");
    let rest = stream(&[piece("\"}"), stop(0)]);
    let (out, result) = passed(&format!("{begun}{hidden}{rest}"));
    assert!(result.is_err_and(|broken| !broken.forgivable));
    assert!(!out.contains("tool_use"), "{out}");
}

#[test]
fn the_input_of_a_call_that_flows_is_counted_until_it_ends() {
    let call = json!({"type":"tool_use","id":"t","name":"Free","input":{}});
    let piece = delta(0, &json!({"type":"input_json_delta","partial_json":"{}"}));
    let mut guard = guard();
    let mut write = |events: &[Value]| {
        guard.write(stream(events).into(), &mut Vec::new()).unwrap();
        (guard.held(), guard.kept_bytes())
    };
    assert_eq!(write(&[start(), block(0, &call)]), (0, 0));
    assert_eq!(write(&[piece.clone(), piece]), (0, 4));
    assert_eq!(write(&[stop(0)]), (0, 0));
}
