//! A search for secrets in 150 KB, beside a copy, a check that it is UTF-8 and a plain search for a few words: compare the
//! rows of one run (P20 of the performance targets).

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::dlp::{Budget, Detectors, Sight};

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
