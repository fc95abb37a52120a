//! Canonical forms of hosts and paths, beside a plain copy of the same text: compare the rows of one run.

use divan::{Bencher, black_box};
use postern::name::host::{Authority, Host};
use postern::name::path::NormalPath;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOSTS: [&str; 5] = [
    "api.anthropic.com",
    "API.Anthropic.COM.",
    "r3---sn-4g5e6nsz.googlevideo.com",
    "xn--bcher-kva.example",
    "[2001:db8::1]",
];
const PATHS: [&str; 4] =
    ["/v1/messages", "/acme/repository/info/refs", "/v1/%6dessages/a%20b", "/v1//messages"];

fn main() {
    divan::main();
}

/// The yardstick: a lower-case copy.
#[divan::bench(args = HOSTS)]
fn baseline_copy(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench_local(|| black_box(text).to_ascii_lowercase());
}

#[divan::bench(args = HOSTS)]
fn host(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench_local(|| Host::parse(black_box(text)));
}

#[divan::bench(args = ["api.anthropic.com:443", "[2001:db8::1]:8443"])]
fn authority(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench_local(|| Authority::parse(black_box(text)));
}

#[divan::bench(args = PATHS)]
fn path(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench_local(|| NormalPath::parse(black_box(text)));
}
