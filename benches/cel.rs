//! Rules in CEL: one, 64 of them, and the dearest that may be written, in microseconds of one run (P26 of
//! docs/performance.md); and what it takes to load hostile ones.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use divan::{AllocProfiler, Bencher, black_box};
use postern::policy::cel::{Expression, Facts, Finding, MOST_COST, Regexes, Tool};
use regex::Regex;

/// That of the gateway, which also tells how much each row allocates.
#[global_allocator]
static ALLOCATOR: AllocProfiler<mimalloc::MiMalloc> = AllocProfiler::new(mimalloc::MiMalloc);

fn main() {
    divan::main();
}

/// Compiles regular expressions as policies do, without their common room.
struct Unbounded;

impl Regexes for Unbounded {
    fn compile(&mut self, source: &str) -> Result<Regex, String> {
        Regex::new(source).map_err(|error| error.to_string())
    }
}

fn compile(source: &str) -> Expression {
    Expression::compile(source, &mut Unbounded).expect("an expression of this bench")
}

const MODELS: [&str; 2] = ["claude-sonnet-5-5", "claude-haiku-5"];

/// The rules of docs/policy.md.
const RULES: [&str; 6] = [
    r#"event.direction == "Outbound" && !event.provider.models.all(m, m in ["claude-sonnet-5-5", "claude-haiku-5"])"#,
    r#"event.time.getHours("+01:00") < 7 || event.time.getDayOfWeek() in [0, 6]"#,
    r#"event.spent.tokensToday > 4000000 && event.provider.model.contains("opus")"#,
    r#"has(event.provider.organization) && event.provider.organization != "org-acme""#,
    r#"event.provider.tools.exists(t, t.name.startsWith("mcp__") && !t.name.startsWith("mcp__github__"))"#,
    r#"hostIn(event.destination.host, "**.corp.example") && (event.payload.bytes > 1000000 || size(event.dlp) > 0)"#,
];

/// Rules near the bound of what may be reckoned: nested lists, long texts and regular expressions.
const DEAREST: [(&str, &str); 4] = [
    ("tools", "event.provider.tools.map(t, t.name + 'x').exists(n, n.contains('y'))"),
    ("findings", "event.dlp.all(f, f.location != f.detector && f.kind != f.role)"),
    ("regex", r"event.http.path.matches('([ab]{2})+[0-9]') || event.http.path.matches('([a-z][a-z])+[A-Z]')"),
    ("texts", "event.dlp.map(f, f.detector + f.kind).exists(d, d.contains('xyz'))"),
];

/// A request to a model whose lists and texts are as long as they may be, or as they mostly are.
fn with_facts<T>(is_full: bool, run: impl FnOnce(&Facts<'_>) -> T) -> T {
    let names: Vec<String> =
        (0..if is_full { 128 } else { 24 }).map(|n| format!("tool_number_{n}")).collect();
    let tools: Vec<Tool<'_>> = names.iter().map(|name| Tool { name, ..Tool::default() }).collect();
    let long = "m".repeat(1024);
    let models: Vec<&str> = if is_full { vec![&long; 64] } else { MODELS.to_vec() };
    let path = if is_full { format!("/{}", "ab".repeat(8_000)) } else { "/v1/messages".to_owned() };
    let detector = "d".repeat(256);
    let finding = Finding { detector: &detector, kind: "Secret", location: "body/1", ..Finding::default() };
    let dlp = vec![finding; if is_full { 256 } else { 0 }];
    run(&Facts {
        kind: "Request",
        direction: "Outbound",
        time: Some(std::time::SystemTime::now()),
        host: Some("api.anthropic.com"),
        port: Some(443),
        method: Some("POST"),
        path: Some(&path),
        model: Some("claude-sonnet-5-5"),
        models: &models,
        tools: &tools,
        dlp: &dlp,
        organization: Some("org-acme"),
        payload_bytes: Some(150_000),
        tokens_today: Some(1_000_000),
        ..Facts::default()
    })
}

#[divan::bench(args = [0, 1, 2, 3, 4, 5])]
fn one_rule(bencher: Bencher<'_, '_>, number: usize) {
    let rule = compile(RULES[number]);
    with_facts(false, |facts| bencher.bench_local(|| black_box(&rule).holds(black_box(facts), MOST_COST)));
}

#[divan::bench]
fn sixty_four_rules(bencher: Bencher<'_, '_>) {
    let rules: Vec<Expression> = RULES.iter().cycle().take(64).map(|rule| compile(rule)).collect();
    with_facts(false, |facts| {
        bencher.bench_local(|| {
            rules.iter().filter(|rule| rule.holds(black_box(facts), MOST_COST) == Ok(true)).count()
        });
    });
}

#[divan::bench(args = DEAREST.map(|(name, _)| name))]
fn a_rule_at_the_bound(bencher: Bencher<'_, '_>, name: &str) {
    let source = DEAREST.iter().find(|(of, _)| *of == name).expect("its name").1;
    let rule = compile(source);
    assert!(rule.cost() > MOST_COST / 4, "{name} costs {}", rule.cost());
    with_facts(true, |facts| {
        rule.holds(facts, MOST_COST).expect("a value");
        bencher.bench_local(|| black_box(&rule).holds(black_box(facts), MOST_COST));
    });
}

/// What an attacker with a right to write policies would send.
const HOSTILE: [&str; 8] = ["(", "[", "!", "-", "1+", "a.", "true?true:", "event.dlp.all(x,"];

#[divan::bench(args = HOSTILE)]
fn a_hostile_expression(bencher: Bencher<'_, '_>, part: &str) {
    let source = part.repeat(1024 / part.len());
    bencher.bench_local(|| Expression::compile(black_box(&source), &mut Unbounded).is_err());
}

#[divan::bench]
fn a_pattern_that_wants_memory(bencher: Bencher<'_, '_>) {
    let source = format!("event.http.path.matches('{}')", r"(\w{9}){9}".repeat(90));
    bencher.bench_local(|| Expression::compile(black_box(&source), &mut Unbounded).is_err());
}
