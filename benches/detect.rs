//! A search for secrets in 150 KB, beside a copy and a check that it is UTF-8: compare the rows of one run (P20 of the
//! performance targets).

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]

use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use postern::dlp::{Budget, Detectors, Sight};

const BYTES: usize = 150_000;

static DETECTORS: LazyLock<Detectors> = LazyLock::new(|| Detectors::built_in().unwrap());

/// Texts as agents send them, and one that has to be decoded all the way.
const TEXTS: [&str; 4] = ["source", "prose", "json", "base64"];

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
fn searched(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| {
        let mut found = Vec::new();
        let searched =
            DETECTORS.scan(black_box(&text), Sight::Whole, &mut Budget::of(BYTES, 64 << 20), &mut found);
        (searched.is_ok(), found.len())
    });
}
