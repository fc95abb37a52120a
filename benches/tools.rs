//! Decisions about tool calls by the number of rules, beside one look-up in a map: compare the rows of one run.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

use std::collections::HashMap;
use std::fmt::Write as _;

use divan::{Bencher, black_box};
use postern::call::{Facts, Input, Judge, Kind, Tool, ToolCall};
use postern::policy::{Labels, Policy, document};
use serde_json::json;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    divan::main();
}

/// A policy of `size` rules: exact names and wildcards at either end and inside, several files of 500 each, and one
/// rule with conditions.
fn policy(size: usize) -> Policy {
    let mut documents = Vec::new();
    for first in (0..size).step_by(500) {
        let mut text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p{first}}}\nspec:\n  tools:\n"
        );
        for number in first..size.min(first + 500) {
            let name = match number % 4 {
                0 | 1 => format!("tool_{number}"),
                2 => format!("mcp__server{number}__*"),
                _ => format!("*__run{number}__*"),
            };
            let action = if number % 3 == 0 { "Allow" } else { "Deny" };
            writeln!(text, "    - {{name: r{number}, tools: ['{name}'], action: {action}}}")
                .expect("writing to a string");
        }
        documents.extend(document::parse("bench.yaml", &text).expect("a policy"));
    }
    let conditions = r"
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: conditions}
spec:
  tools:
    - name: shell
      kind: Shell
      action: Deny
      when:
        any:
          - {param: command, operator: Matches, values: ['rm\s+-rf\s+/']}
          - {param: command, operator: Contains, values: [sudo]}
          - {all: [{param: timeout, operator: Equals, values: [0]}, {param: command, operator: NotStartsWith, values: [git]}]}
";
    documents.extend(document::parse("conditions.yaml", conditions).expect("a policy"));
    Policy::compile(&documents, &Labels::new()).expect("a policy")
}

fn start(bencher: Bencher<'_, '_>, size: usize, name: &str) {
    let policy = policy(size);
    bencher.bench_local(|| policy.start(&Tool::named(black_box(name))));
}

/// The yardstick: one look-up of the same name in a map of as many names.
#[divan::bench(args = SIZES)]
fn baseline_map(bencher: Bencher<'_, '_>, size: usize) {
    let map: HashMap<String, usize> = (0..size).map(|number| (format!("tool_{number}"), number)).collect();
    bencher.bench_local(|| map.get(black_box("tool_5")).copied());
}

#[divan::bench(args = SIZES)]
fn exact_name(bencher: Bencher<'_, '_>, size: usize) {
    start(bencher, size, "tool_5");
}

#[divan::bench(args = SIZES)]
fn folded_name(bencher: Bencher<'_, '_>, size: usize) {
    start(bencher, size, "Ｔool_5");
}

#[divan::bench(args = SIZES)]
fn wildcard(bencher: Bencher<'_, '_>, size: usize) {
    start(bencher, size, "mcp__server2__read_file");
}

#[divan::bench(args = SIZES)]
fn no_rule(bencher: Bencher<'_, '_>, size: usize) {
    start(bencher, size, "mcp__elsewhere__list_directory");
}

/// The longest name that is looked at, made of what every wildcard contains.
#[divan::bench(args = SIZES)]
fn worst_name(bencher: Bencher<'_, '_>, size: usize) {
    start(bencher, size, &"mcp__server".repeat(92));
}

/// A condition on commands of these many bytes.
#[divan::bench(args = [100, 10_000, 1_000_000])]
fn condition(bencher: Bencher<'_, '_>, bytes: usize) {
    let policy = policy(10);
    let input = json!({"command": "echo rm -r ".repeat(bytes / 11 + 1), "timeout": 0});
    let command = input.get("command").and_then(serde_json::Value::as_str).expect("a command");
    let facts = Facts { commands: vec![command.into()], ..Facts::new(Kind::Shell) };
    let tool = Tool { kinds: &[Kind::Shell], ..Tool::named("Bash") };
    let bencher = bencher.counter(divan::counter::BytesCount::new(command.len()));
    bencher.bench_local(|| {
        policy.complete(black_box(&ToolCall {
            tool,
            input: Input::Json(&input),
            facts: Some(&facts),
            derived: &[],
        }))
    });
}
