//! The demo's providers: what their models say to a prompt, in Anthropic's shape and in Chat Completions, event by event.

use bytes::Bytes;
use serde_json::{Value, json};

/// Where its model is asked.
pub(super) const MESSAGES: &str = "/v1/messages";

/// Where a model of one's own is asked, by Chat Completions.
pub(super) const CHAT: &str = "/v1/chat/completions";

/// A call of a tool: its name, and its input as JSON.
pub(super) type Call = (&'static str, &'static str);

/// A prompt, and the calls that the model answers it with.
pub(super) type ModelTurn = (&'static str, [Call; 2]);

pub(super) const CLEAN_UP: ModelTurn =
    ("Clean up.", [("Bash", r#"{"command":"ls -l"}"#), ("Bash", r#"{"command":"rm -fr /"}"#)]);

pub(super) const LOOK_AROUND: ModelTurn = (
    "Look around.",
    [("Read", r#"{"file_path":"/workspace/README.md"}"#), ("Read", r#"{"file_path":"/etc/shadow"}"#)],
);

pub(super) const CORRECT: ModelTurn = (
    "Correct the notes.",
    [
        ("Edit", r#"{"file_path":"notes.txt","old_string":"three","new_string":"3"}"#),
        ("Edit", r#"{"file_path":"notes.txt","old_string":"two","new_string":"2"}"#),
    ],
);

/// The stream that answers a request, one chunk an event.
pub(super) fn answer(request: &[u8]) -> Vec<Bytes> {
    let request = String::from_utf8_lossy(request);
    let known = [CLEAN_UP, LOOK_AROUND, CORRECT];
    let calls = known.iter().find(|(prompt, _)| request.contains(prompt)).map_or(&[][..], |(_, calls)| calls);
    let begun = json!({"type": "message_start", "message": {
        "id": "msg_demo", "type": "message", "role": "assistant", "model": "demo", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 1},
    }});
    let ended = json!({
        "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 30},
    });
    let blocks = calls.iter().enumerate().flat_map(|(index, call)| block(index, *call));
    let end = [event(&ended), event(&json!({"type": "message_stop"}))];
    std::iter::once(event(&begun)).chain(blocks).chain(end).collect()
}

/// The events of a call at this place in the answer; its input comes in two pieces.
pub(super) fn block(index: usize, (name, input): Call) -> [Bytes; 4] {
    let begun = json!({"type": "tool_use", "id": format!("toolu_demo_{index}"), "name": name, "input": {}});
    let piece = |json: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let (first, rest) = input.split_at(input.len() / 2);
    [
        event(&json!({"type": "content_block_start", "index": index, "content_block": begun})),
        piece(first),
        piece(rest),
        event(&json!({"type": "content_block_stop", "index": index})),
    ]
}

/// The stream of a model of one's own: it deletes what it should clean up, and answers all else with a text.
pub(super) fn chat_answer(request: &[u8]) -> Vec<Bytes> {
    let (prompt, [_, (name, input)]) = CLEAN_UP;
    let chunk = |delta: Value, finish: Option<&str>| -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "chatcmpl-demo", "object": "chat.completion.chunk", "choices": [choice]});
        format!("data: {chunk}\n\n").into()
    };
    let (said, finish) = if String::from_utf8_lossy(request).contains(prompt) {
        let function = json!({"name": name, "arguments": input});
        let call = json!({"index": 0, "id": "call_demo", "type": "function", "function": function});
        (json!({"tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"content": "Said by the local model."}), "stop")
    };
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42}});
    let usage = format!("data: {usage}\n\n").into();
    vec![chunk(said, None), chunk(json!({}), Some(finish)), usage, "data: [DONE]\n\n".into()]
}

fn event(data: &Value) -> Bytes {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
