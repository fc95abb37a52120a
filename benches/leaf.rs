//! What a leaf costs, in P-256 signatures: minting, the cached look-up, building a TLS configuration.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up has nothing to say")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use divan::Bencher;
use postern::name::host::Host;
use postern::tls::authority::Authority;
use postern::tls::init;
use postern::tls::leaf::Leaves;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
    ratios();
}

#[divan::bench]
fn bare_signature(bencher: Bencher<'_, '_>) {
    bencher.bench_local(signature());
}

#[divan::bench]
fn mint(bencher: Bencher<'_, '_>) {
    let (authority, host) = (authority(), host());
    bencher.bench(|| authority.mint(&host, SystemTime::now()).unwrap());
}

/// A host never seen: minting and both TLS configurations.
#[divan::bench]
fn cold_name(bencher: Bencher<'_, '_>) {
    bencher.bench_local(cold());
}

#[divan::bench]
fn cached_name(bencher: Bencher<'_, '_>) {
    bencher.bench_local(cached());
}

/// The same work measured in turns, so that a busy machine slows all of it alike.
#[expect(clippy::print_stdout, reason = "a benchmark speaks")]
fn ratios() {
    let (authority, host) = (authority(), host());
    let mint = move || drop(black_box(authority.mint(&host, SystemTime::now()).unwrap()));
    let names = ["bare signature", "mint", "cold name", "cached name"];
    let mut work: [Box<dyn FnMut()>; 4] =
        [Box::new(signature()), Box::new(mint), Box::new(cold()), Box::new(cached())];
    let mut best = [Duration::MAX; 4];
    for _ in 0..50 {
        for (run, best) in work.iter_mut().zip(&mut best) {
            let start = Instant::now();
            (0..20).for_each(|_| run());
            *best = start.elapsed().min(*best);
        }
    }
    println!("\nin P-256 signatures (best of 50 rounds of 20):");
    for (name, time) in names.iter().zip(&best) {
        println!("  {name:<16} {:>8.3}", time.as_secs_f64() / best[0].as_secs_f64());
    }
}

fn signature() -> impl FnMut() {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).unwrap();
    move || {
        black_box(key.sign(&random, &[7; 400]).unwrap());
    }
}

fn cold() -> impl FnMut() {
    let leaves = leaves();
    let mut names = (0..).map(|index| Host::parse(&format!("h{index}.example.com")).unwrap());
    move || drop(black_box(leaves.server_config(&names.next().unwrap(), true).unwrap()))
}

fn cached() -> impl FnMut() {
    let (leaves, host) = (leaves(), host());
    move || drop(black_box(leaves.server_config(&host, true).unwrap()))
}

fn leaves() -> Leaves {
    Leaves::new(Arc::new(authority()), 1024)
}

fn authority() -> Authority {
    let directory = tempfile::tempdir().unwrap();
    init::init(directory.path(), SystemTime::now()).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    Authority::load(&read(init::CERTIFICATE), &read(init::KEY), SystemTime::now()).unwrap()
}

fn host() -> Host {
    Host::parse("api.example.com").unwrap()
}
