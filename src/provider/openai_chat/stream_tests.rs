//! Streams in every shape: what passes is unchanged, what waits overtakes nothing, what is denied becomes text.

use super::testing::{Choice, judged, read, stream};
use crate::provider::answer::testing::Names;
use crate::wire::json::testing::bytes_read;

const ROLE: &str = r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#;
const DENIED: &str = "[postern] Tool call blocked by policy\nTool: Denied\nRule: postern/builtin/test\nReason: a test says so\nThis tool is not available here.\nEvent: 00000000-0000-7000-8000-000000000000\n\n";
const HELD: &str = "[postern] Tool call blocked by policy\nTool: Held\nRule: postern/builtin/test\nReason: a test says so\nThe tool itself is allowed; this use of it is not. Do not retry it unchanged.\nEvent: 00000000-0000-7000-8000-000000000000\n\n";

fn chunk(choice: u64, delta: &str, finish: &str) -> String {
    let finish = if finish.is_empty() { "null".to_owned() } else { format!("\"{finish}\"") };
    format!(r#"{{"id":"c","choices":[{{"index":{choice},"delta":{delta},"finish_reason":{finish}}}]}}"#)
}

fn start(index: u64, name: &str) -> String {
    let call = format!(
        r#"{{"tool_calls":[{{"index":{index},"id":"call_{index}","type":"function","function":{{"name":"{name}","arguments":""}}}}]}}"#
    );
    chunk(0, &call, "")
}

fn input(index: u64, piece: &str) -> String {
    let piece = serde_json::Value::from(piece);
    chunk(0, &format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{piece}}}}}]}}"#), "")
}

fn text(text: &str) -> String {
    chunk(0, &format!(r#"{{"content":"{text}"}}"#), "")
}

fn finish(reason: &str) -> String {
    chunk(0, "{}", reason)
}

/// What becomes of a stream, the same however it is cut.
#[track_caller]
fn out(chunks: &[String]) -> String {
    let stream = stream(chunks);
    let (whole, result) = judged(&stream, Names::default(), stream.len());
    assert_eq!(result, Ok(()));
    for piece in [1, 7, 100] {
        assert_eq!(judged(&stream, Names::default(), piece).0, whole, "in pieces of {piece}");
    }
    whole
}

#[track_caller]
fn one(chunks: &[String]) -> Choice {
    read(&out(chunks)).remove(&0).unwrap()
}

#[track_caller]
fn unchanged(chunks: &[String]) {
    assert_eq!(out(chunks), stream(chunks));
}

#[track_caller]
fn refused(chunks: &[String], reason: &str) {
    let (out, result) = judged(&stream(chunks), Names::default(), 1 << 20);
    let broken = result.unwrap_err();
    assert!(!broken.forgivable);
    assert!(broken.reason.contains(reason), "{broken}");
    assert!(out.contains(r#""code":"policy_violation""#), "{out}");
    assert!(!out.contains("[DONE]"));
}

#[test]
fn what_no_rule_denies_passes_byte_for_byte() {
    let role = ROLE.to_owned();
    unchanged(&[role.clone(), text("a"), finish("stop")]);
    unchanged(&[role.clone(), start(0, "Free"), input(0, "{\"a\""), input(0, ":1}"), finish("tool_calls")]);
    unchanged(&[role.clone(), start(0, "Held"), input(0, "{}"), finish("tool_calls")]);
    unchanged(&[
        role.clone(),
        start(0, "Held"),
        input(0, "{}"),
        start(1, "Free"),
        input(1, "{}"),
        finish("stop"),
    ]);
    unchanged(&[
        role,
        start(0, "Held"),
        finish("tool_calls"),
        r#"{"choices":[],"usage":{"prompt_tokens":1}}"#.to_owned(),
    ]);
}

#[test]
fn a_call_that_is_denied_at_its_start_becomes_text_at_once() {
    let choice = one(&[
        ROLE.to_owned(),
        text("Hi"),
        start(0, "Denied"),
        input(0, "{\"a\""),
        input(0, ":1}"),
        finish("tool_calls"),
    ]);
    assert_eq!(choice.role, "assistant");
    assert_eq!(choice.content, format!("Hi\n\n{DENIED}"));
    assert_eq!(choice.contiguous(), []);
    assert_eq!(choice.finish, "stop");
    let unfinished = format!("data: {ROLE}\n\ndata: {}\n\n", start(0, "Denied"));
    assert!(judged(&unfinished, Names::default(), 9).0.contains("[postern]"));
}

#[test]
fn a_call_that_is_held_is_denied_by_its_input() {
    let choice = one(&[
        ROLE.to_owned(),
        start(0, "Held"),
        input(0, "{\"a\":\"forb"),
        input(0, "idden\"}"),
        finish("tool_calls"),
    ]);
    assert_eq!(
        choice,
        Choice { role: "assistant".into(), content: HELD.into(), finish: "stop".into(), ..Choice::default() }
    );
}

#[test]
fn calls_that_are_left_have_contiguous_indices_and_keep_every_other_byte() {
    let chunks = [
        ROLE.to_owned(),
        start(0, "Denied"),
        input(0, "{}"),
        start(1, "Free"),
        input(1, "{\"b\": 1}"),
        start(2, "Held"),
        input(2, "{\"c\":\"forbidden\"}"),
        start(3, "Held"),
        input(3, "{\"d\":1}"),
        finish("tool_calls"),
    ];
    let out = out(&chunks);
    let choice = read(&out).remove(&0).unwrap();
    let calls = choice.contiguous();
    let calls: Vec<_> = calls.iter().map(|call| (call.id.as_str(), call.input.as_str())).collect();
    assert_eq!(calls, [("call_1", "{\"b\": 1}"), ("call_3", "{\"d\":1}")]);
    assert_eq!(choice.content, format!("{DENIED}{HELD}"));
    assert_eq!(choice.finish, "tool_calls");
    assert!(out.contains(&input(1, "{\"b\": 1}").replace(r#"[{"index":1"#, r#"[{"index":0"#)));
}

#[test]
fn content_overtakes_a_call_that_waits_and_calls_do_not() {
    let stream = format!(
        "data: {}\n\ndata: {}\n\ndata: {}\n\n",
        start(0, "Held"),
        text("meanwhile"),
        start(1, "Free")
    );
    let mut guard = crate::provider::answer::Guard::new(
        Box::new(super::transcript::ChatTranscript::default()),
        crate::provider::adapter::Framing::Events(super::FORM),
        crate::provider::answer::testing::settings(Names::default()),
    );
    let mut out = Vec::new();
    guard.write(stream.into_bytes().into(), &mut out).unwrap();
    assert_eq!(out.concat(), format!("data: {}\n\n", text("meanwhile")).into_bytes());
    assert!(guard.held() > 0);
    assert_eq!(guard.keep_alive().unwrap(), ": keep-alive\n\n");
}

#[test]
fn calls_that_wait_are_decided_one_by_one_in_one_chunk() {
    let next = r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"Held","arguments":"{"}}]}"#;
    unchanged(&[start(0, "Held"), input(0, "{}"), chunk(0, next, ""), input(1, "}"), finish("tool_calls")]);
    unchanged(&[start(0, "Held"), input(0, "{}"), chunk(0, next, ""), input(1, "}")]);
}

#[test]
fn text_that_came_with_a_call_that_waits_is_not_overtaken_by_later_text() {
    let mixed = chunk(
        0,
        r#"{"content":"one ","tool_calls":[{"index":0,"id":"x","function":{"name":"Held","arguments":""}}]}"#,
        "",
    );
    unchanged(&[mixed.clone(), text("two"), input(0, "{}"), finish("tool_calls")]);
    let choice = one(&[mixed, input(0, "\"forbidden\""), text("two"), finish("tool_calls")]);
    assert_eq!(choice.contiguous(), []);
    assert!(choice.content.starts_with("one \n\n[postern]"));
}

#[test]
fn a_call_that_comes_whole_with_its_end_and_without_an_index_is_decided_at_once() {
    let whole = |name: &str, more: &str| {
        let call = |id: &str, name: &str| {
            format!(r#"{{"id":"{id}","function":{{"name":"{name}","arguments":"{{}}"}}}}"#)
        };
        let calls = format!("[{}, {}]", call("a", name), call("b", more));
        chunk(0, &format!(r#"{{"content":null,"tool_calls":{calls}}}"#), "tool_calls")
    };
    unchanged(&[ROLE.to_owned(), whole("Held", "Free")]);
    let choice = one(&[ROLE.to_owned(), whole("Denied", "Free")]);
    assert_eq!(
        (choice.calls.len(), choice.calls[&0].id.as_str(), choice.finish.as_str()),
        (1, "b", "tool_calls")
    );
    assert_eq!(choice.content, DENIED);
    let choice = one(&[ROLE.to_owned(), whole("Denied", "Denied")]);
    assert_eq!((choice.calls.len(), choice.finish.as_str()), (0, "stop"));
    assert_eq!(choice.content, format!("{DENIED}{DENIED}"));
}

#[test]
fn choices_that_interleave_have_their_own_indices_and_ends() {
    let other = |delta: &str, finish: &str| chunk(1, delta, finish);
    let begin = r#"{"tool_calls":[{"index":0,"id":"z","function":{"name":"Held","arguments":"{\"x\":\"forbidden\"}"}}]}"#;
    let out = out(&[
        ROLE.to_owned(),
        other(r#"{"role":"assistant"}"#, ""),
        start(0, "Held"),
        other(begin, ""),
        input(0, "{}"),
        other("{}", "tool_calls"),
        other(r#"{"content":"b"}"#, ""),
        finish("tool_calls"),
    ]);
    let choices = read(&out);
    assert_eq!((choices[&0].calls.len(), choices[&0].finish.as_str()), (1, "tool_calls"));
    assert_eq!((choices[&1].calls.len(), choices[&1].finish.as_str()), (0, "stop"));
    assert!(choices[&1].content.contains("[postern]"));
}

#[test]
fn a_legacy_function_call_is_a_call() {
    let begin = |name: &str| {
        chunk(0, &format!(r#"{{"role":"assistant","function_call":{{"name":"{name}","arguments":""}}}}"#), "")
    };
    let more = chunk(0, r#"{"function_call":{"arguments":"{\"a\":\"forbidden\"}"}}"#, "");
    unchanged(&[begin("Free"), more.clone(), finish("function_call")]);
    for name in ["Held", "Denied"] {
        let choice = one(&[begin(name), more.clone(), finish("function_call")]);
        assert_eq!(
            (choice.calls.len(), choice.finish.as_str(), choice.role.as_str()),
            (0, "stop", "assistant")
        );
        assert!(choice.content.contains(name));
    }
}

#[test]
fn the_input_of_a_custom_tool_is_text() {
    let begin = |name: &str| {
        chunk(
            0,
            &format!(
                r#"{{"tool_calls":[{{"index":0,"id":"u","type":"custom","custom":{{"name":"{name}","input":""}}}}]}}"#
            ),
            "",
        )
    };
    let more = |text: &str| {
        chunk(0, &format!(r#"{{"tool_calls":[{{"index":0,"custom":{{"input":"{text}"}}}}]}}"#), "")
    };
    unchanged(&[begin("Held"), more("not {json"), finish("tool_calls")]);
    let choice = one(&[begin("Held"), more("forb"), more("idden"), finish("tool_calls")]);
    assert_eq!((choice.calls.len(), choice.finish.as_str()), (0, "stop"));
}

#[test]
fn a_name_that_comes_late_is_waited_for() {
    let nameless =
        chunk(0, r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"a\":"}}]}"#, "");
    let named = |name: &str| {
        chunk(
            0,
            &format!(r#"{{"tool_calls":[{{"index":0,"function":{{"name":"{name}","arguments":"1}}"}}}}]}}"#),
            "",
        )
    };
    unchanged(&[ROLE.to_owned(), nameless.clone(), named("Free"), finish("tool_calls")]);
    let choice = one(&[ROLE.to_owned(), nameless, named("Denied"), finish("tool_calls")]);
    assert_eq!((choice.calls.len(), choice.content.as_str()), (0, DENIED));
}

#[test]
fn calls_with_more_than_one_reading_are_refused() {
    let named = |name: &str, id: &str| {
        chunk(
            0,
            &format!(r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"{name}"}}}}]}}"#),
            "",
        )
    };
    refused(&[named("ba", "a"), named("sh", "a")], "two names or two ids");
    refused(&[named("bash", "a"), named("bash", "b")], "two names or two ids");
    unchanged(&[named("bash", "a"), named("bash", "a"), named("", ""), finish("tool_calls")]);
    let twice = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Free","name":"Denied"}}]}"#;
    refused(&[chunk(0, twice, "")], "stands twice");
    let both = r#"{"tool_calls":[{"index":0,"function":{"name":"a"},"custom":{"name":"b"}}]}"#;
    refused(&[chunk(0, both, "")], "a function and a custom tool");
    refused(&[chunk(0, r#"{"tool_calls":[{"function":{"arguments":"{}"}}]}"#, "")], "does not say of which");
    refused(&[start(0, "Held"), input(0, "{}"), finish("tool_calls"), input(0, "x")], "after its end");
    let message =
        r#"{"choices":[{"index":0,"delta":{},"message":{"tool_calls":[{"function":{"name":"Denied"}}]}}]}"#;
    refused(&[message.to_owned()], "a whole message");
    let twin = r#"{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"}}]}"#;
    unchanged(&[twin.to_owned()]);
}

#[test]
fn a_stream_without_an_end_is_decided_by_what_is_complete() {
    let events =
        |chunks: &[String]| chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect::<String>();
    let complete = events(&[ROLE.to_owned(), start(0, "Held"), input(0, "{\"a\":1}")]);
    assert_eq!(judged(&complete, Names::default(), 50).0, complete);
    let cut_off = events(&[ROLE.to_owned(), start(0, "Held"), input(0, "{\"a\":")]);
    assert_eq!(judged(&cut_off, Names::default(), 50).0, events(&[ROLE.to_owned()]));
    let without_reason = [ROLE.to_owned(), start(0, "Held"), input(0, "{\"a\":\"forbidden\"}")];
    assert_eq!(one(&without_reason).content, HELD);
}

#[test]
fn an_error_in_the_stream_leaves_no_call_behind() {
    let error = r#"{"id":"c","error":{"code":502,"message":"gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#;
    let out = out(&[ROLE.to_owned(), start(0, "Held"), input(0, "{\"a\":"), error.to_owned()]);
    assert_eq!(out, stream(&[ROLE, error]));
    let alone = r#"{"error":{"message":"gone"}}"#.to_owned();
    unchanged(&[text("a"), alone]);
}

#[test]
fn an_error_of_groq_does_not_say_what_a_denied_call_was() {
    let error = |generation: &str| {
        let generation = serde_json::Value::from(generation);
        format!(r#"{{"error":{{"code":"tool_use_failed","failed_generation":{generation},"message":"m"}}}}"#)
    };
    let refusal = serde_json::Value::from(DENIED).to_string();
    for generation in
        ["<function=Denied>{\"a\":1}</function>", "{\"name\": \"Denied\", \"arguments\": {\"a\":1}}"]
    {
        assert!(out(&[error(generation)]).contains(&refusal), "{generation}");
    }
    let quoted = r#"{"name":"Held","arguments":"{\"a\":\"forbidden\"}"}"#;
    assert!(out(&[error(quoted)]).contains("this use of it is not"));
    unchanged(&[error("<function=Free>{\"a\":1}</function>")]);
    unchanged(&[error("nonsense")]);
    let both = error("<function=Denied>{}</function>").replacen(
        '{',
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Denied","arguments":"{}"}}]}}],"#,
        1,
    );
    refused(&[both], "error");
}

#[test]
fn tools_that_ran_at_the_provider_are_replaced_with_their_results() {
    let ran = |name: &str| {
        chunk(
            0,
            &format!(
                r#"{{"executed_tools":[{{"index":0,"type":"{name}","arguments":"{{}}","output":"o"}}]}}"#
            ),
            "",
        )
    };
    unchanged(&[ROLE.to_owned(), ran("browser_search"), text("a"), finish("stop")]);
    let out = out(&[ROLE.to_owned(), ran("Denied"), ran("Denied"), finish("stop")]);
    assert_eq!(read(&out)[&0].content, DENIED);
    assert!(!out.contains("output"));
}

#[test]
fn content_in_parts_gets_a_part_more() {
    let delta = r#"{"content":[{"type":"text","text":"a"}],"tool_calls":[{"index":0,"id":"a","function":{"name":"Denied","arguments":"{}"}}]}"#;
    let expected = format!(
        r#""content":[{{"type":"text","text":"a"}},{{"type":"text","text":{}}}]"#,
        serde_json::Value::from(DENIED)
    );
    assert!(out(&[chunk(0, delta, "tool_calls")]).contains(&expected));
}

#[test]
fn indices_that_begin_at_one_stay_as_they_are() {
    unchanged(&[ROLE.to_owned(), start(1, "Free"), input(1, "{}"), finish("tool_calls")]);
    unchanged(&[ROLE.to_owned(), start(1, "Held"), input(1, "{}"), finish("tool_calls")]);
}

#[test]
fn an_end_that_speaks_of_no_calls_stays() {
    unchanged(&[ROLE.to_owned(), finish("tool_calls")]);
    let choice = one(&[ROLE.to_owned(), start(0, "Denied"), finish("length")]);
    assert_eq!(choice.finish, "length");
}

#[test]
fn what_came_of_a_call_is_not_read_again_with_every_call_behind_it() {
    let read_of = |name: &str, calls: u64| {
        let mut chunks = vec![start(0, name), input(0, &format!(r#"{{"a":"{}"#, "x".repeat(10_000)))];
        chunks.extend((1..=calls).flat_map(|number| [start(number, name), input(number, "{}")]));
        chunks.push(input(0, r#""}"#));
        chunks.push(finish("tool_calls"));
        let stream = stream(&chunks);
        let before = bytes_read();
        let (out, result) = judged(&stream, Names::default(), stream.len());
        assert_eq!((out.as_str(), result), (stream.as_str(), Ok(())));
        (bytes_read() - before, stream.len())
    };
    for name in ["Free", "Held"] {
        for calls in [10, 100, 1000] {
            let (read, length) = read_of(name, calls);
            assert!(read <= 2 * length, "{name} with {calls} calls: {read} bytes read of {length}");
        }
    }
}
