//! What is said in the place of a call, and where an answer cannot go on. No type of event is invented: there are
//! clients that fail at one.

use serde_json::{Value, json};

/// A message in the place of an output item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) id: String,
    pub(super) text: String,
    /// The stream of a WebSocket, where it has several.
    pub(super) stream: Option<String>,
}

/// The longest id that clients send back and the API takes, in bytes.
const LONGEST: usize = 64;

impl Replacement {
    /// The message that stands for an item with this id at this place. The API tells the kind of an item from the
    /// beginning of its id.
    pub(super) fn new(item: Option<&str>, index: u64, text: &str, stream: Option<&str>) -> Self {
        let id = item.unwrap_or_default();
        let rest = id.split_once('_').map_or(id, |(_, rest)| rest);
        let fit = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut rest: String = rest.chars().filter(fit).take(LONGEST - "msg_".len()).collect();
        if rest.is_empty() {
            rest = format!("postern_{index}");
        }
        Self { id: format!("msg_{rest}"), text: text.to_owned(), stream: stream.map(str::to_owned) }
    }

    /// The item as it is complete.
    pub(super) fn item(&self) -> Value {
        self.item_with("completed", json!([Self::part(&self.text)]))
    }

    /// The events of the item in a stream, with numbers from the first on.
    pub(super) fn events(&self, index: u64, first: Option<i64>) -> Vec<(&'static str, String)> {
        let (id, text) = (&self.id, &self.text);
        let mut events = vec![
            ("response.output_item.added", json!({"item": self.item_with("in_progress", json!([]))})),
            ("response.content_part.added", json!({"item_id": id, "part": Self::part("")})),
            ("response.output_text.delta", json!({"item_id": id, "delta": text, "logprobs": []})),
            ("response.output_text.done", json!({"item_id": id, "text": text, "logprobs": []})),
            ("response.content_part.done", json!({"item_id": id, "part": Self::part(text)})),
            ("response.output_item.done", json!({"item": self.item()})),
        ];
        for (offset, (name, event)) in (0..).zip(&mut events) {
            event["type"] = json!(name);
            event["output_index"] = json!(index);
            if event.get("item").is_none() {
                event["content_index"] = json!(0);
            }
            if let Some(first) = first {
                event["sequence_number"] = json!(first + offset);
            }
            if let Some(stream) = &self.stream {
                event["stream_id"] = json!(stream);
            }
        }
        events.into_iter().map(|(name, event)| (name, event.to_string())).collect()
    }

    fn item_with(&self, status: &str, content: Value) -> Value {
        let mut item = json!({"id": self.id, "type": "message", "status": status, "role": "assistant"});
        item["content"] = content;
        item
    }

    fn part(text: &str) -> Value {
        json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    }
}

/// The facts of a response that the client knows, for events that Postern writes itself.
#[derive(Debug, Clone, Default)]
pub(super) struct SentResponse {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// As it was written.
    pub(super) created_at: Option<u64>,
    pub(super) stream: Option<String>,
}

impl SentResponse {
    /// `response.failed`, with the code at which Codex shows the message once and does not try again.
    pub(super) fn failed(&self, message: &str, number: Option<i64>) -> String {
        let error = json!({"code": "invalid_prompt", "message": message});
        self.event("response.failed", number, "failed", error)
    }

    /// `response.created`, with which every stream begins.
    pub(super) fn created(&self, number: Option<i64>) -> String {
        self.event("response.created", number, "in_progress", Value::Null)
    }

    /// `response.in_progress`, which clients may read at any time.
    pub(super) fn in_progress(&self, number: Option<i64>) -> String {
        self.event("response.in_progress", number, "in_progress", Value::Null)
    }

    fn event(&self, kind: &str, number: Option<i64>, status: &str, error: Value) -> String {
        let mut event = json!({"type": kind, "response": self.response(status)});
        event["response"]["error"] = error;
        if let Some(number) = number {
            event["sequence_number"] = json!(number);
        }
        if let Some(stream) = &self.stream {
            event["stream_id"] = json!(stream);
        }
        event.to_string()
    }

    /// All that the API's reference says is always there.
    fn response(&self, status: &str) -> Value {
        json!({
            "id": self.id.as_deref().unwrap_or("resp_postern"),
            "object": "response",
            "created_at": self.created_at.unwrap_or_default(),
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.model.as_deref().unwrap_or_default(),
            "output": [],
            "parallel_tool_calls": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "usage": null,
        })
    }
}
