//! Writes an answer of Messages that is one text of the gateway: as JSON, or as the events of a stream.

use serde_json::{Value, json};

/// An answer to a request for `model`, whole or as a stream. SDKs read it as one that a model wrote.
pub fn told(text: &str, (id, model): (&str, &str), streams: bool) -> String {
    let usage = json!({"input_tokens": 0, "output_tokens": 0});
    let message = |content: Value, stop: Option<&str>| {
        json!({
            "id": id, "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": usage,
        })
    };
    let block = |text: &str| json!({"type": "text", "text": text});
    if !streams {
        return message(json!([block(text)]), Some("end_turn")).to_string();
    }
    let events = [
        json!({"type": "message_start", "message": message(json!([]), None)}),
        json!({"type": "content_block_start", "index": 0, "content_block": block("")}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "usage": {"output_tokens": 0},
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
        }),
        json!({"type": "message_stop"}),
    ];
    let event = |event: &Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_gateway_is_an_answer_whole_and_in_events() {
        let whole: Value = serde_json::from_str(&told("a\n\"b\"", ("msg_1", "coder"), false)).unwrap();
        assert_eq!(whole["content"][0]["text"], "a\n\"b\"");
        assert_eq!(whole["stop_reason"], "end_turn");
        let events = told("a", ("msg_1", "coder"), true);
        let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(
            names,
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop"
            ]
        );
    }
}
