//! A strict reader of Messages streams, as the strictest clients read them: tests of all who write one use it.

use serde_json::Value;

/// What an agent has of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::provider) struct Seen {
    pub(in crate::provider) id: String,
    pub(in crate::provider) model: String,
    pub(in crate::provider) blocks: Vec<SeenBlock>,
    /// `None` if the answer ended in an error.
    pub(in crate::provider) stop_reason: Option<String>,
    pub(in crate::provider) stop_sequence: Option<String>,
    pub(in crate::provider) usage: Value,
    /// The type and the message of the error that ended the answer.
    pub(in crate::provider) error: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::provider) enum SeenBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// The input as it came, which may be no JSON.
    Call {
        id: String,
        name: String,
        input: String,
    },
}

impl Seen {
    /// All text, joined.
    pub(in crate::provider) fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| if let SeenBlock::Text(text) = block { Some(text.as_str()) } else { None })
            .collect()
    }

    /// All thinking, joined.
    pub(in crate::provider) fn thinking(&self) -> String {
        let of = |block: &SeenBlock| {
            if let SeenBlock::Thinking { text, .. } = block { Some(text.clone()) } else { None }
        };
        self.blocks.iter().filter_map(of).collect()
    }

    /// Id, name and input of each call.
    pub(in crate::provider) fn calls(&self) -> Vec<(String, String, String)> {
        let of = |block: &SeenBlock| match block {
            SeenBlock::Call { id, name, input } => Some((id.clone(), name.clone(), input.clone())),
            SeenBlock::Text(_) | SeenBlock::Thinking { .. } => None,
        };
        self.blocks.iter().filter_map(of).collect()
    }
}

/// Reads a stream, and panics where any client could stumble. `is_open` allows that the stream goes on.
#[track_caller]
pub(in crate::provider) fn check(stream: &[u8], is_open: bool) -> Seen {
    let stream = std::str::from_utf8(stream).unwrap();
    let mut checker = Checker::default();
    let mut rest = stream;
    while !rest.is_empty() {
        let (event, behind) = rest.split_once("\n\n").expect("every event ends in a blank line");
        let (name, data) = event.split_once('\n').expect("an event has two lines");
        let name = name.strip_prefix("event: ").expect("the first line is the name");
        let data = data.strip_prefix("data: ").expect("the second line is the data");
        assert!(!data.contains(['\n', '\r']), "an event has two lines: {event}");
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name, "the name is the type");
        checker.event(name, &data);
        rest = behind;
    }
    assert!(is_open || checker.is_over || stream.is_empty(), "the stream has an end: {stream}");
    checker.seen
}

/// Reads a whole answer.
#[track_caller]
pub(in crate::provider) fn check_whole(body: &[u8]) -> Seen {
    let message: Value = serde_json::from_slice(body).unwrap();
    assert_eq!((&message["type"], &message["role"]), (&"message".into(), &"assistant".into()));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let blocks =
        message["content"].as_array().unwrap().iter().map(|block| match block["type"].as_str().unwrap() {
            "text" => SeenBlock::Text(text(&block["text"])),
            "thinking" => {
                SeenBlock::Thinking { text: text(&block["thinking"]), signature: text(&block["signature"]) }
            }
            "tool_use" => {
                assert!(block["input"].is_object());
                SeenBlock::Call {
                    id: text(&block["id"]),
                    name: text(&block["name"]),
                    input: block["input"].to_string(),
                }
            }
            other => panic!("a block of type {other}"),
        });
    let seen = Seen {
        id: text(&message["id"]),
        model: text(&message["model"]),
        blocks: blocks.collect(),
        stop_reason: Some(text(&message["stop_reason"])),
        stop_sequence: message["stop_sequence"].as_str().map(str::to_owned),
        usage: message["usage"].clone(),
        error: None,
    };
    distinct(&seen);
    seen
}

#[derive(Default)]
struct Checker {
    seen: Seen,
    has_begun: bool,
    is_open: bool,
    is_described: bool,
    is_over: bool,
}

impl Checker {
    #[track_caller]
    fn event(&mut self, name: &str, data: &Value) {
        assert!(!self.is_over, "nothing follows the end: {data}");
        assert!(self.has_begun || name == "message_start", "the first event is message_start: {data}");
        match name {
            "message_start" => self.message_start(data),
            "content_block_start" => self.block_start(data),
            "content_block_delta" => self.block_delta(data),
            "content_block_stop" => {
                self.of_open_block(data);
                if let Some(SeenBlock::Thinking { signature, .. }) = self.seen.blocks.last() {
                    assert!(!signature.is_empty(), "thinking is signed");
                }
                self.is_open = false;
            }
            "message_delta" => self.message_delta(data),
            "message_stop" => {
                assert!(self.is_described, "message_delta comes before message_stop");
                self.is_over = true;
                distinct(&self.seen);
            }
            "ping" => {}
            "error" => {
                let of = |key: &str| data["error"][key].as_str().unwrap().to_owned();
                self.seen.error = Some((of("type"), of("message")));
                self.is_over = true;
            }
            other => panic!("an event of type {other}"),
        }
    }

    #[track_caller]
    fn message_start(&mut self, data: &Value) {
        assert!(!self.has_begun, "an answer begins once");
        self.has_begun = true;
        let message = &data["message"];
        assert_eq!(message["content"], serde_json::json!([]));
        assert_eq!((&message["type"], &message["role"]), (&"message".into(), &"assistant".into()));
        assert!(message["stop_reason"].is_null() && message["stop_sequence"].is_null());
        assert!(message["usage"]["input_tokens"].is_u64() && message["usage"]["output_tokens"].is_u64());
        self.seen.id = message["id"].as_str().unwrap().to_owned();
        self.seen.model = message["model"].as_str().unwrap().to_owned();
    }

    #[track_caller]
    fn block_start(&mut self, data: &Value) {
        assert!(!self.is_open, "no two blocks are open: {data}");
        assert!(!self.is_described, "no block follows message_delta: {data}");
        assert_eq!(data["index"].as_u64(), Some(self.seen.blocks.len() as u64), "there is no gap: {data}");
        self.is_open = true;
        let block = &data["content_block"];
        let text = |key: &str| block[key].as_str().unwrap().to_owned();
        self.seen.blocks.push(match text("type").as_str() {
            "text" => SeenBlock::Text(text("text")),
            "thinking" => SeenBlock::Thinking { text: text("thinking"), signature: text("signature") },
            "tool_use" => {
                assert_eq!(block["input"], serde_json::json!({}));
                assert!(!text("name").is_empty(), "a call has a name");
                SeenBlock::Call { id: text("id"), name: text("name"), input: String::new() }
            }
            other => panic!("a block of type {other}"),
        });
    }

    #[track_caller]
    fn block_delta(&mut self, data: &Value) {
        self.of_open_block(data);
        let delta = &data["delta"];
        let text = |key: &str| {
            let text = delta[key].as_str().unwrap();
            assert!(!text.is_empty(), "no delta is empty: {data}");
            text.to_owned()
        };
        match (delta["type"].as_str().unwrap(), self.seen.blocks.last_mut().unwrap()) {
            ("text_delta", SeenBlock::Text(all)) => all.push_str(&text("text")),
            ("thinking_delta", SeenBlock::Thinking { text: all, signature }) => {
                assert!(signature.is_empty(), "nothing follows the signature: {data}");
                all.push_str(&text("thinking"));
            }
            ("signature_delta", SeenBlock::Thinking { signature, .. }) => {
                assert!(signature.is_empty(), "thinking is signed once: {data}");
                *signature = text("signature");
            }
            ("input_json_delta", SeenBlock::Call { input, .. }) => input.push_str(&text("partial_json")),
            (kind, block) => panic!("{kind} in {block:?}"),
        }
    }

    #[track_caller]
    fn message_delta(&mut self, data: &Value) {
        assert!(!self.is_open, "all blocks are closed: {data}");
        assert!(!self.is_described, "there is one message_delta: {data}");
        self.is_described = true;
        let reason = data["delta"]["stop_reason"].as_str().unwrap();
        let has_calls = !self.seen.calls().is_empty();
        assert!(reason == "max_tokens" || has_calls == (reason == "tool_use"), "{reason} fits the calls");
        assert!(data["usage"]["output_tokens"].is_u64() && data["usage"]["input_tokens"].is_u64());
        self.seen.stop_reason = Some(reason.to_owned());
        self.seen.stop_sequence = data["delta"]["stop_sequence"].as_str().map(str::to_owned);
        self.seen.usage = data["usage"].clone();
    }

    #[track_caller]
    fn of_open_block(&self, data: &Value) {
        assert!(self.is_open, "a block is open: {data}");
        assert_eq!(
            data["index"].as_u64(),
            Some(self.seen.blocks.len() as u64 - 1),
            "it is the open block: {data}"
        );
    }
}

/// No block is empty, and no two calls have one id, which is one that Messages allows.
#[track_caller]
fn distinct(seen: &Seen) {
    let mut ids: Vec<String> = seen.calls().into_iter().map(|(id, ..)| id).collect();
    for id in &ids {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        assert!(!id.is_empty() && id.len() <= 64 && id.bytes().all(is_allowed), "{id}");
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "ids differ");
    for block in &seen.blocks {
        match block {
            SeenBlock::Text(text) | SeenBlock::Thinking { text, .. } => {
                assert!(!text.trim().is_empty(), "no block is white space alone");
            }
            SeenBlock::Call { .. } => {}
        }
    }
}
