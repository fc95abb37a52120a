//! How the cost of a request grows with what there is of rules, policies, bytes, connections and threads; what
//! `just bench-growth` runs.

use std::fmt::Write as _;
use std::sync::Arc;

use super::client::{Client, Sender, Way};
use super::exchanges;
use super::fleet::{Fleet, Member};
use super::gateway::Gateway;
use super::load::{self, Cold, Load, Sample};
use super::{ROUNDS, SETTLE, Spread, WINDOW, quantile};

/// The cost by one size, all of whose steps are measured in turns in one run.
struct Curve {
    /// What grows.
    of: &'static str,
    /// What CPU is shown for, and how many of a sample's items that is.
    per: (&'static str, fn(&Step) -> f64),
    steps: Vec<Step>,
}

struct Step {
    size: usize,
    /// The number of its gateway.
    gateway: usize,
    load: Load,
}

const REQUEST: (&str, fn(&Step) -> f64) = ("a request", |_| 1.0);
const KILOBYTE: (&str, fn(&Step) -> f64) = ("a KB", |step| step.size as f64 / 1e3);

/// Rules and policies; one file has room for so many rules of both kinds.
const RULES: [usize; 5] = [1, 10, 100, 1_000, 10_000];
const POLICIES: [usize; 4] = [1, 10, 100, 1_000];
const MOST_OF_A_FILE: usize = 500;
/// From a question to nearly all that a request may have.
const BYTES: [usize; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 30_000_000];
/// More at once would measure how fast one thread is as an upstream; idle ones are as many as 20,000 open files allow.
const BUSY: [usize; 4] = [1, 10, 100, 1_000];
const IDLE: [usize; 5] = [0, 10, 100, 1_000, 9_000];
const THREADS: [usize; 3] = [1, 2, 4];
/// Connections on which requests follow each other where another size is looked at.
const CONNECTIONS: usize = 8;
/// A call that a rule with a condition is asked about.
const CALL: &str = "call";
/// A question to a model, with a credential.
const QUESTION: &str = "question";
/// Idle connections stay open through the rounds.
const KEPT: &str = "timeouts: {keepAlive: 1h}\n";

pub(crate) async fn run() {
    policies("rules", &RULES, |count| (count.div_ceil(MOST_OF_A_FILE), count)).await;
    policies("policies", &POLICIES, |count| (count, count)).await;
    for is_new in [true, false] {
        let steps = BYTES.map(|bytes| Step { size: bytes, gateway: 0, load: Load::Bodies { bytes, is_new } });
        let of = if is_new { "bytes of a body not seen before" } else { "bytes of a body that comes again" };
        alone(Curve { of, per: KILOBYTE, steps: steps.into() }).await;
    }
    let busy = |connections| Load::Exchanges { name: QUESTION, connections };
    let steps = BUSY.map(|size| Step { size, gateway: 0, load: busy(size) });
    alone(Curve { of: "connections, all of them busy", per: REQUEST, steps: steps.into() }).await;
    idle().await;
    let members = THREADS.map(|threads| Member { threads: Some(threads), ..Member::of(exchanges::policy()) });
    let step = |(gateway, size): (usize, &usize)| Step { size: *size, gateway, load: busy(32) };
    let steps = THREADS.iter().enumerate().map(step).collect();
    beside(&Curve { of: "threads, 32 connections", per: REQUEST, steps }, &members).await;
}

/// Measures the steps of a curve with one gateway.
async fn alone(curve: Curve) {
    beside(&curve, &[Member::of(exchanges::policy())]).await;
}

async fn beside(curve: &Curve, members: &[Member]) {
    let place = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(place.path(), members).await;
    curve.run(&fleet).await;
}

/// The cost of a call by rules of destinations and of tools, of which there are so many in so many policies.
async fn policies(of: &'static str, sizes: &[usize], how_many: fn(usize) -> (usize, usize)) {
    let member = |size: &usize| {
        let (documents, rules) = how_many(*size);
        Member::of(format!("{}{}", exchanges::policy(), more(documents, rules)))
    };
    let members: Vec<Member> = sizes.iter().map(member).collect();
    let load = Load::Exchanges { name: CALL, connections: CONNECTIONS };
    let step = |(gateway, size): (usize, &usize)| Step { size: *size, gateway, load };
    let curve = Curve { of, per: REQUEST, steps: sizes.iter().enumerate().map(step).collect() };
    let place = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(place.path(), &members).await;
    let resident: Vec<String> = fleet.gateways.iter().map(mebibytes).collect();
    curve.run(&fleet).await;
    println!("memory before the first request, MiB: {}", resident.join(", "));
}

/// The cost of a request, and the memory, by connections that have served one and wait.
async fn idle() {
    let place = tempfile::tempdir().unwrap();
    let member = |_| Member { settings: KEPT.to_owned(), ..Member::of(exchanges::policy()) };
    let fleet = Fleet::start(place.path(), &IDLE.map(member)).await;
    let mut held: Vec<Vec<Sender>> = Vec::new();
    for (client, count) in fleet.clients.iter().zip(IDLE) {
        held.push(load::hold(client, count).await);
    }
    tokio::time::sleep(SETTLE).await;
    let resident: Vec<String> = fleet.gateways.iter().map(mebibytes).collect();
    let load = Load::Exchanges { name: QUESTION, connections: CONNECTIONS };
    let step = |(gateway, size): (usize, &usize)| Step { size: *size, gateway, load };
    let steps = IDLE.iter().enumerate().map(step).collect();
    Curve { of: "idle connections beside 8 busy ones", per: REQUEST, steps }.run(&fleet).await;
    println!("memory with them, MiB: {}", resident.join(", "));
}

fn mebibytes(gateway: &Gateway) -> String {
    format!("{:.1}", gateway.resident() as f64 / 1024.0)
}

/// So many policies that together have so many rules of destinations and as many of tools; every tenth has a condition.
fn more(documents: usize, rules: usize) -> String {
    let mut text = String::new();
    let mut numbers = 0..rules;
    for document in 0..documents {
        let numbers: Vec<usize> = numbers.by_ref().take(rules.div_ceil(documents)).collect();
        writeln!(
            text,
            "---\napiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: more-{document}, namespace: agents}}\nspec:\n  podSelector: {{}}\n  destinations:"
        )
        .unwrap();
        for number in &numbers {
            writeln!(text, "    - {{name: d{number}, hosts: [h{number}.more.test], action: Inspect}}")
                .unwrap();
        }
        text.push_str("  tools:\n");
        for number in &numbers {
            let when = if number % 10 == 0 {
                format!(", when: {{param: command, operator: Contains, values: [never-{number}]}}")
            } else {
                String::new()
            };
            let tools = if number % 10 == 0 { "Bash".to_owned() } else { format!("mcp__s{number}__*") };
            writeln!(text, "    - {{name: t{number}, tools: ['{tools}'], action: Deny{when}}}").unwrap();
        }
    }
    text
}

impl Curve {
    async fn run(&self, fleet: &Fleet) {
        let mut samples: Vec<Vec<Sample>> = self.steps.iter().map(|_| Vec::new()).collect();
        let cold = Arc::new(Cold::default());
        for _ in 0..ROUNDS {
            for (samples, step) in samples.iter_mut().zip(&self.steps) {
                let side: (&Arc<Client>, &Gateway) = fleet.side(step.gateway);
                samples.push(load::measure(side, (step.load, Way::Gateway), WINDOW, &cold).await);
            }
        }
        self.show(&samples);
    }

    fn show(&self, samples: &[Vec<Sample>]) {
        let (per, share) = self.per;
        println!("\n{ROUNDS} rounds; medians. By {}:\n", self.of);
        println!(
            "{:>12}{:>14}{:>24}{:>12}{:>10}",
            "",
            format!("CPU µs {per}"),
            "x the first of a round",
            "p50 µs",
            "a second"
        );
        let cost = |sample: &Sample, step: &Step| {
            sample.cpu.as_secs_f64() * 1e6 / sample.items.max(1.0) / share(step)
        };
        for (row, step) in samples.iter().zip(&self.steps) {
            let first = samples[0].iter().map(|sample| cost(sample, &self.steps[0]));
            let ratio = Spread::of(row.iter().zip(first).map(|(sample, first)| cost(sample, step) / first));
            println!(
                "{:>12}{:>14.2}{:>24}{:>12.0}{:>10.0}",
                step.size,
                Spread::of(row.iter().map(|sample| cost(sample, step))).median,
                ratio.shown(),
                Spread::of(row.iter().map(|sample| quantile(&sample.latencies, 0.5))).median,
                Spread::of(row.iter().map(|sample| sample.items / sample.elapsed.as_secs_f64())).median,
            );
        }
    }
}
