//! A search for secrets in 150 KB, beside a copy, a check that it is UTF-8 and a plain search for a few words: compare the
//! rows of one run (P20 of the performance targets).

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::call::{Api, BlockedCalls, Dialect, Service, Vendor};
use postern::detection::{CleanTexts, Inspection};
use postern::dlp::{Budget, Detectors, KnownValue, KnownValues, Search, Sight, StreamScanner};
use postern::name::host::Host;
use postern::policy::{Policy, document};
use postern::provider::adapter;
use postern::provider::adapter::ModelRequestHead;
use postern::provider::request::{Detection, read_document};
use postern::secret::Secret;
use postern::wire::json::{Document, Limits};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BYTES: usize = 150_000;
/// A message that is searched alone.
const FEW: usize = 5_000;

static DETECTORS: LazyLock<Detectors> = LazyLock::new(|| Detectors::built_in().unwrap());

/// Texts as agents send them, and one that has to be decoded all the way.
const TEXTS: [&str; 4] = ["source", "prose", "json", "base64"];

/// Texts that somebody wrote to make the search slow: anchors in a row, and parts that decode to more of their kind.
const HOSTILE: [&str; 20] = [
    "://",
    "a://b:cccc",
    "eyJ-",
    ".eyJ",
    "glpat-",
    "a1Q~",
    "key=",
    "sk-T3BlbkFJ",
    "xai-",
    "pypi-AgE",
    "-----BEGIN ",
    "%2525",
    "\\\\",
    "61",
    "VVVV",
    "a\u{200b}",
    "_phg",
    "eyJhbGciOiJIUzI1NiJ9.eyJ",
    "IGFiY2RlZmdoaWpr ",
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC3dE5f ",
];

fn main() {
    divan::main();
}

fn text(name: &str) -> Vec<u8> {
    let piece = match name {
        "source" => include_str!("detect.rs").to_owned(),
        "prose" => {
            "The gateway decides what a connection is, and where it goes. A tunnel is copied byte for byte. "
                .to_owned()
        }
        "json" => serde_json::json!({"command": include_str!("detect.rs")}).to_string(),
        _ => "VGhlIGdhdGV3YXkgZGVjaWRlcyB3aGF0IGEgY29ubmVjdGlvbiBpcw ".to_owned(),
    };
    piece.bytes().cycle().take(BYTES).collect()
}

#[divan::bench(args = TEXTS)]
fn copied(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| black_box(&text).clone());
}

#[divan::bench(args = TEXTS)]
fn checked(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| std::str::from_utf8(black_box(&text)).is_ok());
}

#[divan::bench(args = TEXTS)]
fn plain(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    let words =
        AhoCorasick::new(["ghp_", "glpat-", "sk-ant-", "xoxb-", "AKIA", "eyJ", "hf_", "npm_"]).unwrap();
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| words.find_iter(black_box(&text)).count());
}

#[divan::bench(args = HOSTILE)]
fn hostile(bencher: Bencher<'_, '_>, piece: &str) {
    let text: Vec<u8> = piece.bytes().cycle().take(BYTES).collect();
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| search(black_box(&text)));
}

#[divan::bench(args = TEXTS)]
fn searched(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| search(black_box(&text)));
}

#[divan::bench(args = TEXTS)]
fn alone(bencher: Bencher<'_, '_>, name: &str) {
    let mut text = text(name);
    text.truncate(FEW);
    bencher.counter(BytesCount::new(FEW)).bench_local(|| search(black_box(&text)));
}

fn search(text: &[u8]) -> (bool, usize) {
    let mut found = Vec::new();
    let searched = DETECTORS.scan(text, Sight::Whole, &mut Budget::of(text.len(), 64 << 20), &mut found);
    (searched.is_ok(), found.len())
}

/// A key that the gateway holds.
fn known() -> Arc<KnownValues> {
    let key = Secret::parse(b"sk-bench-0123456789abcdefghijklmnopqrstuvwxyz").unwrap();
    let value =
        KnownValue { id: "gateway-credential".to_owned(), home: Vec::new(), secrets: vec![Arc::new(key)] };
    Arc::new(KnownValues::new(vec![value], 1))
}

fn terms(has_key: bool) -> Search {
    let detectors = Arc::clone(Detectors::shared());
    if has_key { Search::new(detectors, known()) } else { detectors.into() }
}

/// The head of a small request, as SDKs write it.
#[divan::bench(args = [false, true])]
fn head(bencher: Bencher<'_, '_>, has_key: bool) {
    let (policy, host) = (policy(), Host::parse("api.example.com").unwrap());
    let request = http::Request::post("https://api.example.com/v1/things/4711?page=2")
        .header("host", "api.example.com")
        .header("user-agent", "example-sdk/1.2.3 (linux; x86_64) node/22")
        .header("accept", "application/json")
        .header("accept-encoding", "gzip, deflate, br")
        .header("content-type", "application/json")
        .header("content-length", "512")
        .header("x-stainless-lang", "js")
        .header("x-stainless-runtime-version", "v22.11.0")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", "postern:bench-key")
        .body(())
        .unwrap();
    let (parts, ()) = request.into_parts();
    let search = terms(has_key);
    bencher.bench_local(|| {
        let mut inspection = Inspection::of(&policy, search.clone(), &host, (0, 1 << 20));
        inspection.head(black_box(&parts)).is_ok()
    });
}

fn policy() -> Arc<Policy> {
    let text =
        "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, spec: {}}";
    let documents = document::parse("p.yaml", text).unwrap();
    Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap())
}

/// A conversation of so many turns, each with a file of 5 KB. The last one has this number, the others those before.
fn conversation(turns: usize, last: usize) -> String {
    let result = |number: usize| -> String {
        let text: String = include_str!("sse.rs").chars().cycle().skip(number * 997).take(FEW).collect();
        format!("{number} {text}")
    };
    let mut messages = vec![serde_json::json!({"role": "user", "content": "go"})];
    for number in (0..turns - 1).chain([last]) {
        let id = format!("toolu_{number}");
        let call = serde_json::json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/w/a.rs"}});
        messages.push(serde_json::json!({"role": "assistant", "content": [call]}));
        let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": result(number)});
        messages.push(serde_json::json!({"role": "user", "content": [result]}));
    }
    serde_json::json!({"model": "m", "max_tokens": 100, "messages": messages}).to_string()
}

/// Turns whose files are 150 KB.
const TURNS: usize = BYTES / FEW;

/// The next turn of a conversation of 150 KB, which repeats all of it and adds 5 KB: read and judged, with a search and
/// without. What the search adds is P21.
#[divan::bench(args = [false, true], sample_count = 100, sample_size = 1)]
fn next_turn(bencher: Bencher<'_, '_>, is_searched: bool) {
    const MESSAGES: Service =
        Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
    let policy = policy();
    let head =
        ModelRequestHead { service: MESSAGES, path: "/v1/messages", query: None, is_subscription: false };
    let host = Host::parse("api.anthropic.com").unwrap();
    let (search, clean, blocked) = (terms(true), Arc::new(CleanTexts::default()), BlockedCalls::new(1));
    let read = |document: &Document<'_>| {
        let inspection = Inspection::of(&policy, search.clone(), &host, (document.bytes().len(), 64 << 20));
        let mut inspection = inspection.of_model(true).passing_over(Arc::clone(&clean));
        let detection = is_searched.then_some(&mut inspection as &mut dyn Detection);
        let terms = (&*policy as &dyn postern::call::Terms, &blocked);
        read_document(adapter(Dialect::Anthropic), &head, document, terms, detection).is_ok()
    };
    let first = conversation(TURNS, TURNS - 1);
    assert!(read(&Document::parse(first.as_bytes(), Limits::default()).unwrap()));
    let mut last = TURNS;
    bencher
        .with_inputs(|| {
            last += 1;
            let next = String::leak(conversation(TURNS + 1, last));
            Document::parse(next.as_bytes(), Limits::default()).unwrap()
        })
        .bench_local_refs(|document| read(black_box(document)));
}

/// A text in pieces of 64 KiB, and zeros.
#[divan::bench(args = [("source", false), ("source", true), ("zeros", false), ("zeros", true)])]
fn streamed(bencher: Bencher<'_, '_>, (name, has_key): (&str, bool)) {
    let text = if name == "zeros" { vec![0; BYTES] } else { text(name) };
    let search = terms(has_key);
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| {
        let mut scanner = StreamScanner::new(search.clone());
        text.chunks(64 << 10).for_each(|piece| scanner.write(black_box(piece)).unwrap());
        scanner.released()
    });
}
