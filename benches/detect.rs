//! A search for secrets in 150 KB, beside a copy, a check that it is UTF-8 and a plain search for a few words: compare the
//! rows of one run (P20 of the performance targets).

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::detection::Inspection;
use postern::dlp::{Budget, Detectors, KnownValue, KnownValues, Search, Sight, StreamScanner};
use postern::name::host::Host;
use postern::policy::{Policy, document};
use postern::secret::Secret;

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
    let text =
        "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, spec: {}}";
    let documents = document::parse("p.yaml", text).unwrap();
    let policy = Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap());
    let host = Host::parse("api.example.com").unwrap();
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
