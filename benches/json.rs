//! Reading and editing a request body beside what any pass over it costs (a copy), and beside serde_json's `Value`.
//!
//! What a body costs on the data path is `request`: it is read, policy is asked, what is hosted is taken out, and every
//! tool's definition gets its digest. `request_translated` is that with a route to a model that speaks Chat Completions.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::call::{Api, Dialect, Service, Vendor};
use postern::policy::{Labels, Policy, document};
use postern::provider::adapter;
use postern::provider::adapter::ModelRequestHead;
use postern::provider::request::RequestEditor;
use postern::provider::translate::estimate::{Ratio, Size};
use postern::provider::translate::{ChatTerms, EffortTerms, Images, Transform, ask, prompt};
use postern::wire::json::{Document, Edits, KnownParts, Limits, Value};
use serde_json::json;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The size of every body, within a few kilobytes.
const SIZE: usize = 150_000;

fn main() {
    divan::main();
}

/// Which body is read.
#[derive(Debug, Clone, Copy)]
enum Body {
    /// A coding agent's turn: long tool descriptions, schemas, a conversation full of source code.
    Turn,
    /// Schemas alone: short keys, short values, deep nesting.
    Schemas,
    /// One long string, as of an image.
    Image,
}

const BODIES: [Body; 3] = [Body::Turn, Body::Schemas, Body::Image];

impl Body {
    /// An Anthropic request of this kind, with one hosted tool among its tools.
    fn bytes(self) -> Vec<u8> {
        let (tools, turns) = match self {
            Self::Turn => (20, 24),
            Self::Schemas => (440, 0),
            Self::Image => (1, 0),
        };
        let mut tools: Vec<serde_json::Value> = (0..tools).map(|number| self.tool(number)).collect();
        tools.push(json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}));
        let mut messages = vec![json!({"role": "user", "content": "Mend the failing test."})];
        messages.extend((0..turns).flat_map(turn));
        if matches!(self, Self::Image) {
            let source =
                json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0K".repeat(SIZE / 8)});
            messages.push(json!({"role": "user", "content": [{"type": "image", "source": source}]}));
        }
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 32_000, "stream": true,
            "system": [{"type": "text", "text": "You are a coding agent.\n", "cache_control": {"type": "ephemeral"}}],
            "tools": tools, "messages": messages,
        });
        body.to_string().into_bytes()
    }

    fn tool(self, number: usize) -> serde_json::Value {
        let sentence = "Runs a command in a shell and returns its output.\n\n - Use \"absolute\" paths.\n";
        let description = sentence.repeat(if matches!(self, Self::Turn) { 24 } else { 1 });
        let property = json!({"type": "string", "description": "What is to be run", "minLength": 1});
        json!({
            "name": format!("tool_{number}"), "description": description,
            "input_schema": {
                "type": "object", "additionalProperties": false, "required": ["command"],
                "properties": {"command": property, "timeout": {"type": "number", "maximum": 600_000}},
            },
        })
    }
}

/// A call of a tool, and what it answered: source code.
fn turn(number: usize) -> [serde_json::Value; 2] {
    let id = format!("toolu_{number:024}");
    let line = "    let Some(value) = object.get(\"key\") else { return Err(\"no key\") };\n";
    [
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "I read the file first."},
            {"type": "tool_use", "id": id, "name": "tool_3", "input": {"command": "cat src/main.rs", "timeout": 5}},
        ]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": line.repeat(52)}]}),
    ]
}

#[divan::bench(args = BODIES)]
fn copy(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    let mut target = vec![0; body.len()];
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        target.copy_from_slice(black_box(&body));
        black_box(&target);
    });
}

#[divan::bench(args = BODIES)]
fn read(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| Document::parse(black_box(&body), Limits::default()).is_ok());
}

#[divan::bench(args = BODIES)]
fn read_by_serde_json(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| serde_json::from_slice::<serde_json::Value>(black_box(&body)).is_ok());
}

#[divan::bench(args = BODIES)]
fn remove_a_tool(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| without_hosted_tool(black_box(&body)));
}

/// What the data path does with a request that a route takes: it is judged, said anew, and judged as it leaves (P19 of the
/// performance targets).
#[divan::bench(args = BODIES)]
fn request_translated(bencher: Bencher<'_, '_>, body: Body) {
    translated(bencher, body, |_| ());
}

/// The same with the count of its size, by which a gateway learns how many bytes a model's tokens have.
#[divan::bench(args = BODIES)]
fn request_translated_and_counted(bencher: Bencher<'_, '_>, body: Body) {
    translated(bencher, body, |document| Size::of(document).tokens(Ratio::default()));
}

fn translated<T>(bencher: Bencher<'_, '_>, body: Body, count: fn(&Document<'_>) -> T) {
    let policy = policy();
    let messages =
        ModelRequestHead { service: MESSAGES, path: "/v1/messages", query: None, is_subscription: false };
    let service =
        Service { vendor: Vendor::OpenAi, api: Api::ChatCompletions, dialect: Some(Dialect::OpenAIChat) };
    let chat =
        ModelRequestHead { service, path: "/v1/chat/completions", query: None, is_subscription: false };
    let terms = ChatTerms {
        model: "qwen3-coder",
        label: "coder",
        vendor: Vendor::OpenAi,
        max_tokens: None,
        images: Images::Send,
        effort: EffortTerms::Drop,
        params: "",
        transforms: [Transform::Reasoning, Transform::SchemaGeneric].into_iter().collect(),
    };
    let body = body.bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let nothing = KnownParts::default();
        let (edited, known) = judged(&policy, &messages, (black_box(&body), &nothing));
        let left = edited.as_deref().unwrap_or(&body);
        let document = Document::parse_known(left, Limits::default(), &known).expect("a body");
        let prompt = prompt(&document).expect("a request that can be said");
        let counted = count(&document);
        let asked = ask(&prompt, &terms).expect("a request that can be said");
        let (judged, _) = judged(&policy, &chat, (&asked.body, &asked.known));
        (counted, judged.map(|edited| edited.len()))
    });
}

/// What it costs to count a request's tokens here.
#[divan::bench(args = BODIES)]
fn count(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let document = Document::parse(black_box(&body), Limits::default()).expect("a body");
        Size::of(&document).tokens(Ratio::default())
    });
}

#[divan::bench(args = BODIES)]
fn request(bencher: Bencher<'_, '_>, body: Body) {
    let policy = policy();
    let asked =
        ModelRequestHead { service: MESSAGES, path: "/v1/messages", query: None, is_subscription: false };
    let body = body.bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let (judged, _) = judged(&policy, &asked, (black_box(&body), &KnownParts::default()));
        judged.map(|edited| edited.len())
    });
}

const MESSAGES: Service =
    Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };

fn policy() -> Policy {
    const POLICY: &str = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p}\nspec:\n  tools:\n    - {name: r, tools: [rm], action: Deny}\n";
    let documents = document::parse("bench.yaml", POLICY).expect("a policy");
    Policy::compile(&documents, &Labels::new()).expect("a policy")
}

/// The body as policy leaves it, where it was edited, and what is known of it.
fn judged(
    policy: &Policy,
    asked: &ModelRequestHead<'_>,
    (body, known): (&[u8], &KnownParts),
) -> (Option<Vec<u8>>, KnownParts) {
    let document = Document::parse_known(body, Limits::default(), known).expect("a body");
    let mut draft = RequestEditor::new(&document, policy);
    let dialect = asked.service.dialect.expect("an inference endpoint");
    adapter(dialect).request(asked, &mut draft).expect("a request that goes on");
    let edited = draft.finish();
    (edited.body, edited.known)
}

fn without_hosted_tool(body: &[u8]) -> Option<Vec<u8>> {
    let document = Document::parse(body, Limits::default()).ok()?;
    let mut edits = Edits::new(&document);
    for tool in document.root().get("tools").ok()?.and_then(Value::items)? {
        if tool.get("type").ok()?.is_some_and(|kind| kind.says("web_search_20250305")) {
            edits.remove(tool).ok()?;
        }
    }
    Some(edits.apply())
}

#[divan::bench(args = BODIES)]
fn remove_a_tool_by_serde_json(bencher: Bencher<'_, '_>, body: Body) {
    let body = body.bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let mut value: serde_json::Value = serde_json::from_slice(black_box(&body)).ok()?;
        value["tools"].as_array_mut()?.retain(|tool| tool["type"] != "web_search_20250305");
        serde_json::to_vec(&value).ok()
    });
}
