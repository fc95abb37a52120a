//! Scrubbing beside what any pass over the same bytes costs: a copy, and a search for one byte that is not there.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::BytesCount;
use postern::filter::Rewrite;
use postern::filter::scrub::Scrubber;
use postern::secret::{Secret, SecretMatcher};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one read from a socket brings at most.
const CHUNK: usize = 16 * 1024;

fn main() {
    divan::main();
}

/// Which bytes flow.
#[derive(Debug, Clone, Copy)]
enum Flow {
    /// The small events of a model's answer.
    Events,
    /// A download.
    Binary,
    /// JSON text with escapes, all that begins a form of a key.
    Escapes,
}

const FLOWS: [Flow; 3] = [Flow::Events, Flow::Binary, Flow::Escapes];

impl Flow {
    fn bytes(self) -> Bytes {
        let event = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
                     {\"type\":\"text_delta\",\"text\":\" a skeleton key\"}}\n\n";
        let escapes = r#"{"path":"C:\\src\u002fmain","text":"100%25 of %7e \u0073 sk-ant sk-ant-api"}"#;
        let text = match self {
            Self::Events => event.as_bytes().iter().copied().cycle().take(CHUNK).collect(),
            Self::Escapes => escapes.as_bytes().iter().copied().cycle().take(CHUNK).collect(),
            Self::Binary => noise().take(CHUNK).collect::<Vec<u8>>(),
        };
        Bytes::from(text)
    }
}

/// Bytes without a pattern, the same in every run (xorshift).
fn noise() -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
}

/// As many keys as a pod usually has, of the usual shapes.
fn needles() -> Arc<SecretMatcher> {
    let keys = [
        "sk-ant-api03-Zq9tYw1cKx8vB2nM4pL6rD0sF3gH5jU7iO9eA-QwErTyUiOp_AsDfGhJkL1zXcVbNm2QAA",
        "sk-proj-4kD9fJ2hS7aL1pQ0wE8rT6yU5iO3",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ];
    let secrets: Vec<_> =
        keys.iter().filter_map(|key| Secret::parse(key.as_bytes()).ok()).map(Arc::new).collect();
    Arc::new(SecretMatcher::new(&secrets))
}

#[divan::bench(args = FLOWS)]
fn scrub(bencher: Bencher<'_, '_>, flow: Flow) {
    let (needles, chunk) = (needles(), flow.bytes());
    let mut out = Vec::new();
    bencher.counter(BytesCount::new(CHUNK)).bench_local(|| {
        let mut scrubber = Scrubber::new(Arc::clone(&needles));
        out.clear();
        let written = scrubber.write(black_box(chunk.clone()), &mut out);
        (written, out.len())
    });
}

#[divan::bench(args = FLOWS)]
fn copy(bencher: Bencher<'_, '_>, flow: Flow) {
    let chunk = flow.bytes();
    let mut target = vec![0; CHUNK];
    bencher.counter(BytesCount::new(CHUNK)).bench_local(|| {
        target.copy_from_slice(black_box(&chunk));
        black_box(&target);
    });
}

#[divan::bench(args = FLOWS)]
fn search_for_one_byte(bencher: Bencher<'_, '_>, flow: Flow) {
    let text: Vec<u8> = flow.bytes().iter().map(|&byte| byte.max(1)).collect();
    bencher.counter(BytesCount::new(CHUNK)).bench_local(|| memchr::memchr(0, black_box(&text)));
}

#[divan::bench]
fn build() -> Arc<SecretMatcher> {
    needles()
}
