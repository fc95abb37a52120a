//! Results of tools that come without their calls, which the provider has of an answer that the request names.

use serde_json::{Value, json};

use super::requests::{self, Models, RESPONSES, models_with};
use super::tool_results::{AGENT_PATH, SHORTENS, keeping, log, named, sent};
use crate::parity::dialect::{Called, Dialect as _, Mode, Said};
use crate::parity::responses::Responses;
use crate::support::Setup;
use crate::support::upstream::{Reply, Seen};

/// The id of an answer, unless the request asks for another.
const ANSWER: &str = "resp_1";

/// The input of a call that reads what was cut.
const READS: &str = r#"{"cmd":"cat /run/postern/evidence/9f3a1c22d0e74b10aa51.txt"}"#;

/// A provider that keeps its answers, and calls the tool that `instructions` name: with what reads evidence, or not.
fn keeping_answers() -> Models {
    models_with(&format!("providerState: Allow\n{SHORTENS}"), called, keeping)
}

fn called(seen: &Seen) -> Reply {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let calls = match asked["instructions"].as_str() {
        Some("reads") => vec![call("exec_command", READS)],
        Some("reads late") => {
            vec![call("exec_command", format!(r#"{{"cmd":"{} {AGENT_PATH}/a"}}"#, "x".repeat(5_000)).leak())]
        }
        Some("looks") => vec![call("Read", r#"{"file_path":"a"}"#)],
        Some("runs") => vec![call("exec_command", r#"{"cmd":"make"}"#)],
        _ => Vec::new(),
    };
    let mode = if asked["stream"] == true { Mode::Streamed } else { Mode::Whole };
    let body = String::from_utf8(Responses.answer(&Said { text: "so", calls }, mode).concat()).unwrap();
    let id = asked["metadata"]["answer"].as_str().unwrap_or(ANSWER);
    Reply::of(200, body.replace(ANSWER, id)).header("content-type", Responses.content_type(mode))
}

fn call(name: &'static str, input: &'static str) -> Called {
    Called { id: "call_1".to_owned(), namespace: None, name, input }
}

/// Asks for an answer that calls a tool.
fn ask(test: &Models, more: &Value) {
    let mut question = json!({"model": "gpt-5", "input": "go"});
    question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(test.post(RESPONSES, question.to_string()).answer.status, 200);
}

/// What the provider reads of a long result that comes alone.
fn read(test: &Models, from: &Value, call: &str) -> String {
    let result = json!([{"type": "function_call_output", "call_id": call, "output": log()}]);
    let mut question = json!({"model": "gpt-5", "input": result});
    question.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
    let asked = test.post(RESPONSES, question.to_string());
    assert_eq!(asked.answer.status, 200, "{}", asked.answer.text());
    let body: Value = serde_json::from_slice(&asked.seen().body).unwrap();
    body["input"][0]["output"].as_str().unwrap().to_owned()
}

/// O3: the call of a result is known from the answer that the request goes on from, streamed or whole.
#[test]
fn a_long_result_that_names_the_answer_with_its_call_is_cut() {
    for stream in [true, false] {
        let test = keeping_answers();
        let from = json!({"previous_response_id": ANSWER});
        assert_eq!(read(&test, &from, "call_1"), log(), "nobody has called it yet");
        ask(&test, &json!({"instructions": "runs", "stream": stream}));
        let cut = read(&test, &from, "call_1");
        assert!(cut.contains("[postern] 285 of 300 lines (6 KB) left out. All of it: "), "{cut}");
        assert_eq!(named(&cut).len(), 1);
        // The twins: a call that no answer made, and another answer.
        assert_eq!(read(&test, &from, "call_2"), log());
        assert_eq!(read(&test, &json!({"previous_response_id": "resp_2"}), "call_1"), log());
    }
}

/// O3: what reads the evidence is given all of it, and what reads files too.
#[test]
fn a_result_that_comes_alone_is_left_where_its_call_says_so() {
    let few = |setup: Setup| keeping(setup).set("/limits/toolInputBytes", json!(4096));
    let test = models_with(&format!("providerState: Allow\n{SHORTENS}"), called, few);
    for (instructions, is_left) in [("reads", true), ("looks", true), ("reads late", true), ("runs", false)] {
        ask(&test, &json!({"instructions": instructions, "metadata": {"answer": instructions}}));
        let read = read(&test, &json!({"previous_response_id": instructions}), "call_1");
        assert_eq!(read == log(), is_left, "{instructions}: {read}");
    }
    assert!(READS.contains(AGENT_PATH));
}

#[test]
fn a_conversation_that_the_provider_keeps_has_the_calls_of_its_answers() {
    let test = keeping_answers();
    let by_name = json!({"conversation": "conv_1"});
    ask(&test, &json!({"instructions": "runs", "conversation": {"id": "conv_1"}}));
    assert_ne!(read(&test, &by_name, "call_1"), log());
    // The twin.
    assert_eq!(read(&test, &json!({"conversation": "conv_2"}), "call_1"), log());
}

#[test]
fn of_an_answer_that_the_provider_does_not_keep_nothing_is_remembered() {
    let test = keeping_answers();
    ask(&test, &json!({"instructions": "runs", "store": false}));
    assert_eq!(read(&test, &json!({"previous_response_id": ANSWER}), "call_1"), log());
}

/// Agents send all of a conversation again where the provider has lost it: what was sent alone is sent again so.
#[test]
fn a_result_is_the_same_alone_and_with_its_call() {
    let test = keeping_answers();
    for (instructions, command) in [("runs", r#"{"cmd":"make"}"#), ("reads", READS)] {
        ask(&test, &json!({"instructions": instructions, "metadata": {"answer": instructions}}));
        let alone = read(&test, &json!({"previous_response_id": instructions}), "call_1");
        let all = json!({"model": "gpt-5", "input": [{"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": command},
            {"type": "function_call_output", "call_id": "call_1", "output": log()}]});
        let sent: Value = serde_json::from_str(&sent(&test, RESPONSES, &all.to_string())).unwrap();
        assert_eq!(sent["input"][2]["output"], alone, "{instructions}");
    }
}

#[test]
fn a_conversation_that_began_uncut_stays_so_whatever_other_chains_there_are() {
    let test = keeping_answers();
    let unknown =
        |id: &str, answer: &str| json!({"previous_response_id": id, "metadata": {"answer": answer}});
    assert_eq!(read(&test, &unknown("resp_of_another_gateway", "x"), "call_1"), log());
    test.gateway.reload_policy(&requests::policy("providerState: Allow"), "success");
    ask(&test, &json!({"input": "new", "instructions": "runs", "metadata": {"answer": "a"}}));
    // Nor is one cut that this gateway does not know either, and that goes on under the new policy.
    assert_eq!(read(&test, &unknown("resp_of_a_third", "y"), "call_1"), log());
    ask(&test, &json!({"previous_response_id": "y", "instructions": "runs", "metadata": {"answer": "z"}}));
    for (from, next) in [("a", "b"), ("b", "c"), ("c", "d"), ("z", "zz")] {
        let goes_on = json!({"previous_response_id": from});
        assert_eq!(read(&test, &goes_on, "call_1"), log(), "{from}");
        ask(
            &test,
            &json!({"previous_response_id": from, "instructions": "runs", "metadata": {"answer": next}}),
        );
    }
}

#[test]
fn a_message_in_the_middle_of_a_chain_begins_no_conversation() {
    let test = models_with("providerState: Allow", called, keeping);
    ask(&test, &json!({"instructions": "runs", "metadata": {"answer": "a"}}));
    let shortens = requests::policy(&format!("providerState: Allow\n{SHORTENS}"));
    test.gateway.reload_policy(&shortens, "success");
    ask(&test, &json!({"previous_response_id": "a", "instructions": "runs", "metadata": {"answer": "b"}}));
    assert_eq!(read(&test, &json!({"previous_response_id": "b"}), "call_1"), log());
    // The twin: one that begins now.
    ask(&test, &json!({"input": "new", "instructions": "runs", "metadata": {"answer": "c"}}));
    assert_ne!(read(&test, &json!({"previous_response_id": "c"}), "call_1"), log());
}

#[test]
fn a_chain_of_answers_is_edited_as_it_began_whatever_the_policy_says_now() {
    let test = keeping_answers();
    ask(&test, &json!({"instructions": "runs"}));
    test.gateway.reload_policy(&requests::policy("providerState: Allow"), "success");
    assert_ne!(read(&test, &json!({"previous_response_id": ANSWER}), "call_1"), log());
    // The twin: one that begins now is not edited.
    ask(&test, &json!({"input": "another", "instructions": "runs", "conversation": "conv_1"}));
    assert_eq!(read(&test, &json!({"conversation": "conv_1"}), "call_1"), log());
}
