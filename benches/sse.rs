//! Server-sent events framed and written, per event and per byte, beside a copy of the same bytes and a search for
//! the ends of their lines: compare the rows of one run.
#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up must not measure")]

use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use memchr::memchr2_iter;
use postern::wire::sse::{Decoder, End, Form, Item, LineEnd, NameLine, encode};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many events one stream has.
const EVENTS: usize = 2_000;

const NAME: &str = "content_block_delta";
const FORM: Form = Form { name: NameLine::Required, comments: true, end: End::Name(&["message_stop"]) };

fn main() {
    divan::main();
}

/// How a stream arrives.
#[derive(Debug, Clone, Copy)]
enum Pieces {
    /// Each event in a record of its own, as it is generated.
    OneEvent,
    /// In large reads, with events across their ends.
    Reads,
}

impl Pieces {
    fn cut(self) -> Vec<Bytes> {
        let size = match self {
            Self::OneEvent => event().len(),
            Self::Reads => 64 << 10,
        };
        let stream = Bytes::from(event().repeat(EVENTS));
        (0..stream.len()).step_by(size).map(|at| stream.slice(at..stream.len().min(at + size))).collect()
    }
}

/// An event of the usual size.
fn event() -> Vec<u8> {
    let mut event = Vec::new();
    encode(Some(NAME), data(), LineEnd::Lf, &mut event);
    event
}

fn data() -> &'static str {
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a skeleton key"}}"#
}

#[divan::bench(args = [Pieces::OneEvent, Pieces::Reads])]
fn decode(bencher: Bencher<'_, '_>, pieces: Pieces) {
    let pieces = pieces.cut();
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(EVENTS * event().len())).bench_local(
        || {
            let mut decoder = Decoder::new(FORM, 4 << 20);
            let mut canonical = 0;
            for piece in black_box(&pieces) {
                decoder.push(piece.clone());
                while let Some(item) = decoder.next_item().unwrap() {
                    canonical +=
                        usize::from(matches!(black_box(item), Item::Event(event) if event.is_canonical()));
                }
            }
            assert_eq!(canonical, EVENTS);
        },
    );
}

#[divan::bench]
fn write(bencher: Bencher<'_, '_>) {
    let mut output = Vec::with_capacity(EVENTS * event().len());
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(EVENTS * event().len())).bench_local(
        || {
            output.clear();
            for _ in 0..EVENTS {
                encode(Some(NAME), black_box(data()), LineEnd::Lf, &mut output);
            }
            output.len()
        },
    );
}

/// The yardstick of a single pass over the bytes.
#[divan::bench(args = [Pieces::OneEvent, Pieces::Reads])]
fn baseline_copy(bencher: Bencher<'_, '_>, pieces: Pieces) {
    let pieces = pieces.cut();
    let mut target = Vec::with_capacity(EVENTS * event().len());
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(EVENTS * event().len())).bench_local(
        || {
            target.clear();
            for piece in black_box(&pieces) {
                target.extend_from_slice(piece);
            }
            target.len()
        },
    );
}

/// The yardstick of whoever must find lines.
#[divan::bench(args = [Pieces::OneEvent, Pieces::Reads])]
fn baseline_line_ends(bencher: Bencher<'_, '_>, pieces: Pieces) {
    let pieces = pieces.cut();
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(EVENTS * event().len())).bench_local(
        || black_box(&pieces).iter().map(|piece| memchr2_iter(b'\n', b'\r', piece).count()).sum::<usize>(),
    );
}
