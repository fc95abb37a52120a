//! What goes on unparsed comes to what it would have come to if every part were read: in each dialect, for whatever
//! bytes and however they are cut.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use proptest::prelude::*;

use super::testing::{Names, recorded, settings};
use super::{
    BrokenAnswer, FailurePolicy, Gate, Guard, GuardSettings, KeepAlive, Out, StreamEvent, Transcript,
};
use crate::call::{
    AnswerFacts, Api, BlockedCall, CallNote, Dialect, Normalization, RequestFacts, Service, Vendor,
};
use crate::provider;
use crate::provider::adapter::{Framing, ModelRequestHead};
use crate::wire::json::{Document, Value};

/// A dialect's own reader: counts what it reads, and is told of what it need not read only where it `skips`.
struct Watched {
    own: Box<dyn Transcript>,
    skips: bool,
    read: Arc<AtomicUsize>,
}

impl Transcript for Watched {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.own.event(event, gate, out)
    }

    fn free<'d>(&mut self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        if self.skips { self.own.free(event) } else { Vec::new() }
    }

    fn again(&mut self, numbers: &[u64], gate: &mut Gate) {
        self.own.again(numbers, gate);
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        self.own.end(gate, out)
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        self.own.whole(body, gate)
    }

    fn is_in_call(&self) -> bool {
        self.own.is_in_call()
    }

    fn suspects(&self, unread: &[u8]) -> bool {
        self.own.suspects(unread)
    }

    fn skipped(&mut self) {
        self.own.skipped();
    }

    fn held(&self) -> usize {
        self.own.held()
    }

    fn keep_alive(&self) -> KeepAlive {
        self.own.keep_alive()
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        self.own.broken(message, out);
    }
}

const SPOKEN: [(Dialect, Api, &str); 4] = [
    (Dialect::Anthropic, Api::Messages, "/v1/messages"),
    (Dialect::OpenAIChat, Api::ChatCompletions, "/v1/chat/completions"),
    (Dialect::OpenAIResponses, Api::Responses, "/v1/responses"),
    (Dialect::Gemini, Api::GenerateContent, "/v1beta/models/m:streamGenerateContent"),
];

/// How an answer is guarded, and how it ends.
#[derive(Debug, Clone, Copy)]
struct Way {
    dialect: Dialect,
    failure: FailurePolicy,
    observes: bool,
    ends: bool,
    piece: usize,
}

/// All that comes of an answer.
#[derive(Debug, PartialEq)]
struct Outcome {
    out: String,
    result: Result<(), BrokenAnswer>,
    /// After each piece: how many bytes had gone on, how many were held and kept.
    progress: Vec<(usize, usize, usize)>,
    notes: Vec<CallNote>,
    blocked: Vec<(String, BlockedCall)>,
    facts: AnswerFacts,
    normalization: Normalization,
    warning: Option<BrokenAnswer>,
}

fn guard(way: Way, skips: bool, read: &Arc<AtomicUsize>) -> (Guard, Framing) {
    let (dialect, api, path) = *SPOKEN.iter().find(|(dialect, ..)| *dialect == way.dialect).unwrap();
    let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
    let head = ModelRequestHead { service, path, query: Some("alt=sse"), is_subscription: false };
    let facts = RequestFacts { stream: true, ..RequestFacts::default() };
    let adapter = provider::adapter(dialect);
    let own = adapter.transcript(&head, &facts).unwrap();
    let framing = adapter.framing(&head, &facts, "text/event-stream");
    let settings = GuardSettings { failure: way.failure, ..settings(Names { observes: way.observes }) };
    (Guard::new(Box::new(Watched { own, skips, read: Arc::clone(read) }), framing, settings), framing)
}

/// What comes of pieces, and how many parts of them were read.
fn outcome<'b>(
    way: Way,
    skips: bool,
    pieces: impl Iterator<Item = &'b [u8]>,
    messages: bool,
) -> (Outcome, usize) {
    let read = Arc::new(AtomicUsize::new(0));
    let (mut guard, _) = guard(way, skips, &read);
    let (mut out, mut result, mut progress) = (Vec::new(), Ok(()), Vec::new());
    for piece in pieces {
        let piece = Bytes::copy_from_slice(piece);
        result = if messages { guard.message(piece, &mut out) } else { guard.write(piece, &mut out) };
        progress.push((out.iter().map(Bytes::len).sum(), guard.held(), guard.kept_bytes()));
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() && way.ends {
        result = guard.finish(&mut out);
    } else {
        guard.broken_off(&mut out);
    }
    let outcome = Outcome {
        out: String::from_utf8_lossy(&out.concat()).into_owned(),
        result,
        progress,
        notes: guard.take_notes(),
        blocked: guard.take_blocked(),
        facts: guard.facts().clone(),
        normalization: guard.normalization(),
        warning: guard.warning().cloned(),
    };
    (outcome, read.load(Ordering::Relaxed))
}

/// Returns how many parts were read where those that may go on unparsed did, and how many there are.
fn assert_same(way: Way, stream: &[u8]) -> (usize, usize) {
    let pieces = || stream.chunks(way.piece.max(1));
    let (light, few) = outcome(way, true, pieces(), false);
    let (full, all) = outcome(way, false, pieces(), false);
    assert_eq!(light, full, "{way:?}: {}", String::from_utf8_lossy(stream));
    (few, all)
}

/// Events of an answer as they may come one after another, the first three such that the others can follow them. `TEXT`
/// and `NUMBER` stand for any.
fn events(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Anthropic => ANTHROPIC,
        Dialect::OpenAIChat => CHAT,
        Dialect::OpenAIResponses => RESPONSES,
        Dialect::Gemini | Dialect::Bedrock => GEMINI,
    }
}

const ANTHROPIC: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"m","model":"a","content":[],"usage":{"input_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":NUMBER,"delta":{"type":"input_json_delta","partial_json":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_stop","index":NUMBER}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"TEXT"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Held","input":{}}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Free","input":{}}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"t","name":"Denied","input":{}}}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"t","content":[]}}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"type": "ping"}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":NUMBER}}"#,
    r#"{"type":"message_stop"}"#,
];

const CHAT: &[&str] = &[
    r#"{"id":"c","model":"a","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}],"obfuscation":"TEXT"}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}],"obfuscation":"TEXT"}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning":"TEXT"}}],"usage":{"prompt_tokens":NUMBER}}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT","reasoning_content":"TEXT"}}]}"#,
    r#"{"id":"c","choices":[{"index":1,"delta":{"content":"TEXT"}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"a","content":"TEXT"}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT","tool_calls":[{"index":0,"id":"t","function":{"name":"Held","arguments":""}}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"u","function":{"name":"Denied","arguments":"{}"}}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"TEXT"}}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"},"message":{"tool_calls":[{"function":{"name":"Free"}}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT","executed_tools":[{"index":0,"name":"Denied"}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT","executed_tools":[{"index":0,"name":"Free"}]}}]}"#,
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":"tool_calls"}]}"#,
    r#"{"error":{"message":"TEXT"},"choices":[{"index":0,"delta":{"content":"TEXT"}}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":NUMBER,"completion_tokens":NUMBER}}"#,
    "[DONE]",
];

const RESPONSES: &[&str] = &[
    r#"{"type":"response.created","response":{"id":"r","model":"a","output":[]},"sequence_number":0}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","content":[]},"sequence_number":1}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"item_id":"i","delta":"TEXT","sequence_number":NUMBER,"obfuscation":"TEXT"}"#,
    r#"{"type":"response.output_text.delta","item_id":"i","delta":"TEXT","sequence_number":NUMBER}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"TEXT","sequence_number":NUMBER}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"TEXT"}"#,
    r#"{"type":"response.output_text.delta","stream_id":"s","output_index":0,"delta":"TEXT","sequence_number":NUMBER}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"TEXT","sequence_number":1,"sequence_number":NUMBER}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"TEXT","item":{"type":"function_call","name":"Free","call_id":"c","arguments":"{}"}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"TEXT","sequence_number":NUMBER}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"f","type":"function_call","call_id":"c","name":"Held","arguments":""},"sequence_number":NUMBER}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"g","type":"function_call","call_id":"d","name":"Denied","arguments":""},"sequence_number":NUMBER}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"TEXT","sequence_number":NUMBER}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"f","type":"function_call","call_id":"c","name":"Held","arguments":"TEXT"},"sequence_number":NUMBER}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"i","type":"message","content":[]},"sequence_number":NUMBER}"#,
    r#"{"type":"response.created","response":{"id":"q","output":[]},"sequence_number":0}"#,
    r#"{"type":"response.completed","response":{"id":"r","output":[],"usage":{"input_tokens":NUMBER}},"sequence_number":NUMBER}"#,
];

const GEMINI: &[&str] = &[
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"index":0}],"usageMetadata":{"promptTokenCount":3},"modelVersion":"a","responseId":"r"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}],"usageMetadata":{"promptTokenCount":NUMBER,"candidatesTokenCount":NUMBER,"totalTokenCount":NUMBER,"promptTokensDetails":[{"modality":"M","tokenCount":NUMBER}]}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}],"usageMetadata":{"promptTokenCount":NUMBER,"candidatesTokenCount":NUMBER,"totalTokenCount":NUMBER,"promptTokensDetails":[{"modality":"M","tokenCount":NUMBER}]}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT","thought":true},{"text":"TEXT"}]}}],"usageMetadata":{"thoughtsTokenCount":NUMBER,"cachedContentTokenCount":NUMBER}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}],"usageMetadata":{"prompt_token_count":NUMBER,"toolUsePromptTokenCount":"NUMBER"}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}],"usageMetadata":{"promptTokenCount":NUMBER.5}}"#,
    r#"{"response":{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}],"usageMetadata":{"promptTokenCount":NUMBER}}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"index":1},{"content":{"parts":[{"text":"TEXT"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT","functionCall":{"name":"Free","args":{}}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Held","willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Denied","args":{}}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"TEXT"}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"groundingMetadata":{"webSearchQueries":["TEXT"]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":NUMBER}}"#,
];

const TEXTS: [&str; 12] = [
    "a",
    "",
    "two words and more, longer than a word of the scanner and than two of them as well: sixty-four",
    r"\n",
    "é",
    r"\u00e9\ud83d\ude00",
    r#"\"}]}\"#,
    r#"","type":"x"#,
    r"\ud83d",
    "{}",
    "forbidden",
    "\u{2028}",
];

const NUMBERS: [&str; 8] = ["0", "1", "2", "17", "01", "-1", "1e2", "12345678901234567890"];

/// One event of a stream, by numbers of what is chosen.
#[derive(Debug, Clone)]
struct Chosen {
    event: usize,
    /// It comes so often, each time with the next text and number.
    times: usize,
    text: usize,
    number: usize,
    /// How its lines look: most are in canonical form.
    lines: u8,
}

fn chosen() -> impl Strategy<Value = Chosen> {
    let event = prop_oneof![1..6_usize, any::<u8>().prop_map(usize::from)];
    let lines = prop_oneof![3 => Just(9), 2 => 0..64_u8];
    (event, 1..5_usize, any::<u8>(), any::<u8>(), lines).prop_map(|(event, times, text, number, lines)| {
        Chosen { event, times, text: text.into(), number: number.into(), lines }
    })
}

/// A stream of these events behind the first ones of its dialect.
fn stream(dialect: Dialect, chosen: &[Chosen]) -> Vec<u8> {
    let events = events(dialect);
    let is_named = matches!(dialect, Dialect::Anthropic | Dialect::OpenAIResponses);
    let first = (0..3).map(|event| Chosen { event, times: 1, text: 0, number: 2, lines: 9 });
    let mut stream = String::new();
    for chosen in first.chain(chosen.iter().cloned()) {
        for time in 0..chosen.times {
            let mut json = events[chosen.event % events.len()].to_owned();
            for (place, all, number) in
                [("TEXT", &TEXTS[..], chosen.text), ("NUMBER", &NUMBERS[..], chosen.number)]
            {
                // Text that breaks an event, and numbers that are none, come seldom.
                let sound = if chosen.lines % 8 == 7 { all.len() } else { all.len() / 2 };
                json = json.replace(place, all[(number + time) % sound]);
            }
            let kind = json.split('"').nth(3).filter(|_| is_named).unwrap_or_default();
            let name = if kind.is_empty() { String::new() } else { format!("event: {kind}\n") };
            stream.push_str(&match chosen.lines {
                0 => format!("{name}data: {json}\n\r\n"),
                1 => format!("data: {json}\n\n"),
                2 => format!("{name}data:{json}\n\n"),
                3 => format!("{name}: comment\ndata: {json}\n\n"),
                4 => format!(": comment\n\n{name}data: {json}\n\n"),
                5 => format!("id: 7\n{name}data: {json}\n\n"),
                6 => format!("{name}data: {json}\ndata: {json}\n\n"),
                // Of an event that ends a stream, to those who go by names.
                7 => format!("{name}id: 7\n\n"),
                _ => format!("{name}data: {json}\n\n"),
            });
        }
    }
    // Google's lines end so.
    if dialect == Dialect::Gemini { stream.replace('\n', "\r\n").into_bytes() } else { stream.into_bytes() }
}

/// Bytes that go into a stream, or out of it, at places.
fn edits() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    let byte = prop::option::of(prop::sample::select(b"\"\\,:{}[] \n\rdtu0a\xff\xc3".to_vec()));
    prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec((any::<usize>(), byte), 1..4)]
}

fn edited(mut stream: Vec<u8>, edits: &[(usize, Option<u8>)]) -> Vec<u8> {
    for (place, byte) in edits {
        let place = place % stream.len();
        match byte {
            Some(byte) => stream.insert(place, *byte),
            None => drop(stream.remove(place)),
        }
    }
    stream
}

fn way() -> impl Strategy<Value = Way> {
    let dialect = prop::sample::select(SPOKEN.map(|(dialect, ..)| dialect).to_vec());
    let piece = prop_oneof![1..300_usize, Just(1 << 16)];
    let failure = prop::sample::select(vec![FailurePolicy::Closed, FailurePolicy::Open]);
    (dialect, failure, any::<bool>(), any::<bool>(), piece)
        .prop_map(|(dialect, failure, observes, ends, piece)| Way { dialect, failure, observes, ends, piece })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn reading_less_comes_to_the_same(
        way in way(),
        chosen in prop::collection::vec(chosen(), 0..12),
        edits in edits(),
    ) {
        assert_same(way, &edited(stream(way.dialect, &chosen), &edits));
    }

    #[test]
    fn reading_fewer_messages_comes_to_the_same(
        way in way(),
        chosen in prop::collection::vec(chosen(), 0..12),
        edits in edits(),
    ) {
        let stream = edited(stream(Dialect::OpenAIResponses, &chosen), &edits);
        let messages = || stream.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        let way = Way { dialect: Dialect::OpenAIResponses, ..way };
        prop_assert_eq!(outcome(way, true, messages(), true).0, outcome(way, false, messages(), true).0);
    }
}

#[test]
fn behind_an_end_that_only_its_name_says_nothing_goes_on() {
    for (dialect, end) in [
        (Dialect::Anthropic, "event: message_stop\n\n"),
        (Dialect::OpenAIResponses, "event: response.completed\n\n"),
        (Dialect::OpenAIChat, "data: [DONE]\n\n"),
    ] {
        let text = [Chosen { event: 2, times: 3, text: 0, number: 0, lines: 9 }];
        let before = stream(dialect, &text);
        let behind = &before[stream(dialect, &[]).len()..];
        let stream = [&before[..], end.as_bytes(), behind].concat();
        for piece in [1 << 20, before.len(), 7] {
            assert_same(strict(dialect, piece), &stream);
        }
    }
}

fn strict(dialect: Dialect, piece: usize) -> Way {
    Way { dialect, failure: FailurePolicy::Closed, observes: false, ends: true, piece }
}

#[test]
fn of_text_in_every_dialect_only_the_first_is_read() {
    for (dialect, ..) in SPOKEN {
        let text = Chosen { event: 2, times: 100, text: 0, number: 0, lines: 9 };
        let stream = stream(dialect, &[text]);
        for piece in [1 << 20, stream.len() / 2] {
            let (read, parts) = assert_same(strict(dialect, piece), &stream);
            assert!(parts >= 103 && read <= 6, "{dialect:?}: {read} of {parts}");
        }
    }
}

#[test]
fn what_the_client_would_read_as_a_call_is_read_here_too() {
    let start = r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"#;
    let call = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Denied","input":{}}}"#;
    let before = stream(Dialect::Anthropic, &[]);
    for hidden in [
        format!("{start}\"a\"}}}}\n\nevent: content_block_start\ndata: {call}\n\n"),
        format!(
            "{start}\"a\"}}}}\n\nevent: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":0}}\n\nevent: content_block_start\ndata: {call}\n\n"
        ),
        format!("{start}\"a\rdata: {call}\"}}}}\n\n"),
        format!("{start}\"a\ndata: {call}\"}}}}\n\n"),
        format!("{start}\"a\",\"type\":\"input_json_delta\"}}}}\n\n"),
        format!("{start}\"a\"}},\"type\":\"content_block_start\",\"content_block\":{call}}}\n\n"),
        format!("{start}\"a\\\"}}}}\n\n{call}\"}}}}\n\n"),
    ] {
        let stream = [&before[..], hidden.as_bytes()].concat();
        assert_same(strict(Dialect::Anthropic, stream.len()), &stream);
        let pieces = [&stream[..]];
        let (outcome, _) = outcome(strict(Dialect::Anthropic, 1), true, pieces.into_iter(), false);
        assert!(!outcome.out.contains("\"name\":\"Denied\""), "{}", outcome.out);
    }
}

#[test]
fn recorded_answers_come_to_the_same_and_most_of_their_text_is_not_read() {
    let folders = [
        ("anthropic", Dialect::Anthropic),
        ("openai-chat", Dialect::OpenAIChat),
        ("openai-responses", Dialect::OpenAIResponses),
        ("gemini", Dialect::Gemini),
        ("deepseek", Dialect::OpenAIChat),
        ("xai", Dialect::OpenAIChat),
        ("groq", Dialect::OpenAIChat),
        ("sse-corner-cases", Dialect::Anthropic),
    ];
    let (mut read, mut parts) = (0, 0);
    for (folder, dialect) in folders {
        for path in
            recorded(folder).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "sse"))
        {
            let stream = fs::read(&path).unwrap();
            assert_same(Way { observes: true, ..strict(dialect, 97) }, &stream);
            let (few, all) = assert_same(strict(dialect, 1 << 20), &stream);
            (read, parts) = (read + few, parts + all);
        }
    }
    assert!(parts == 0 || read * 4 < parts * 3, "{read} of {parts}");
}
