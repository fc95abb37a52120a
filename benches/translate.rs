//! Streams of Chat Completions said as Messages, per event, beside framing them alone and a copy of the same bytes: compare
//! the rows of one run.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use std::collections::BTreeMap;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use postern::call::Dialect;
use postern::provider::translate::{AgentRoute, AnswerLimits, AnswerTerms, AnswerTranslation, Transform};
use postern::wire::sse::{Decoder, End, Form, NameLine};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many events one answer has.
const EVENTS: usize = 2_000;
/// How many bytes one read has.
const READ: usize = 16 << 10;

fn main() {
    divan::main();
}

/// What the events of an answer bring.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Text,
    Thinking,
    /// Pieces of one call's arguments.
    Call,
}

const STREAMS: [Stream; 3] = [Stream::Text, Stream::Thinking, Stream::Call];

impl Stream {
    fn bytes(self) -> Vec<u8> {
        let chunk = |delta: &str, finish: &str| {
            format!(
                r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764000000,"model":"qwen3-coder","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}"#
            ) + "\n\n"
        };
        let call = |arguments: &str| {
            format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{arguments}"}}}}]}}"#)
        };
        let piece = match self {
            Self::Text => r#"{"content":" a skeleton key"}"#.to_owned(),
            Self::Thinking => r#"{"reasoning_content":" a skeleton key"}"#.to_owned(),
            Self::Call => call(" a skeleton key"),
        };
        let (begin, end) = match self {
            Self::Text | Self::Thinking => (chunk(r#"{"role":"assistant"}"#, "null"), String::new()),
            Self::Call => {
                let named = r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"Write","arguments":""}}]}"#;
                (
                    chunk(named, "null") + &chunk(&call(r#"{\"content\": \""#), "null"),
                    chunk(&call(r#"\"}"#), "null"),
                )
            }
        };
        let finish = if matches!(self, Self::Call) { r#""tool_calls""# } else { r#""stop""# };
        let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2000,"total_tokens":2009}}"#;
        let mut stream = begin;
        (0..EVENTS).for_each(|_| stream.push_str(&chunk(&piece, "null")));
        (stream + &end + &chunk("{}", finish) + usage + "\n\ndata: [DONE]\n\n").into_bytes()
    }
}

fn terms() -> AnswerTerms {
    AnswerTerms {
        agent: Dialect::Anthropic,
        model: Dialect::OpenAIChat,
        route: AgentRoute { label: "coder".to_owned(), rule: "agents/p/small".to_owned() },
        exchange: "0123456789abcdef01234567".to_owned(),
        is_stream: true,
        shows_thinking: true,
        stop_sequences: Vec::new(),
        names: BTreeMap::new(),
        transforms: [Transform::Reasoning, Transform::SchemaGeneric].into_iter().collect(),
        has_exit_tool: false,
        input_estimate: Some(1_000),
        bytes_per_token: 3.5,
        drops_unreadable: false,
        limits: AnswerLimits { event_bytes: 4 << 20, tool_input_bytes: 1 << 20, body_bytes: 32 << 20 },
    }
}

#[divan::bench(args = STREAMS)]
fn translated(bencher: Bencher<'_, '_>, stream: Stream) {
    let (stream, terms) = (stream.bytes(), terms());
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut translation =
            AnswerTranslation::new(terms.clone(), "text/event-stream").expect("a stream of events");
        let mut written = 0;
        for piece in black_box(&stream).chunks(READ) {
            out.clear();
            translation.write(piece, &mut out).expect("an answer");
            written += out.len();
        }
        out.clear();
        translation.finish(&mut out).expect("an answer");
        assert!(written > stream.len() / 3, "the agent has an answer");
        written
    });
}

/// The yardstick of whoever must frame events.
#[divan::bench(args = STREAMS)]
fn baseline_framing(bencher: Bencher<'_, '_>, stream: Stream) {
    const FORM: Form = Form { name: NameLine::Absent, comments: true, end: End::Data("[DONE]") };
    let stream = bytes::Bytes::from(stream.bytes());
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut decoder = Decoder::new(FORM, 4 << 20);
        for at in (0..stream.len()).step_by(READ) {
            decoder.push(black_box(&stream).slice(at..stream.len().min(at + READ)));
            while let Some(item) = decoder.next_item().expect("an event") {
                black_box(item);
            }
        }
    });
}

/// The yardstick of a single pass over the bytes.
#[divan::bench(args = STREAMS)]
fn baseline_copy(bencher: Bencher<'_, '_>, stream: Stream) {
    let stream = stream.bytes();
    let mut target = Vec::with_capacity(stream.len());
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(stream.len())).bench_local(|| {
        target.clear();
        target.extend_from_slice(black_box(&stream));
        target.len()
    });
}
