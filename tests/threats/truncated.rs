//! Answers that a model did not finish: a call that was held in them does not go on, and all else is what came.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::model::{Model, NO_DELETE, NO_FORCE, assert_without, call, choice, chunks, message, named, text};
use crate::parity::anthropic::Anthropic;
use crate::parity::bedrock::{Converse, Invoke};
use crate::parity::chat::Chat;
use crate::parity::dialect::Dialect;
use crate::parity::dialect::Mode::Streamed;
use crate::parity::frames;
use crate::parity::gemini;
use crate::parity::responses::Responses;
use crate::support::Answer;

const CUT: &str = r#"{"command":"rm -r"#;

/// An answer of each dialect that is cut inside the input of a call of this tool, by the number of its tokens; how it
/// says so, and what its client needs at its end.
fn cut(tool: &str) -> Vec<(&'static dyn Dialect, Vec<u8>, &'static str, &'static str)> {
    let mut blocks = vec![text(0, "so"), call(1, "call_1", tool, &[CUT])];
    blocks[1].pop();
    let anthropic = message(&blocks, "max_tokens");
    let chunk =
        |event: &Value| json!({"bytes": BASE64_STANDARD.encode(event.to_string()), "p": "abc"}).to_string();
    let invoked: Vec<u8> =
        anthropic.iter().flat_map(|event| frames::frame("chunk", chunk(event).as_bytes())).collect();
    let function = json!({"name": tool, "arguments": CUT});
    let chat = chunks(&[
        choice(0, json!({"role": "assistant", "content": "so"}), None),
        choice(
            0,
            json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}),
            None,
        ),
        choice(0, json!({}), Some("length")),
    ]);
    vec![
        (
            &Anthropic,
            named(&anthropic).into_bytes(),
            r#""stop_reason":"max_tokens""#,
            "event: message_stop\n",
        ),
        (&Chat, chat.into_bytes(), r#""finish_reason":"length""#, "data: [DONE]\n"),
        (
            &Responses,
            responses(tool, true).into_bytes(),
            r#""reason":"max_output_tokens""#,
            "event: response.incomplete\n",
        ),
        (
            &Responses,
            responses(tool, false).into_bytes(),
            r#""reason":"max_output_tokens""#,
            "event: response.incomplete\n",
        ),
        (&gemini::Sse, gemini(tool).into_bytes(), r#""finishReason":"MAX_TOKENS""#, "MAX_TOKENS"),
        (&Converse, converse(tool), r#""stopReason":"max_tokens""#, "messageStop"),
        (&Invoke, invoked, r#""stop_reason":"max_tokens""#, r#""type":"message_stop""#),
    ]
}

/// Arguments that come in pieces.
fn gemini(tool: &str) -> String {
    let chunk = |parts: Value, finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":{parts}}}{finish},\"index\":0}}]}}\r\n\r\n"
        )
    };
    let piece = json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.command", "stringValue": "rm -r", "willContinue": true}], "willContinue": true}}]);
    [
        chunk(json!([{"text": "so"}]), ""),
        chunk(json!([{"functionCall": {"id": "call_1", "name": tool, "willContinue": true}}]), ""),
        chunk(piece, ""),
        chunk(json!([{"text": ""}]), r#","finishReason":"MAX_TOKENS""#),
    ]
    .concat()
}

fn converse(tool: &str) -> Vec<u8> {
    let converse = [
        ("messageStart", json!({"role": "assistant"})),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "call_1", "name": tool}}}),
        ),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": CUT}}})),
        ("messageStop", json!({"stopReason": "max_tokens"})),
        ("metadata", json!({"usage": {"inputTokens": 7, "outputTokens": 9, "totalTokens": 16}})),
    ];
    converse.iter().flat_map(|(name, body)| frames::frame(name, body.to_string().as_bytes())).collect()
}

/// `tells`: the item comes to an end of its own, and stands in the response.
fn responses(tool: &str, tells: bool) -> String {
    let item = |status: &str, arguments: &str| json!({"type": "function_call", "id": "fc_1", "status": status, "call_id": "call_1", "name": tool, "arguments": arguments});
    let response = |status: &str, output: Value, details: Value| json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt-5", "output": output, "incomplete_details": details, "usage": null});
    let output = if tells { json!([item("incomplete", CUT)]) } else { json!([]) };
    let details = json!({"reason": "max_output_tokens"});
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": CUT}),
    ];
    if tells {
        events.push(json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 0, "arguments": CUT}));
        events.push(
            json!({"type": "response.output_item.done", "output_index": 0, "item": item("incomplete", CUT)}),
        );
    }
    events.push(json!({"type": "response.incomplete", "response": response("incomplete", output, details)}));
    events.iter_mut().enumerate().for_each(|(number, event)| event["sequence_number"] = number.into());
    named(&events)
}

/// What an answer says, with what stands in base64 in its frames.
fn plain(answer: &Answer) -> String {
    if answer.header("content-type") != Some("application/vnd.amazon.eventstream") {
        return answer.text();
    }
    let decoded = |payload: &Value| {
        let bytes = BASE64_STANDARD.decode(payload["bytes"].as_str()?).unwrap();
        Some(String::from_utf8(bytes).unwrap())
    };
    let said = |(name, payload): (String, Value)| {
        format!("{name} {}\n", decoded(&payload).unwrap_or_else(|| payload.to_string()))
    };
    frames::unframe(&answer.body).into_iter().map(said).collect()
}

/// F21: a call that the model did not finish is not released where it was held, and its client reads an ordinary
/// truncation: the reason to stop and the end that came, and no error.
#[test]
fn a_call_that_the_model_did_not_finish_is_an_ordinary_truncation() {
    let model = Model::under(NO_FORCE);
    let denied = Model::under("tools: [{name: no-bash, tools: [Bash], action: Deny}]");
    let flowing = Model::under(NO_DELETE);
    for (dialect, stream, reason, end) in cut("Bash") {
        for model in [&model, &denied] {
            let answer = model.ask(dialect, Streamed, &stream);
            assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
            let said = plain(&answer);
            for gone in ["call_1", "rm -r", "permission_error", "validationException", "invalid_prompt"] {
                assert!(!said.contains(gone), "{gone} in {said}");
            }
            assert!(said.contains(reason) && said.contains(end), "{said}");
        }
        let event = model.event("call_1");
        assert_eq!(
            (&event["decision"]["verdict"], &event["toolCall"]["incomplete"]),
            (&"Deny".into(), &true.into())
        );
    }
    // What waits for no verdict goes on as it came, the cut call too.
    for (dialect, stream, ..) in cut("get_weather") {
        flowing.assert_passes(dialect, Streamed, &stream);
    }
}

/// F21: an input that could be complete is not, where the model was stopped in it.
#[test]
fn an_input_that_looks_complete_is_cut_where_the_model_was_stopped() {
    let model = Model::under(NO_FORCE);
    let custom = |finish: &str| {
        let call =
            json!({"index": 0, "id": "call_2", "type": "custom", "custom": {"name": "Bash", "input": "ls"}});
        chunks(&[
            choice(0, json!({"role": "assistant", "tool_calls": [call]}), None),
            choice(0, json!({}), Some(finish)),
        ])
    };
    let answer = model.ask(&Chat, Streamed, custom("length"));
    assert_without(&answer, &["call_2"]);
    assert!(answer.text().contains("before the call was complete"), "{}", answer.text());
    model.assert_passes(&Chat, Streamed, custom("tool_calls"));
}

/// F1: a start of the answer that comes twice says nothing new; another one does, and ends it.
#[test]
fn a_start_that_is_repeated_passes_and_another_ends_the_answer() {
    let model = Model::under(NO_FORCE);
    let mut events =
        message(&[text(0, "so"), call(1, "call_3", "Bash", &[r#"{"command":"ls"}"#])], "tool_use");
    events.insert(1, events[0].clone());
    model.assert_passes(&Anthropic, Streamed, named(&events));

    events[1]["message"]["id"] = "msg_2".into();
    let other = model.ask(&Anthropic, Streamed, named(&events));
    assert_without(&other, &["call_3"]);
    assert!(other.text().contains("event: error\n"), "{}", other.text());

    let mut late = message(&[text(0, "so"), call(1, "call_4", "Bash", &[r#"{"command":"ls"}"#])], "tool_use");
    late.insert(4, late[0].clone());
    assert_without(&model.ask(&Anthropic, Streamed, named(&late)), &["call_4"]);
}
