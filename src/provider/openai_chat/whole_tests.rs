//! Answers that came whole: the same verdicts as in a stream.

use super::transcript::ChatTranscript;
use crate::call::{AnswerFacts, Usage};
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Names, settings};
use crate::provider::answer::{BrokenAnswer, Guard};

fn guard() -> Guard {
    Guard::new(Box::new(ChatTranscript::default()), Framing::Whole, settings(Names::default()))
}

fn read(body: &str) -> Result<String, BrokenAnswer> {
    let out = guard().whole(body.to_owned().into())?;
    Ok(String::from_utf8(out.to_vec()).unwrap())
}

fn facts(body: &str) -> AnswerFacts {
    let mut guard = guard();
    guard.whole(body.to_owned().into()).unwrap();
    guard.facts().clone()
}

fn message(message: &str, finish: &str) -> String {
    format!(r#"{{"id":"c", "choices":[{{"index":0,"message":{message},"finish_reason":"{finish}"}}]}}"#)
}

fn call(name: &str, input: &str) -> String {
    let input = serde_json::Value::from(input);
    format!(r#"{{"id":"i", "type":"function","function":{{"name":"{name}","arguments":{input}}}}}"#)
}

fn notice(name: &str) -> String {
    let advice = match name {
        "Denied" => "This tool is not available here.",
        _ => "The tool itself is allowed; this use of it is not. Do not retry it unchanged.",
    };
    format!(
        "[postern] Tool call blocked by policy\\nTool: {name}\\nRule: postern/builtin/test\\nReason: a test says so\\n{advice}\\nEvent: 00000000-0000-7000-8000-000000000000\\n\\n"
    )
}

#[test]
fn calls_that_pass_leave_every_byte_as_it_is() {
    let body = message(&format!(r#"{{"content":null,"tool_calls":[{}]}}"#, call("Held", "{}")), "tool_calls");
    assert_eq!(read(&body).unwrap(), body);
    let error = r#"{"error":{"message":"m"}}"#;
    assert_eq!(read(error).unwrap(), error);
    assert_eq!(read("[1]").unwrap(), "[1]");
}

#[test]
fn a_denied_call_becomes_text_and_the_rest_stays() {
    let denied = call("Held", r#"{"a":"forbidden"}"#);
    let all =
        message(&format!(r#"{{"role":"assistant","content":null,"tool_calls":[{denied}]}}"#), "tool_calls");
    let text = notice("Held");
    assert_eq!(
        read(&all).unwrap(),
        message(&format!(r#"{{"role":"assistant","content":"{text}"}}"#), "stop")
    );
    let free = call("Free", "{}");
    let some = message(&format!(r#"{{"content":"a \u00e9","tool_calls":[{denied}, {free}]}}"#), "tool_calls");
    let expected =
        message(&format!(r#"{{"content":"a \u00e9\n\n{text}","tool_calls":[{free}]}}"#), "tool_calls");
    assert_eq!(read(&some).unwrap(), expected);
}

#[test]
fn every_choice_and_every_shape_is_read() {
    let legacy = r#"{"content":null,"function_call":{"name":"Denied","arguments":"{}"}}"#;
    let text = notice("Denied");
    assert_eq!(
        read(&message(legacy, "function_call")).unwrap(),
        message(&format!(r#"{{"content":"{text}"}}"#), "stop")
    );
    let custom =
        r#"{"tool_calls":[{"id":"i","type":"custom","custom":{"name":"Held","input":"forbidden {"}}]}"#;
    assert!(read(&message(custom, "tool_calls")).unwrap().contains("blocked by policy"));
    let object = r#"{"tool_calls":[{"id":"i","function":{"name":"Held","arguments":{"a":"forbidden"}}}]}"#;
    assert!(read(&message(object, "tool_calls")).unwrap().contains("blocked by policy"));
    let second = r#"{"choices":[{"index":0,"message":{"content":"a"}},{"index":1,"message":{"tool_calls":[{"function":{"name":"Denied"}}]}}]}"#;
    assert!(read(second).unwrap().contains("blocked by policy"));
    let ran = r#"{"content":"a","executed_tools":[{"index":0,"type":"Denied","output":"o"}]}"#;
    assert!(!read(&message(ran, "stop")).unwrap().contains("output"));
}

#[test]
fn a_message_with_two_readings_is_refused() {
    let twice = r#"{"tool_calls":[],"tool_calls":[{"function":{"name":"Denied"}}]}"#;
    assert!(!read(&message(twice, "stop")).unwrap_err().forgivable);
    assert!(read(&message(r#"{"tool_calls":{}}"#, "stop")).is_err());
    let call = r#"{"tool_calls":[{"id":"i","function":{"name":"Denied","arguments":"{}"}}]}"#;
    let failed = r#"{"error":{"failed_generation":"<function=Denied>{}</function>"},"#;
    assert!(!read(&message(call, "stop").replacen('{', failed, 1)).unwrap_err().forgivable);
}

#[test]
fn tokens_are_counted_as_each_vendor_says_them() {
    let usage = |usage: &str| facts(&format!(r#"{{"id":"c","model":"m","choices":[],{usage}}}"#)).usage;
    let openai = r#""usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}"#;
    let all = Usage {
        input: Some(10),
        output: Some(5),
        cache_read: Some(4),
        cache_write: Some(2),
        reasoning: Some(3),
    };
    assert_eq!(usage(openai), all);
    let xai = r#""usage":{"prompt_tokens":291,"completion_tokens":26,"total_tokens":513,"completion_tokens_details":{"reasoning_tokens":196}}"#;
    assert_eq!((usage(xai).output, usage(xai).reasoning), (Some(222), Some(196)));
    assert_eq!(usage(r#""usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":8}"#).cache_read, Some(8));
    assert_eq!(usage(r#""x_groq":{"usage":{"prompt_tokens":7}}"#).input, Some(7));
    let facts = facts(r#"{"id":"c","model":"m"}"#);
    assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("c"), Some("m")));
}
