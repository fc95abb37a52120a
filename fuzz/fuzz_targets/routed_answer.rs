//! Answers of Chat Completions for an agent that speaks Messages: whatever comes, the agent reads a stream without a flaw, or
//! one failure; and how the bytes are cut never matters.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{arbitrary, fuzz_target};
use postern::call::Dialect;
use postern::provider::translate::{
    AgentRoute, AnswerLimits, AnswerTerms, AnswerTranslation, Transform, Transforms,
};
use serde_json::{Value, json};

/// Answers as the strictest clients read them: the reader of the library's own tests.
#[path = "../../src/provider/anthropic/reply"]
mod provider {
    #[allow(dead_code)]
    mod checker;

    pub(crate) fn check(body: &[u8], is_stream: bool) {
        if is_stream {
            checker::check(body, false);
        } else {
            checker::check_whole(body);
        }
    }
}

/// A piece of an answer.
#[derive(Debug, arbitrary::Arbitrary)]
enum Piece {
    Text(String),
    Reasoning(String),
    Call { index: Option<u8>, id: Option<String>, name: Option<String>, arguments: Arguments },
    LegacyCall { name: String, arguments: Arguments },
    Finish(u8),
    Usage(u16, u16),
    OtherChoice(String),
    Error(String),
    Done,
    Raw(Vec<u8>),
}

/// Arguments, and what enhancetool mends.
#[derive(Debug, arbitrary::Arbitrary)]
enum Arguments {
    Any(String),
    Parts(Vec<u8>),
}

const PARTS: [&str; 16] = [
    "{", "}", "'p'", ":", "[1,]", "\"a\"", ",", "None", "True", "\\", "/a", " ", "\"", "p", "\u{1}",
    "<think>",
];
const FINISHES: [&str; 7] =
    ["stop", "tool_calls", "length", "content_filter", "function_call", "error", "eos"];

impl Arguments {
    fn text(&self) -> String {
        match self {
            Self::Any(text) => text.clone(),
            Self::Parts(parts) => parts.iter().map(|part| PARTS[usize::from(part % 16)]).collect(),
        }
    }
}

impl Piece {
    fn write(&self, out: &mut Vec<u8>) {
        let delta = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
        let chunk = match self {
            Self::Text(text) => delta(json!({"content": text})),
            Self::Reasoning(text) => delta(json!({"reasoning_content": text})),
            Self::Call { index, id, name, arguments } => {
                let function = json!({"name": name, "arguments": arguments.text()});
                delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
            }
            Self::LegacyCall { name, arguments } => {
                delta(json!({"function_call": {"name": name, "arguments": arguments.text()}}))
            }
            Self::Finish(why) => {
                let why = FINISHES[usize::from(*why) % FINISHES.len()];
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": why}]})
            }
            Self::Usage(prompt, completion) => {
                json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
            }
            Self::OtherChoice(text) => json!({"choices": [{"index": 1, "delta": {"content": text}}]}),
            Self::Error(text) => json!({"error": {"message": text}}),
            Self::Done => "[DONE]".into(),
            Self::Raw(bytes) => return out.extend_from_slice(bytes),
        };
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
    }
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    pieces: Vec<Piece>,
    cut: u8,
    transforms: u16,
    is_stream: bool,
    sends_stream: bool,
    shows_thinking: bool,
    drops_unreadable: bool,
    breaks_off: bool,
}

/// What the agent reads: whether it is a failure, and all bytes.
fn read(input: &Input, body: &[u8], cut: usize) -> (bool, Vec<u8>) {
    let is_chosen = |(number, _): &(usize, &Transform)| input.transforms >> number & 1 == 1;
    let chosen = Transform::ALL.iter().enumerate().filter(is_chosen).map(|(_, transform)| *transform);
    let transforms: Transforms = chosen.collect();
    let terms = AnswerTerms {
        agent: Dialect::Anthropic,
        model: Dialect::OpenAIChat,
        route: AgentRoute { label: "coder".to_owned(), rule: "n/p/r".to_owned() },
        exchange: "0123456789abcdef01234567".to_owned(),
        is_stream: input.is_stream,
        shows_thinking: input.shows_thinking,
        stop_sequences: vec!["END".to_owned()],
        names: BTreeMap::from([("short".to_owned(), "the long one".to_owned())]),
        transforms,
        has_exit_tool: input.transforms & 1 == 1,
        input_estimate: None,
        bytes_per_token: 3.5,
        drops_unreadable: input.drops_unreadable,
        limits: AnswerLimits { event_bytes: 1 << 16, tool_input_bytes: 1 << 10, body_bytes: 1 << 14 },
    };
    let content_type = if input.sends_stream { "text/event-stream" } else { "application/json" };
    let mut translation = AnswerTranslation::new(terms, content_type).unwrap();
    let mut out = Vec::new();
    let mut result = Ok(());
    for bytes in body.chunks(cut) {
        result = translation.write(bytes, &mut out);
        assert!(translation.held() <= (1 << 16) + (1 << 15) + cut, "what waits is bounded");
        if result.is_err() || translation.is_over() {
            break;
        }
    }
    if result.is_ok() && !translation.is_over() {
        result = match input.breaks_off {
            true => translation.broken_off("the connection ended", &mut out),
            false => translation.finish(&mut out),
        };
    }
    assert!(result.is_ok() || out.is_empty(), "a failure is told before anything is written");
    (result.is_err(), out)
}

fuzz_target!(|input: Input| {
    let mut body = Vec::new();
    for piece in &input.pieces {
        piece.write(&mut body);
    }
    let whole = read(&input, &body, usize::MAX.min(body.len().max(1)));
    if !whole.0 {
        provider::check(&whole.1, input.is_stream);
    }
    let cut = read(&input, &body, usize::from(input.cut).max(1));
    assert_eq!(whole.0, cut.0);
    assert_eq!(String::from_utf8(whole.1), String::from_utf8(cut.1));
});
