//! Answers guarded, per event and per byte, by the number of rules, beside framing alone and a copy of the same bytes:
//! compare the rows of one run.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use postern::call::{Api, BlockedCalls, Dialect, Inputs, RequestFacts, Service, Vendor};
use postern::ledger::fresh_id;
use postern::policy::{Labels, Policy, document};
use postern::provider::adapter;
use postern::provider::adapter::{Adapter, Framing, ModelRequestHead};
use postern::provider::answer::{FailurePolicy, Guard, GuardLimits, GuardSettings, Transcript, TypedLines};
use postern::provider::kind::Offered;
use postern::wire::json;
use postern::wire::sse::{Decoder, End, Form, LineEnd, NameLine, encode};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many deltas of text one answer has.
const EVENTS: usize = 2_000;

/// How many bytes one read has.
const READ: usize = 16 << 10;

fn main() {
    divan::main();
}

/// What the policy of an answer says of tools.
#[derive(Debug, Clone, Copy)]
enum Rules {
    /// Nothing but what is built in; the request offers no tool that writes.
    Observed,
    Names(usize),
    /// One about what a command says.
    Condition,
}

const RULES: [Rules; 5] =
    [Rules::Observed, Rules::Names(10), Rules::Names(1_000), Rules::Names(10_000), Rules::Condition];

impl Rules {
    fn policy(self) -> Policy {
        let mut documents = Vec::new();
        let names = if let Self::Names(names) = self { names } else { 0 };
        for first in (0..names.max(1)).step_by(500) {
            let mut text = format!(
                "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p{first}}}\nspec:\n  tools:\n"
            );
            for number in first..names.min(first + 500) {
                writeln!(text, "    - {{name: r{number}, tools: ['tool_{number}'], action: Deny}}")
                    .expect("writing to a string");
            }
            if matches!(self, Self::Condition) {
                text.push_str("    - {name: c, kind: Shell, action: Deny, when: {all: [{param: command, operator: Contains, values: [sudo]}]}}\n");
            }
            if matches!(self, Self::Observed) {
                text.push_str("    - {name: a, tools: [a], action: Audit}\n");
            }
            documents.extend(document::parse("bench.yaml", &text).expect("a policy"));
        }
        Policy::compile(&documents, &Labels::new()).expect("a policy")
    }
}

fn event(name: &str, data: &str, stream: &mut Vec<u8>) {
    encode(Some(name), data, LineEnd::Lf, stream);
}

/// How an answer begins.
const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#;

/// An answer of Anthropic Messages: text, and one call at its end.
fn answer() -> Vec<Bytes> {
    let mut stream = Vec::new();
    let stream = &mut stream;
    event("message_start", START, stream);
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    event("content_block_start", start, stream);
    for _ in 0..EVENTS {
        let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a skeleton key"}}"#;
        event("content_block_delta", delta, stream);
    }
    event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#, stream);
    let start = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}"#;
    event("content_block_start", start, stream);
    let delta = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"ls\"}"}}"#;
    event("content_block_delta", delta, stream);
    event("content_block_stop", r#"{"type":"content_block_stop","index":1}"#, stream);
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2000}}"#;
    event("message_delta", end, stream);
    event("message_stop", r#"{"type":"message_stop"}"#, stream);
    let stream = Bytes::from(std::mem::take(stream));
    (0..stream.len()).step_by(READ).map(|at| stream.slice(at..stream.len().min(at + READ))).collect()
}

fn bytes(chunks: &[Bytes]) -> BytesCount {
    BytesCount::new(chunks.iter().map(Bytes::len).sum::<usize>())
}

fn dialect() -> (Box<dyn Transcript>, Framing) {
    let dialect = Dialect::Anthropic;
    let adapter: &dyn Adapter = adapter(dialect);
    let service = Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(dialect) };
    let asked = ModelRequestHead { service, path: "/v1/messages", query: None, is_subscription: false };
    let facts = RequestFacts { stream: true, ..RequestFacts::default() };
    let transcript = adapter.transcript(&asked, &facts).expect("an endpoint with answers");
    (transcript, adapter.framing(&asked, &facts, "text/event-stream"))
}

fn settings(rules: Rules) -> GuardSettings {
    let limits = GuardLimits {
        event_bytes: 4 << 20,
        tool_input_bytes: 1 << 20,
        body_bytes: 32 << 20,
        json: json::Limits::default(),
    };
    let judge = Arc::new(rules.policy());
    GuardSettings {
        judge,
        failure: FailurePolicy::Closed,
        limits,
        inputs: Inputs::Hash,
        writes: false,
        offered: Offered::default(),
        conversation: String::new(),
        typed: TypedLines::default(),
        event_id: fresh_id,
        ask_at: None,
        reads_evidence: None,
    }
}

#[divan::bench(args = RULES)]
fn guard(bencher: Bencher<'_, '_>, rules: Rules) {
    let chunks = answer();
    let settings = settings(rules);
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(EVENTS)).counter(bytes(&chunks)).bench_local(|| {
        let (transcript, framing) = dialect();
        let mut guard = Guard::new(transcript, framing, settings.clone());
        for chunk in black_box(&chunks) {
            out.clear();
            guard.write(chunk.clone(), &mut out).expect("an answer");
        }
        guard.finish(&mut out).expect("an answer");
        guard.take_notes().len()
    });
}

/// All that the guard does for a short question and an answer that comes whole: 2 KB and 1 KB.
#[divan::bench(args = [Rules::Observed, Rules::Names(10), Rules::Condition])]
fn question(bencher: Bencher<'_, '_>, rules: Rules) {
    let (settings, blocked) = (settings(rules), BlockedCalls::new(16));
    let policy = rules.policy();
    let of = |text: &str| {
        format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"{text}"}}]}}"#)
    };
    let asked = of(&"word ".repeat(400)[..2_000 - of("").len()]);
    let of = |text: &str| {
        format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        )
    };
    let answer = Bytes::from(of(&"a".repeat(1_024 - of("").len())));
    let adapter = adapter(Dialect::Anthropic);
    let service =
        Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
    let head = ModelRequestHead { service, path: "/v1/messages", query: None, is_subscription: false };
    bencher.bench_local(|| {
        let body = (black_box(asked.as_bytes()), json::Limits::default());
        let read = postern::provider::request::read(adapter, &head, body, (&policy, &blocked), None);
        let facts = read.expect("a request").facts;
        let transcript = adapter.transcript(&head, &facts).expect("an endpoint with answers");
        let mut guard = Guard::new(transcript, Framing::Whole, settings.clone());
        guard.whole(answer.clone()).expect("an answer").len() + guard.take_notes().len()
    });
}

/// Calls in one answer.
const CALLS: usize = 100;

/// A tool, a parameter of it, and what the policy says: a command is read, other inputs are not.
const CALLED: [(&str, &str, Rules); 4] = [
    ("Bash", "command", Rules::Condition),
    ("Bash", "command", Rules::Names(10)),
    ("mcp__tickets__add", "text", Rules::Condition),
    ("mcp__tickets__add", "text", Rules::Names(10)),
];

/// One call whose input has 200 bytes, in a stream of many: judged, and held until it is.
#[divan::bench(args = CALLED)]
fn call(bencher: Bencher<'_, '_>, (tool, parameter, rules): (&str, &str, Rules)) {
    let settings = settings(rules);
    let input = format!(r#"{{\"{parameter}\": \"cat {}\"}}"#, "src/main.rs ".repeat(15));
    let mut stream = Vec::new();
    event("message_start", START, &mut stream);
    for index in 0..CALLS {
        let start = format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"toolu_{index}","name":"{tool}","input":{{}}}}}}"#
        );
        event("content_block_start", &start, &mut stream);
        let delta = format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":"{input}"}}}}"#
        );
        event("content_block_delta", &delta, &mut stream);
        let stop = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
        event("content_block_stop", &stop, &mut stream);
    }
    let stream = Bytes::from(stream);
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        let (transcript, framing) = dialect();
        let mut guard = Guard::new(transcript, framing, settings.clone());
        out.clear();
        guard.write(black_box(&stream).clone(), &mut out).expect("an answer");
        guard.take_notes().len()
    });
}

/// The yardstick of whoever must frame events.
#[divan::bench]
fn baseline_framing(bencher: Bencher<'_, '_>) {
    const FORM: Form = Form { name: NameLine::Required, comments: true, end: End::Name(&["message_stop"]) };
    let chunks = answer();
    bencher.counter(ItemsCount::new(EVENTS)).counter(bytes(&chunks)).bench_local(|| {
        let mut decoder = Decoder::new(FORM, 4 << 20);
        for chunk in black_box(&chunks) {
            decoder.push(chunk.clone());
            while let Some(item) = decoder.next_item().expect("an event") {
                black_box(item);
            }
        }
    });
}

/// The yardstick of a single pass over the bytes.
#[divan::bench]
fn baseline_copy(bencher: Bencher<'_, '_>) {
    let chunks = answer();
    let mut target = Vec::new();
    bencher.counter(ItemsCount::new(EVENTS)).counter(bytes(&chunks)).bench_local(|| {
        target.clear();
        for chunk in black_box(&chunks) {
            target.extend_from_slice(chunk);
        }
        target.len()
    });
}
