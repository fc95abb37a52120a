//! Settings of results as users write them: what they become, and every mistake with its place.

use super::*;
use crate::policy::routing::testing::{assert_problems, audit, cluster, namespaced, policy, problems};
use crate::tool_output::{Amount, Compress, Repeats};

fn outputs(yaml: &str) -> Arc<ToolOutputs> {
    let policy = policy(&[namespaced("p", &format!("  toolOutputs:\n{yaml}"))]);
    Arc::clone(policy.tool_outputs().unwrap())
}

fn tool<'a>(name: &'a str, kinds: &'a [Kind]) -> Tool<'a> {
    Tool { kinds, ..Tool::named(name) }
}

#[test]
fn what_is_not_written_is_as_documented() {
    let outputs = outputs("    compress: {}\n");
    let amount = |lines: usize, tokens: usize| Amount { lines, bytes: 4 * tokens };
    let compress = Compress {
        above: amount(400, 6_000),
        head: amount(60, 1_200),
        tail: amount(120, 2_400),
        diagnostics: 40,
    };
    assert_eq!(outputs.shortening, Shortening { compress: Some(compress), repeats: Repeats::Keep });
    assert!(outputs.covers(&tool("Bash", &[Kind::Shell])));
    assert!(!outputs.covers(&tool("Read", &[Kind::Read])) && !outputs.covers(&tool("x", &[])));
    assert!(outputs.covers_repeats(&tool("Read", &[Kind::Read])));
}

#[test]
fn tools_are_meant_by_what_they_do_or_by_their_names() {
    let outputs = outputs("    of: [{kind: Fetch}, {tools: ['mcp__ci__*', Logs]}]\n    repeats: Refer\n");
    for (name, kinds, is_meant) in [
        ("curl", [Kind::Fetch].as_slice(), true),
        ("mcp__ci__log", &[], true),
        ("ci__log", &[], true),
        ("logs", &[], true),
        ("mcp__cd__log", &[], false),
        ("Bash", &[Kind::Shell], false),
    ] {
        assert_eq!(outputs.covers(&tool(name, kinds)), is_meant, "{name}");
    }
    assert_eq!(outputs.shortening.compress, None);
}

#[test]
fn every_mistake_has_its_place() {
    assert_problems(&[
        ("  toolOutputs: {of: [{kind: Shell}]}\n", "{of:", "spec.toolOutputs: asks for nothing"),
        ("  toolOutputs: {of: [], compress: {}}\n", "[]", "spec.toolOutputs.of: name at least one"),
        (
            "  toolOutputs: {of: [{kind: Read}], compress: {}}\n",
            "Read",
            "spec.toolOutputs.of[0].kind: Read: is never cut",
        ),
        (
            "  toolOutputs: {of: [{kind: Write}], compress: {}}\n",
            "Write",
            "spec.toolOutputs.of[0].kind: Write: is never cut",
        ),
        (
            "  toolOutputs: {of: [{kind: Shell}, {}], compress: {}}\n",
            "{}]",
            "spec.toolOutputs.of[1]: write either",
        ),
        (
            "  toolOutputs: {of: [{kind: Shell, tools: [x]}], compress: {}}\n",
            "{kind",
            "spec.toolOutputs.of[0]: write either",
        ),
        (
            "  toolOutputs: {of: [{tools: []}], compress: {}}\n",
            "[]}",
            "spec.toolOutputs.of[0].tools: name 1 to 256",
        ),
        ("  toolOutputs: {of: [{tools: ['']}], compress: {}}\n", "''", "spec.toolOutputs.of[0].tools[0]: "),
        (
            "  toolOutputs: {compress: {above: {lines: 0}}}\n",
            "0}",
            "spec.toolOutputs.compress.above.lines: expected 1 to 100000",
        ),
        (
            "  toolOutputs: {compress: {tail: {tokens: 255}}}\n",
            "255",
            "spec.toolOutputs.compress.tail.tokens: expected 256 to 1000000",
        ),
        (
            "  toolOutputs: {compress: {diagnostics: 201}}\n",
            "201",
            "spec.toolOutputs.compress.diagnostics: expected 0 to 200",
        ),
        (
            "  toolOutputs: {compress: {above: {lines: 100}, head: {lines: 30}, tail: {lines: 37}}}\n",
            "{above",
            "spec.toolOutputs.compress: head and tail are 67 lines together; at most two thirds",
        ),
        (
            "  toolOutputs: {compress: {above: {tokens: 1024}, head: {tokens: 256}, tail: {tokens: 512}}}\n",
            "{above",
            "spec.toolOutputs.compress: head and tail are 768 tokens together",
        ),
    ]);
}

const TWENTY: &str = "  toolOutputs: {compress: {diagnostics: 20}}\n";
const THIRTY: &str = "  toolOutputs: {compress: {diagnostics: 30}}\n";

#[test]
fn the_namespaces_settings_come_before_the_clusters_and_audit_policies_have_none() {
    let diagnostics = |policies: &[String]| {
        let policy = policy(policies);
        policy.tool_outputs().and_then(|outputs| outputs.shortening.compress).map(|cut| cut.diagnostics)
    };
    assert_eq!(diagnostics(&[cluster("c", TWENTY), namespaced("p", THIRTY)]), Some(30));
    assert_eq!(diagnostics(&[cluster("c", TWENTY), namespaced("p", "  toolDefault: Allow\n")]), Some(20));
    assert_eq!(diagnostics(&[namespaced("p", TWENTY), namespaced("q", TWENTY)]), Some(20));
    assert_eq!(diagnostics(&[audit(&namespaced("p", TWENTY))]), None);
}

#[test]
fn two_that_differ_in_one_tier_are_a_mistake() {
    let found = problems(&[namespaced("p", TWENTY), namespaced("q", THIRTY)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("spec.toolOutputs: differs from that of p.yaml:"), "{found:?}");
}
