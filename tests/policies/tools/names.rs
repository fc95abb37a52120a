//! Which rules a tool meets: by name, wildcard, namespace and kind.

use postern::call::{Judge, Start};

use super::{expect, rules, tool};

#[test]
fn an_unconditional_deny_takes_effect_at_the_start() {
    let policy = rules(&["{name: r, tools: [Bash, 'mcp__shell__*'], action: Deny}"]);
    expect(
        &policy,
        r#"
        Bash = stops Deny agents/p/r !
        Bash {"command": "ls"} = Deny agents/p/r !
        mcp__shell__run = stops Deny agents/p/r !
        mcp__shellx__run = starts Allow
        Read = starts Allow
        Read {"file_path": "/x"} = Allow
        "#,
    );
}

#[test]
fn a_denial_folds_names_and_an_allowance_is_exact() {
    let deny = rules(&["{name: r, tools: [ＢASH, 'MCP__*'], action: Deny}"]);
    for name in ["bash", "BASH", "Ｂａｓｈ", "Ba\u{200b}sh", "baſh", " Bash", "mcp__x", "Mcp__X"] {
        assert!(matches!(deny.start(&tool(name)), Start::Deny(_)), "{name:?}");
    }
    assert!(matches!(deny.start(&tool("Bash2")), Start::Allow(_)));
    let allow = rules(&[
        "{name: all, tools: ['*'], action: Deny, when: {param: $, operator: Exists}}",
        "{name: r, tools: [Bash, 'mcp__*'], action: Allow}",
    ]);
    expect(
        &allow,
        r#"
        Bash {} = Deny agents/p/all
        "#,
    );
    let closed = super::policy(&[super::namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: r, tools: [Bash, 'mcp__*'], action: Allow}]",
    )]);
    expect(
        &closed,
        "
        Bash = starts Allow agents/p/r
        mcp__x = starts Allow agents/p/r
        bash = stops Deny agents/p/toolDefault !
        Ｂａｓｈ = stops Deny agents/p/toolDefault !
        MCP__x = stops Deny agents/p/toolDefault !
        ",
    );
}

#[test]
fn a_namespaced_call_has_two_names() {
    let policy = rules(&[
        "{name: whole, tools: [computer.left_click], action: Deny}",
        "{name: part, tools: [navigate], action: Deny}",
    ]);
    expect(
        &policy,
        "
        computer/left_click = stops Deny agents/p/whole !
        left_click = starts Allow
        other/left_click = starts Allow
        browser/navigate = stops Deny agents/p/part !
        computer.left_click = stops Deny agents/p/whole !
        ",
    );
}

#[test]
fn a_rule_meets_a_tool_by_kind_or_by_name() {
    let policy = rules(&["{name: r, kind: Shell, tools: ['mcp__*'], action: Deny}"]);
    expect(
        &policy,
        "
        Bash = stops Deny agents/p/r !
        mcp__x = stops Deny agents/p/r !
        Read = starts Allow
        ",
    );
}

#[test]
fn a_tool_of_several_kinds_is_held_until_its_input_tells_which() {
    let policy = rules(&["{name: r, kind: Write, action: Deny}"]);
    expect(
        &policy,
        r#"
        Write = stops Deny agents/p/r !
        editor = held
        editor {"command": "view", "path": "/w/a"} = Allow
        editor {"command": "create", "path": "/w/a"} = Deny agents/p/r
        editor {"nonsense": 1} = Deny agents/p/r
        "#,
    );
    let reads = super::policy(&[super::namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: r, kind: Read, action: Allow}]",
    )]);
    expect(
        &reads,
        r#"
        Read = starts Allow agents/p/r
        editor {"command": "view", "path": "/w/a"} = Allow agents/p/r
        editor {"command": "create", "path": "/w/a"} = Deny agents/p/toolDefault
        editor {"nonsense": 1} = Deny postern/builtin/agent-control-files
        "#,
    );
}

#[test]
fn a_name_beyond_the_bound_is_denied_unread() {
    let policy = rules(&["{name: r, tools: [x], action: Audit}"]);
    let long = "a".repeat(1024);
    expect(&policy, &format!("{long} = stops Deny postern/builtin/bound !"));
    assert!(matches!(policy.start(&tool(&long[1..])), Start::Allow(_)));
}
