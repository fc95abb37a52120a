//! Destination decisions by the number of rules, beside one look-up in a map: compare the rows of one run.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use std::collections::HashMap;
use std::fmt::Write as _;

use divan::{Bencher, black_box};
use postern::name::host::DnsName;
use postern::name::path::NormalPath;
use postern::policy::destination::{EndpointQuery, Flow, Protocol};
use postern::policy::{Labels, Policy, document};

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    divan::main();
}

/// A policy of `size` rules: exact names, wildcards and ranges in turn, several files of 500 each.
fn policy(size: usize) -> Policy {
    let mut documents = Vec::new();
    for first in (0..size).step_by(500) {
        let mut text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p{first}}}\nspec:\n  destinations:\n"
        );
        for number in first..size.min(first + 500) {
            let about = match number % 4 {
                0 => format!("hosts: [h{number}.example.com], action: Inspect"),
                1 => format!("hosts: ['*.w{number}.example.com'], action: Tunnel"),
                2 => format!(
                    "hosts: ['**.s{number}.example.com'], action: Inspect, endpoints: [{{path: /v1/**}}]"
                ),
                _ => format!(
                    "cidrs: [10.{}.{}.0/24], ports: [5432], action: Tunnel",
                    number / 256 % 256,
                    number % 256
                ),
            };
            writeln!(text, "    - {{name: r{number}, {about}}}").expect("writing to a string");
        }
        documents.extend(document::parse("bench.yaml", &text).expect("a policy"));
    }
    Policy::compile(&documents, &Labels::new()).expect("a policy")
}

fn decide(bencher: Bencher<'_, '_>, size: usize, name: &str) {
    let policy = policy(size);
    let name = DnsName::parse(name).expect("a name");
    bencher.bench_local(|| {
        let flow = Flow { name: Some(black_box(&name)), address: None, port: 443, protocol: Protocol::Tls };
        policy.destination(&flow)
    });
}

/// The yardstick: one look-up of the same name in a map of as many names.
#[divan::bench(args = SIZES)]
fn baseline_map(bencher: Bencher<'_, '_>, size: usize) {
    let map: HashMap<String, usize> =
        (0..size).map(|number| (format!("h{number}.example.com"), number)).collect();
    bencher.bench_local(|| map.get(black_box("h4.example.com")).copied());
}

#[divan::bench(args = SIZES)]
fn exact_name(bencher: Bencher<'_, '_>, size: usize) {
    decide(bencher, size, "h4.example.com");
}

#[divan::bench(args = SIZES)]
fn one_label(bencher: Bencher<'_, '_>, size: usize) {
    decide(bencher, size, "a.w5.example.com");
}

#[divan::bench(args = SIZES)]
fn suffix(bencher: Bencher<'_, '_>, size: usize) {
    decide(bencher, size, "a.b.c.s6.example.com");
}

#[divan::bench(args = SIZES)]
fn denied(bencher: Bencher<'_, '_>, size: usize) {
    decide(bencher, size, "a.b.elsewhere.test");
}

#[divan::bench(args = SIZES)]
fn address(bencher: Bencher<'_, '_>, size: usize) {
    let policy = policy(size);
    let ip = "10.0.3.9".parse().ok();
    bencher.bench_local(|| {
        let flow = Flow { name: None, address: black_box(ip), port: 5432, protocol: Protocol::Opaque };
        policy.destination(&flow)
    });
}

#[divan::bench]
fn endpoint(bencher: Bencher<'_, '_>) {
    let policy = policy(10);
    let name = DnsName::parse("a.s6.example.com").expect("a name");
    let flow = Flow { name: Some(&name), address: None, port: 443, protocol: Protocol::Tls };
    let destination = policy.destination(&flow);
    let postern::policy::destination::Action::Inspect(inspection) = destination.action else {
        unreachable!("the rule inspects")
    };
    bencher.bench_local(|| {
        let path = NormalPath::parse(black_box("/v1/messages"));
        inspection.request(&EndpointQuery {
            method: &http::Method::POST,
            path: &path,
            service: None,
            unknown_provider: false,
        })
    });
}
