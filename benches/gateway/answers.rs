//! Answers of Messages that are short enough for one write: text, a call, a call that policy denies.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::body::MESSAGES;

/// How many events of text one has.
const EVENTS: usize = 100;
/// How long a call's input is, in bytes.
const INPUT: usize = 200;

/// A model with one answer, which streams.
struct Short {
    model: &'static str,
    answer: LazyLock<String>,
}

/// Models whose answers are short.
pub(crate) const TEXT_MODEL: &str = "m-text";
pub(crate) const CALL_MODEL: &str = "m-call";
pub(crate) const SUDO_MODEL: &str = "m-sudo";

static SHORT: [Short; 3] = [
    Short { model: TEXT_MODEL, answer: LazyLock::new(text) },
    Short { model: CALL_MODEL, answer: LazyLock::new(|| call("cat")) },
    Short { model: SUDO_MODEL, answer: LazyLock::new(|| call("sudo cat")) },
];

/// The answer of the model that this request names, if it is one of these.
pub(crate) fn short(asked: &[u8]) -> Option<&'static str> {
    let is_asked = |model: &str| memchr::memmem::find(asked, model.as_bytes()).is_some();
    SHORT.iter().find(|short| is_asked(short.model)).map(|short| short.answer.as_str())
}

fn text() -> String {
    [MESSAGES.begin, &MESSAGES.each.repeat(EVENTS), MESSAGES.end].concat()
}

/// An answer with one call, which reads files by this command.
fn call(command: &str) -> String {
    let files = INPUT - json!({"command": format!("{command} ")}).to_string().len();
    let files: String =
        "src/proxy/body/mod.rs src/proxy/body/coalesce.rs ".chars().cycle().take(files).collect();
    let input = json!({"command": format!("{command} {files}")}).to_string();
    let (first, second) = input.split_at(INPUT / 2);
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}});
    let piece = |text: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": text});
        event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    [
        MESSAGES.begin.split_inclusive("\n\n").next().unwrap_or_default().to_owned(),
        event(&json!({"type": "content_block_start", "index": 0, "content_block": block})),
        piece(first),
        piece(second),
        event(&json!({"type": "content_block_stop", "index": 0})),
        event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 20},
        })),
        event(&json!({"type": "message_stop"})),
    ]
    .concat()
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
