//! What a request of Messages becomes: a file of `golden/` for each row of the table, and what files cannot say.

use serde_json::json;

use super::testing::{compare, translated};

#[test]
fn every_request_becomes_what_its_file_says() {
    compare("golden");
}

/// The body of a request that is sayable.
fn body(messages: &str) -> String {
    String::from_utf8(translated(messages, &json!({})).unwrap().body).unwrap()
}

#[test]
fn strings_and_numbers_are_copied_as_they_are_written() {
    let written = r#"{"max_tokens":1e2,"temperature":0.50,"system":"caf\u00e9 \/ <\u003c","messages":[
        {"role":"user","content":[{"type":"text","text":"\ud83d\ude00"},{"type":"text","text":"\t"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"a\u0062","name":"A","input":{ "n" : 1.0 }}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"ab","content":"\u0041"}]}]}"#;
    let sent = concat!(
        r#"{"model":"qwen3-coder","messages":[{"role":"system","content":"caf\u00e9 \/ <\u003c"},"#,
        r#"{"role":"user","content":"\ud83d\ude00\n\t"},"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a\u0062","type":"function","#,
        r#""function":{"name":"A","arguments":"{ \"n\" : 1.0 }"}}]},"#,
        r#"{"role":"tool","tool_call_id":"a\u0062","content":"\u0041"}],"max_tokens":1e2,"temperature":0.50}"#
    );
    assert_eq!(body(written), sent);
}

#[test]
fn keys_of_the_agent_come_in_any_order_and_leave_in_one() {
    let sent = body(
        r#"{"stream":true,"stop_sequences":["x"],"top_p":1,"temperature":0,"max_tokens":1,
            "tool_choice":{"type":"any","disable_parallel_tool_use":true},
            "output_config":{"format":{"type":"json_schema","schema":{}}},
            "tools":[{"name":"A","input_schema":{}}],"messages":[],"model":"m"}"#,
    );
    let sent: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&sent).unwrap();
    let keys: Vec<&str> = sent.keys().map(String::as_str).collect();
    let order = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "stream",
        "stream_options",
        "response_format",
    ];
    assert_eq!(keys, order);
}

#[test]
fn a_body_with_two_readings_cannot_be_said() {
    for body in [
        r#"{"messages":[],"messages":[]}"#,
        r#"{"messages":[{"role":"user","content":"a","content":"b"}]}"#,
        r#"{"messages":[],"tools":[{"name":"A","input_schema":{"a":1,"a":2}}]}"#,
        "[]",
        r#"{"messages":{}}"#,
        r#"{"messages":[{"role":"tool","content":"a"}]}"#,
        r#"{"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"role":"user","content":[1]}]}"#,
        r#"{"messages":[],"tools":[{"name":"A","input_schema":{}},{"name":"A","input_schema":{}}]}"#,
        r#"{"messages":[],"tool_choice":"auto"}"#,
    ] {
        assert!(translated(body, &json!({})).is_err(), "{body}");
    }
}

#[test]
fn params_that_are_no_object_cannot_be_said() {
    let body = r#"{"messages":[]}"#;
    assert!(translated(body, &json!({"params": [1]})).is_err());
}

#[test]
fn many_calls_and_results_take_no_longer_each() {
    let numbers = || 0..20_000;
    let call = |id| json!({"type": "tool_use", "id": format!("t{id}"), "name": "A", "input": {}});
    let result = |id| json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": "r"});
    let body = json!({"messages": [
        {"role": "assistant", "content": numbers().map(call).collect::<Vec<_>>()},
        {"role": "user", "content": numbers().rev().map(result).collect::<Vec<_>>()},
    ]});
    let request = translated(&body.to_string(), &json!({})).unwrap();
    assert!(request.notes.is_empty());
}
